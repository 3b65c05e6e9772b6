"""Which addresses does a host name have?

getaddrinfo, so that names mean here what they mean in every other program (hosts file, nsswitch.conf, search list); in
threads of its own limiter, so that nothing else waits for slow names; a cache bounded in age and size; one look-up in flight
per name. A silent name holds its thread until the system's resolver gives up: healthy names wait for a thread, but the time
they wait counts against nobody. Loopback names never leave the machine (RFC 6761 section 6.3) and literal addresses need no
look-up. Called by the fetch stage for `kind: address` targets and by net/transport.py; libcurl never resolves.
"""

from __future__ import annotations

import socket
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Literal

import trio

from crawltool import limits
from crawltool.errors import Misuse
from crawltool.net import descriptors

Look = Callable[[str], list[str]]  # host -> addresses; raises OSError as getaddrinfo does
Reason = Literal["no_such_name", "temporary", "own_trouble"]
_FINAL = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})


class NoName(Exception):
    """The name has no address now. `reason` is no_such_name (then `final` is true) or temporary; `detail` says more.

    own_trouble means that nobody could be asked, because this machine has no descriptor left: it says nothing of the name.
    """

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail

    @property
    def final(self) -> bool:
        """Tell whether asking again is of no use."""
        return self.reason == "no_such_name"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a name led to: addresses in the order to try them, seconds they may be used, and the port to connect to."""

    addresses: list[str]
    ttl_s: float
    port: int


@dataclass(frozen=True, slots=True)
class Pin:
    """One --resolve HOST:PORT:ADDR[:PORT]: connect to `address` (and `to_port`) for that host and port."""

    host: str  # lower case, or * for every host
    port: int
    address: str
    to_port: int

    def fits(self, host: str, port: int) -> bool:
        """Tell whether this pin is meant for a host (lower case) and port."""
        return self.port == port and self.host in ("*", host)


def read_pin(text: str) -> Pin:
    """Read HOST:PORT:ADDR[:PORT]; IPv6 addresses stand in brackets. Raises Misuse when it cannot be meant."""
    try:
        host, rest = _bracketed(text)
        port, _, rest = rest.partition(":")
        address, rest = _bracketed(rest)
        to_port = rest or port
        if not host or not all(0 < int(one) < 65_536 for one in (port, to_port)):
            raise ValueError(text)
        return Pin(_plain(host), int(port), str(ip_address(address)), int(to_port))
    except ValueError:
        raise Misuse(f"--resolve {text}: not HOST:PORT:ADDR[:PORT]") from None


def _bracketed(text: str) -> tuple[str, str]:
    """Split the first part from the rest; a part in brackets may hold colons."""
    if text.startswith("["):
        first, _, rest = text[1:].partition("]")
        return first, rest.removeprefix(":")
    first, _, rest = text.partition(":")
    return first, rest


def _plain(host: str) -> str:
    return host.strip("[]").rstrip(".").lower()


def look_up(host: str) -> list[str]:
    """Ask the system's resolver; blocks. Addresses come in the system's order (RFC 6724), each once."""
    found = socket.getaddrinfo(host.encode("ascii"), None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class _Place:
    """A place among the threads, taken before the look-up's time begins; trio gives it back when the thread has ended."""

    def __init__(self, threads: trio.CapacityLimiter) -> None:
        self._threads = threads
        self.has_thread = False

    async def acquire_on_behalf_of(self, borrower: object) -> None:
        self.has_thread = True

    def release_on_behalf_of(self, borrower: object) -> None:
        self._threads.release_on_behalf_of(self)


