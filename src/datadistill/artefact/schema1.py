"""Headers of schema version 1, in the words of version 2.

Version 1 had a name for each objective and update rule that there was; version 2 has records.
"""

import re
from typing import Any

Header = dict[str, Any]


def upgraded(header: Header) -> Header:
    """A header of version 1 as version 2 has it; what is not valid is left for the reader."""
    return {
        **header,
        "schema_version": 2,
        "objective": _objective(header.get("objective")),
        "update_rule": _update_rule(header.get("update_rule")),
        "initialization": _initialization(header.get("initialization")),
    }


def _objective(name: object) -> object:
    if not isinstance(name, str):
        return name
    if found := re.fullmatch(r"poisoning (\d{1,6})→(\d{1,6})", name):
        return {"name": "poisoning", "attacked": int(found[1]), "target": int(found[2])}
    return {"name": "own-loss", "function": name} if ":" in name else {"name": name}


def _update_rule(record: object) -> object:
    if not isinstance(record, dict) or record.get("name") != "gradient-descent":
        return record
    momentum = record.get("momentum", 0.0)
    return {"name": "momentum", "momentum": momentum} if momentum else {"name": "gradient-descent"}


def _initialization(record: object) -> object:
    if not isinstance(record, dict) or "kind" not in record:
        return record
    kind = record["kind"]
    seed = ("seed",) if isinstance(kind, str) and not kind.startswith("fixed") else ()
    return {"name": kind, **{n: v for n, v in record.items() if n not in ("kind", *seed)}}
