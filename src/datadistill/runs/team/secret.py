"""The secret of a run: what every message between its processes must prove knowledge of."""

import hmac
import os
import secrets

from ...errors import TeamError

VARIABLE = "DATADISTILL_SECRET"


class ForgedError(TeamError):
    """A message to this run does not prove the secret: something else has sent it."""


class Secret:
    """A key that only the processes of one run know.

    Args:
        key: The key; empty if there is none, which makes proofs mere checksums.
        run: Tells runs with the same key apart, so that nothing can be replayed in another.
    """

    def __init__(self, key: bytes, run: str = "") -> None:
        self._key = key
        self._run = run.encode()

    @classmethod
    def by_environment(cls) -> "Secret":
        """The user's own, for processes that torchrun has started."""
        names = ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT")
        run = "/".join(os.environ.get(name, "") for name in names)
        return cls(os.environ.get(VARIABLE, "").encode(), run)

    def proof(self, *parts: bytes) -> bytes:
        """Proves that a message of these parts comes from a process that knows the secret."""
        code = hmac.new(self._key, digestmod="sha256")
        for part in (self._run, *parts):
            code.update(len(part).to_bytes(8, "big") + part)
        return code.digest()

    def proves(self, proof: bytes, *parts: bytes) -> bool:
        """Whether ``proof`` is the one of these parts."""
        return hmac.compare_digest(proof, self.proof(*parts))


def forged(message: str) -> ForgedError:
    """What to raise where a message does not prove the secret."""
    return ForgedError(
        f"{message} does not prove the secret of this run, and was ignored.",
        f"Another user may be interfering. With torchrun, set the same {VARIABLE} for all ranks.",
    )


def new_key() -> bytes:
    """A key that nobody can guess."""
    return secrets.token_bytes(32)
