"""The files of a run folder: settings, checkpoints, figures."""
