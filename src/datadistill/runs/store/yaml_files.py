"""Reading and writing YAML: plain values only, nothing that could run or grow."""

import re
from pathlib import Path
from typing import Any

import yaml

from ...errors import ConfigError
from ...reading import read_regular
from ..config import RunConfig, config_from

SIZE_LIMIT = 2**20  # bytes
DEPTH_LIMIT = 20
TEXT = "tag:yaml.org,2002:str"
NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


class _PlainLoader(yaml.SafeLoader):
    """Safe YAML without aliases, deep nesting or keys given twice, in which 1e-3 is a number."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases (*name) are not allowed")
        self.depth += 1
        if self.depth > DEPTH_LIMIT:
            raise yaml.YAMLError("it is nested too deeply")
        node = super().compose_node(parent, index)
        if isinstance(node, yaml.ScalarNode) and node.tag in NUMBERS and ":" in node.value:
            node.tag = TEXT  # YAML 1.1 reads 1:30 as 90, in base 60; here it is a text
        self.depth -= 1
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        mapping = super().construct_mapping(node, deep)
        if len(mapping) < len(node.value):
            raise yaml.YAMLError("a name is given twice")
        return mapping


_PlainLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def read_yaml(path: Path) -> dict[str, Any]:
    """Reads a file of names and values."""
    try:
        content = read_regular(path, SIZE_LIMIT)
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror or error}.", "Name a YAML file of settings."
        ) from None
    return parse_yaml(content, str(path))


def parse_yaml(content: bytes, where: str) -> dict[str, Any]:
    """Turns the text of a YAML file into names and values."""
    try:
        values = yaml.load(content, _PlainLoader)  # noqa: S506 - a kind of SafeLoader
    except (yaml.YAMLError, ValueError, TypeError, ArithmeticError, LookupError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark else ""
        what = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise ConfigError(
            f"{where}{place} is not plain YAML: {what}.",
            "Write one setting per line, as name: value.",
        ) from None
    if not isinstance(values, dict):
        raise ConfigError(
            f"{where} holds no settings.", "Write one setting per line, as name: value."
        )
    return values


def write_yaml(config: RunConfig, *comments: str) -> bytes:
    """The text of a YAML file with all settings of a configuration, below some comments."""
    body = yaml.safe_dump(config.mapping(), sort_keys=False, allow_unicode=True)
    return "".join([*(f"# {one}\n" for one in comments), body]).encode()


def read_config(path: Path) -> RunConfig:
    """Reads and validates a configuration."""
    return config_from(read_yaml(path), str(path))
