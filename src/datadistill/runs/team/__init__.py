"""Several processes that make one run, on one machine or many."""
