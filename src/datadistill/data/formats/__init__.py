"""File formats: readers that never trust the sizes a file claims."""
