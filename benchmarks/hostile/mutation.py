"""Changes to the bytes of valid files: blind ones, and ones that know numbers, JSON and lines."""

import json
import random
import re
import struct
from typing import Any

INTEGERS = (0, 1, -1, 2, 127, 128, 255, 256, 2**15, 2**16 - 1, 2**31 - 1, 2**32 - 1, 2**40, 2**63)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 2, 2**31, 2**53, 2**64, 10**9, -(10**30), 10**400),
    *(0.0, -0.5, 1e-320, 1e300, float("nan"), float("inf"), -float("inf")),
    *("", "x", "1:30", "\x1b[31m", "[bold]", "../../x", "/dev/zero", "os:system", "x" * 5000),
    *([], {}, [[]], [None], {"": None}, [0] * 300),
)
WORDS = (
    *(b"nan", b"inf", b"-inf", b"1e999", b"-1", b"0", b"99999999999999999999", b"1:30", b"0x7f"),
    *(b"null", b"{}", b"[]", b"[[[[", b'"', b"\n", b"\x00", b"\x1b[2J", b"&a *a", b"!!int", b"<<"),
    *(b"../", b"/dev/zero", b"os:system", b"\xff\xfe", b"\xed\xa0\x80", b": ", b"- ", b"# "),
)
NUMBER = re.compile(rb"-?\d+(\.\d+)?([eE][-+]?\d+)?")


def changed(content: bytes, draw: random.Random) -> bytes:
    """One to four blind changes: bits, pieces, integers, words."""
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        content = draw.choice(CHANGES)(content, draw)
    return content


def changed_json(text: str, draw: random.Random) -> str:
    """JSON in which some values are others, removed or nested; now and then, changed blindly."""
    if draw.random() < 0.1:
        return changed(text.encode(), draw).decode("utf-8", "replace")
    return json.dumps(changed_value(json.loads(text), draw))


def changed_value(value: Any, draw: random.Random) -> Any:
    """Plain data with one or two nodes changed."""
    for _ in range(draw.choice((1, 1, 2))):
        value = _with_another(value, draw)
    return value


def _with_another(value: Any, draw: random.Random) -> Any:
    """The same value with one node changed, at any depth."""
    if isinstance(value, dict | list) and value and draw.random() < 0.9:
        node: Any = value
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        key = draw.choice(keys)
        match draw.randrange(12):
            case 0:
                del node[key]
            case 1 if isinstance(node, list):
                node.extend(node[:1] * draw.choice((1, 50)))
            case 1:
                node[draw.choice(("x", "", "schema_version", "\x1b"))] = draw.choice(VALUES)
            case _:
                node[key] = _with_another(node[key], draw)
        return node
    if isinstance(value, float | int) and abs(value) < 2**64 and draw.random() < 0.4:
        return value * draw.choice((-1, 2, 10, 1e9)) + draw.choice((0, 1, -1))
    if draw.random() < 0.05:
        for _ in range(draw.choice((3, 30, 400))):
            value = [value]
        return value
    return draw.choice(VALUES)


def changed_lines(text: bytes, draw: random.Random) -> bytes:
    """Text in which numbers are others, or lines are repeated, removed, swapped or endless."""
    lines = text.split(b"\n")
    at, other = draw.randrange(len(lines)), draw.randrange(len(lines))
    match draw.randrange(7):
        case 0:
            lines.insert(other, lines[at])
        case 1:
            del lines[at]
        case 2:
            lines[at], lines[other] = lines[other], lines[at]
        case 3:
            lines[at] *= draw.choice((2, 50))
        case 4:
            name, colon, _ = lines[at].partition(b":")
            lines[at] = name + colon + b" " + _word(draw)
        case _:
            numbers = list(NUMBER.finditer(lines[at])) or [re.match(b"", lines[at])]
            chosen = draw.choice(numbers)
            assert chosen is not None
            begin, end = chosen.span()
            lines[at] = lines[at][:begin] + _word(draw) + lines[at][end:]
    return b"\n".join(lines)


def _word(draw: random.Random) -> bytes:
    if draw.random() < 0.5:
        return draw.choice(WORDS)
    return json.dumps(draw.choice(VALUES)).encode()


def _place(content: bytes, draw: random.Random) -> int:
    """A place in a file; its beginning, where headers are, more often than the rest."""
    end = len(content) if draw.random() < 0.5 else min(len(content), 200)
    return draw.randrange(end + 1)


def _flip(content: bytes, draw: random.Random) -> bytes:
    at = _place(content[:-1], draw)
    return (
        content[:at]
        + bytes(b ^ 1 << draw.randrange(8) for b in content[at : at + 1])
        + (content[at + 1 :])
    )


def _cut(content: bytes, draw: random.Random) -> bytes:
    return content[: _place(content, draw)]


def _insert(content: bytes, draw: random.Random) -> bytes:
    at = _place(content, draw)
    return content[:at] + draw.randbytes(draw.choice((1, 2, 4, 8, 100))) + content[at:]


def _remove(content: bytes, draw: random.Random) -> bytes:
    at = _place(content, draw)
    return content[:at] + content[at + draw.choice((1, 2, 4, 8, 100)) :]


def _repeat(content: bytes, draw: random.Random) -> bytes:
    at, size = _place(content, draw), draw.choice((1, 8, 64, 1000))
    return content[:at] + content[at : at + size] * draw.choice((2, 2, 20)) + content[at:]


def _move(content: bytes, draw: random.Random) -> bytes:
    at, source, size = _place(content, draw), _place(content, draw), draw.choice((4, 8, 64))
    return content[:at] + content[source : source + size] + content[at + size :]


def _integer(content: bytes, draw: random.Random) -> bytes:
    """An integer of 1 to 8 bytes replaced by one at the edge of a range."""
    at, size = _place(content, draw), draw.choice((1, 2, 4, 8))
    number = (draw.choice(INTEGERS) + draw.choice((0, 0, 1, -1))) % 2 ** (8 * size)
    return (
        content[:at]
        + number.to_bytes(size, draw.choice(("little", "big")))
        + (content[at + size :])
    )


def _float(content: bytes, draw: random.Random) -> bytes:
    at = _place(content, draw) // 4 * 4
    number = draw.choice((float("nan"), float("inf"), 3e38, 1e-45, -1.0))
    return content[:at] + struct.pack("<f", number) + content[at + 4 :]


def _put_word(content: bytes, draw: random.Random) -> bytes:
    at, word = _place(content, draw), _word(draw)
    return content[:at] + word + content[at + draw.choice((0, len(word))) :]


CHANGES = (_flip, _cut, _insert, _remove, _repeat, _move, _integer, _float, _put_word)
