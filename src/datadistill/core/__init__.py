"""The paper in code: tensors only; no files, no printing, no clock, no global random state."""
