"""Simulated power losses and failing calls under every command that writes; see ``__main__``."""
