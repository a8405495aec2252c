"""Command lines in messages: each can be pasted into a shell as it is shown."""

import shlex

REST = "…"
"""Stands for the words of an earlier command."""


def command(*words: object) -> str:
    """``datadistill`` with these words, quoted where a shell needs it."""
    shown = (str(word) for word in ("datadistill", *words))
    return " ".join(word if word == REST else shlex.quote(word) for word in shown)


def flag(setting: str) -> str:
    """The flag of a setting: ``--update-rule`` for ``update_rule``."""
    return f"--{setting.replace('_', '-')}"
