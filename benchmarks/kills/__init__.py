"""Kills of live processes under every command; see ``__main__``."""
