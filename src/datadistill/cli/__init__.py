"""The command line: one module per command.

The modules of commands import torch, and what imports it, in the functions that need it: help and
messages about wrong flags do not wait for it.
"""
