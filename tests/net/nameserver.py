"""A name server on loopback: UDP, port 53 of a private network, answers late or never, and keeps a log.

`answer(name)` gives the IPv4 addresses of a name (lower case), [] for a name that does not exist, None for silence. Every
query is counted by name and type, so that a test can say how often the resolver asked.
"""

from __future__ import annotations

import heapq
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from types import TracebackType

A, AAAA = 1, 28
NXDOMAIN = 3
Answer = Callable[[str], list[str] | None]


class NameServer:
    """`with NameServer(answer, delay_s=0.05) as server:` serves until the block ends; `asked` is the log."""

    def __init__(
        self, answer: Answer, delay_s: float = 0.0, ttl_s: int = 300, address: str = "127.0.0.1", port: int = 53
    ) -> None:
        self._answer, self._delay_s, self._ttl_s = answer, delay_s, ttl_s
        self.asked: Counter[tuple[str, int]] = Counter()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self._socket.bind((address, port))
        self._due: list[tuple[float, int, bytes, tuple[str, int]]] = []
        self._serial = 0
        self._is_open = True
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> NameServer:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._is_open = False
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        while self._is_open:
            now = time.monotonic()
            while self._due and self._due[0][0] <= now:
                _, _, data, client = heapq.heappop(self._due)
                self._socket.sendto(data, client)
            wait = min(0.05, max(0.0005, self._due[0][0] - now)) if self._due else 0.05
            self._socket.settimeout(wait)
            try:
                query, client = self._socket.recvfrom(4096)
            except TimeoutError:
                continue
            self._take(query, client)

    def _take(self, query: bytes, client: tuple[str, int]) -> None:
        name, end = _name(query)
        (kind,) = struct.unpack_from("!H", query, end)
        self.asked[name, kind] += 1
        found = self._answer(name)
        if found is None:
            return
        self._serial += 1
        due = (time.monotonic() + self._delay_s, self._serial, self._reply(query, end + 4, kind, found), client)
        heapq.heappush(self._due, due)

    def _reply(self, query: bytes, end: int, kind: int, found: list[str]) -> bytes:
        records = found if kind == A else []
        flags = 0x8180 | (0 if found else NXDOMAIN)
        head = query[:2] + struct.pack("!HHHHH", flags, 1, len(records), 0, 0)
        body = [b"\xc0\x0c" + struct.pack("!HHIH", A, 1, self._ttl_s, 4) + socket.inet_aton(one) for one in records]
        return head + query[12:end] + b"".join(body)


def _name(query: bytes) -> tuple[str, int]:
    """Read the name asked for, and where it ends."""
    at, labels = 12, []
    while length := query[at]:
        labels.append(query[at + 1 : at + 1 + length].decode("latin-1").lower())
        at += 1 + length
    return ".".join(labels), at + 1
