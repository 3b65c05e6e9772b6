"""A network of a test's own: every address of the world leads to this machine, and the names are the test's.

In a thread that has left the machine's network and mounts (unshare(2)), all of IPv4 and IPv6 is routed to loopback: a
"public" or a "private" address is reached exactly when somebody connects to it, and no packet leaves. Sockets made in the
thread and processes started from it live there. Needs root and the right to unshare; elsewhere a test skips with one line.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

CLONE_NEWNS, CLONE_NEWNET = 0x00020000, 0x40000000
_SET_UP = (
    "mount --make-rprivate / && ip link set lo up && ip route add local default dev lo && "
    "(ip -6 route add local default dev lo || true)"
)


def in_private_net(test: Callable[[], object], resolv_conf: Path | None = None) -> None:
    """Run `test` in a network of its own, with this /etc/resolv.conf; skip where that is not allowed."""
    failures: list[BaseException] = []

    def enter() -> None:
        try:
            _leave(resolv_conf)
            test()
        except BaseException as error:  # raised again in the caller's thread
            failures.append(error)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


def _leave(resolv_conf: Path | None) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET | CLONE_NEWNS):
        pytest.skip(f"a network of its own needs root: {os.strerror(ctypes.get_errno())}")
    command = _SET_UP + (f" && mount --bind '{resolv_conf}' /etc/resolv.conf" if resolv_conf else "")
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"a network of its own cannot be set up: {done.stderr.strip()[-200:]}")
