"""The numerics: pure tensors; no files, no printing, no clock, no global random state."""