class Resolver:
    """`answer = await resolver.resolve(host, port)`, from any number of tasks.

    `limit` look-ups run at once, each in a thread (none: as many as there are descriptors for, at most
    limits.DNS_THREADS_MAX). One that takes longer than `timeout_s` is answered `temporary`; its thread stays taken until the
    system's resolver lets go of it.
    """

    def __init__(
        self,
        limit: int | None = None,
        *,
        pins: Iterable[Pin] = (),
        timeout_s: float = limits.DNS_S_MAX,
        ttl_s: float = limits.ADDRESS_TTL_S,
        now: Callable[[], float] = time.monotonic,
        look: Look = look_up,
    ) -> None:
        self._pins = tuple(pins)
        self._timeout_s = timeout_s
        self._ttl_s = ttl_s
        self._now = now
        self._look = look
        self._threads = trio.CapacityLimiter(limit or descriptors.for_look_ups())
        self._known: OrderedDict[str, tuple[float, list[str] | NoName]] = OrderedDict()
        self._asking: dict[str, trio.Event] = {}

    def connect_port(self, host: str, port: int) -> int:
        """Tell which port to connect to: another one only where a pin says so."""
        pin = self._pin(_plain(host), port)
        return pin.to_port if pin else port

    def _pin(self, host: str, port: int) -> Pin | None:
        return next((pin for pin in self._pins if pin.fits(host, port)), None)

    async def resolve(self, host: str, port: int) -> Answer:
        """Give the addresses of a host. Raises NoName."""
        await trio.lowlevel.checkpoint_if_cancelled()
        plain = _plain(host)
        pin = self._pin(plain, port)
        if pin is not None:
            return Answer([pin.address], self._ttl_s, pin.to_port)
        fixed = _fixed(plain)
        if fixed is not None:
            return Answer(fixed, self._ttl_s, port)
        while True:
            known = self._recall(plain)
            if known is not None:
                return self._answer(known, port)
            event = self._asking.get(plain)
            if event is None:
                await self._ask(plain)
            else:
                await event.wait()  # whoever asks may be cancelled: then the next of us asks

    def _answer(self, known: tuple[float, list[str] | NoName], port: int) -> Answer:
        until, found = known
        if isinstance(found, NoName):
            raise NoName(found.reason, found.detail)
        return Answer(list(found), max(0.0, until - self._now()), port)

    def _recall(self, host: str) -> tuple[float, list[str] | NoName] | None:
        known = self._known.get(host)
        if known is None or known[0] <= self._now():
            return None
        self._known.move_to_end(host)
        return known

    def _remember(self, host: str, ttl_s: float, found: list[str] | NoName) -> None:
        self._known[host] = (self._now() + ttl_s, found)
        self._known.move_to_end(host)
        while len(self._known) > limits.ADDRESSES_MAX:
            self._known.popitem(last=False)

    async def _ask(self, host: str) -> None:
        self._asking[host] = event = trio.Event()
        try:
            found = await self._look_in_time(host)
            if isinstance(found, NoName) and found.reason == "own_trouble":
                raise found  # nothing was learned: who waits for the same name asks again
            is_temporary = isinstance(found, NoName) and not found.final
            self._remember(host, limits.ADDRESS_RETRY_S if is_temporary else self._ttl_s, found)
        finally:
            del self._asking[host]
            event.set()

    async def _look_in_time(self, host: str) -> list[str] | NoName:
        """Look up in a thread. The wait for a free one is not the name's own time."""
        place = _Place(self._threads)
        await self._threads.acquire_on_behalf_of(place)
        try:
            with trio.move_on_after(self._timeout_s):
                return await trio.to_thread.run_sync(self._look_safely, host, abandon_on_cancel=True, limiter=place)  # type: ignore[arg-type]  # trio takes whatever has the two methods
        finally:
            if not place.has_thread:
                self._threads.release_on_behalf_of(place)
        return NoName("temporary", f"no answer within {self._timeout_s:g} s")

    def _look_safely(self, host: str) -> list[str] | NoName:
        """Look up in a thread; every failure comes back as a value."""
        try:
            found = self._look(host)
        except socket.gaierror as error:
            return _why(error)
        except UnicodeError:
            return NoName("no_such_name", "not a host name")
        except OSError as error:
            return NoName("own_trouble", str(error.strerror or error))
        return found or NoName("no_such_name", "no address")


def _why(error: socket.gaierror) -> NoName:
    """Tell whose fault a failure is. The resolver says "no such name", too, when it could not open its own files."""
    if error.errno == socket.EAI_SYSTEM or not descriptors.are_left():
        return NoName("own_trouble", str(error.strerror or error))
    return NoName("no_such_name" if error.errno in _FINAL else "temporary", str(error.strerror or error))


def _fixed(host: str) -> list[str] | None:
    """Give the addresses that need no look-up: a literal's own, a loopback name's; None for other names."""
    if host == "localhost" or host.endswith(".localhost"):
        return ["127.0.0.1", "::1"]
    try:
        return [str(ip_address(host))]
    except ValueError:
        return None
