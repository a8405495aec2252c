/* The same with vectors half as long, for rows that fit: fewer of them cross lines of the cache. */

#define NARROW
#include "few.c"
