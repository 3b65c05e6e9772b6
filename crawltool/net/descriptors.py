"""How many file descriptors may connections and bodies take?

Not the last ones: name look-ups and the archive's files need some, too, and the system's resolver calls a name unknown when
it cannot open its own files (a final answer, and a wrong one). The kernel gives the lowest free number, so a number at or
above `ceiling` says that all below are in use. Called by net/engine.py, net/handle.py, net/body.py and net/dns.py.
"""

from __future__ import annotations

import _socket
import errno
import os
import resource
import tempfile
from functools import cache
from typing import IO

from crawltool import limits


@cache
def ceiling() -> int:
    """Raise this process's limit to what the system grants, and give the number from which on descriptors are reserved."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard - reserved(hard)


def reserved(granted: int) -> int:
    """Tell how many of the granted descriptors are kept for look-ups and files."""
    return min(limits.DESCRIPTORS_RESERVED, granted // 4)


def open_socket(family: int, kind: int, protocol: int) -> _socket.socket:
    """Open a socket for libcurl. Raises OSError, EMFILE also when its descriptor would be one of the reserved.

    pycurl duplicates the descriptor and lets the socket go: the number that counts is the next free one.
    """
    opened = _socket.socket(family, kind, protocol)
    try:
        duplicate = os.dup(opened.fileno())
        os.close(duplicate)
        if duplicate >= ceiling():
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    except OSError:
        opened.close()
        raise
    return opened


def open_unlinked(directory: str | None) -> IO[bytes] | None:
    """Open a temporary file without a name; None when its descriptor would be one of the reserved. Raises OSError."""
    try:
        opened = tempfile.TemporaryFile(prefix="crawltool-", dir=directory)  # noqa: SIM115 -- the caller closes it
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            return None
        raise
    if opened.fileno() < ceiling():
        return opened
    opened.close()
    return None


def free() -> int:
    """Tell how many connections this process has descriptors for."""
    try:
        used = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 -- not a path of ours
    except OSError:
        used = 0
    return ceiling() - used


def are_left() -> bool:
    """Tell whether this process can open two more, as a look-up needs them."""
    try:
        ends = os.pipe()
    except OSError:
        return False
    for end in ends:
        os.close(end)
    return True


def for_look_ups() -> int:
    """Tell how many look-ups may run at once: each holds two of the reserved."""
    return max(2, min(limits.DNS_THREADS_MAX, (reserved(resource.getrlimit(resource.RLIMIT_NOFILE)[1]) - 16) // 2))
