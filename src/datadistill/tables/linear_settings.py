"""How the linear bound is measured, unless told otherwise."""

ITERATIONS = 2000
HALVINGS = 18
HELD_OUT_STARTS = 1000
