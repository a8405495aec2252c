"""What process 0 hands to a worker that it starts: through a pipe, which no one else can read."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO

Named = Mapping[str, str | None]
"""What the user has named on the command line, by setting. Other Python code is not imported."""


@dataclass(frozen=True)
class Handover:
    """What a worker must know before it listens to anything.

    Attributes:
        key: The secret of the run.
        named: The Python code that it may import.
    """

    key: bytes
    named: Named

    def write(self, pipe: IO[bytes]) -> None:
        """Writes it as one line."""
        line = json.dumps({"key": self.key.hex(), "named": dict(self.named)})
        pipe.write(line.encode() + b"\n")
        pipe.flush()

    @classmethod
    def read(cls, line: bytes) -> "Handover":
        """Reads the line."""
        told = json.loads(line)
        return cls(bytes.fromhex(told["key"]), told["named"])
