"""Commands as a user types them, in this process."""

from datadistill.cli.main import main


def run(*arguments: str) -> int:
    """The exit code of ``datadistill`` with these arguments."""
    try:
        return main([*arguments])
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
