"""The tests. What they compile is kept: no worker or process of theirs compiles it again."""

import os
import sys

sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
