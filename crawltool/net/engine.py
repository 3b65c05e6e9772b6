"""How are thousands of exchanges carried at once? libcurl's multi interface on one trio task.

libcurl's sockets are watched by net/waiting.py; the driver task here waits for them and for libcurl's timer, and wakes the
parked task of each exchange that ended. socket_action runs only in the driver and never inside a callback; handles are added
and removed only by tasks, which cannot run while socket_action does. libcurl never resolves: the caller names the address,
and the guard judges it when the socket is opened (law 10). The import surface of net/.
"""

from __future__ import annotations

import heapq
import math
import os
import ssl
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from urllib.parse import urlsplit

import pycurl
import trio

from crawltool.errors import BadPolicy
from crawltool.net import descriptors, guard
from crawltool.net.asking import EngineSettings, Exchange, Request
from crawltool.net.body import Body, BodyMemory
from crawltool.net.handle import Handle, Shared
from crawltool.net.kept import KeptSockets
from crawltool.net.waiting import Wait, best_wait

__all__ = ["Body", "Engine", "EngineSettings", "Exchange", "Request"]

HANDLES_KEPT = 4096  # idle handles kept for use again
BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")


class Engine:
    """`async with Engine(settings) as engine: exchange = await engine.exchange(request)`, from any number of tasks."""

    def __init__(self, settings: EngineSettings | None = None) -> None:
        self.settings = settings or EngineSettings()
        self.memory = BodyMemory(self.settings.body_memory_bytes)
        self._free: list[Handle] = []
        self._flying: dict[int, Handle] = {}
        self._serial = 0
        self._timer_at = math.inf  # when libcurl wants to be called, trio's clock
        self._late: list[tuple[float, int]] = []  # (trio's deadline of the first byte, serial): a heap
        self._trouble: BaseException | None = None  # of a callback, raised by the driver
        self._wait: Wait

    @property
    def in_flight(self) -> int:
        """Tell how many exchanges are in the air."""
        return len(self._flying)

    async def __aenter__(self) -> Engine:
        settings = self.settings
        idle_max = min(settings.connections_kept, descriptors.ceiling() // 4)  # the rest is for connections in use
        pins = await _pin_of(settings.proxy) if settings.proxy else []
        kept = KeptSockets(idle_max)
        self._shared = Shared(settings, find_bundle(settings.ca_file), self.memory, pins, kept)
        self._stack = AsyncExitStack()
        self._nursery = await self._stack.enter_async_context(trio.open_nursery())
        self._wait = best_wait(settings.use_epoll, self._nursery)
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)
        self._multi.setopt(pycurl.M_MAXCONNECTS, idle_max)
        self._nursery.start_soon(self._drive)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._nursery.cancel_scope.cancel()
        try:
            return await self._stack.__aexit__(kind, error, trace)
        finally:
            self._close()

    def _close(self) -> None:
        self._wait.close()
        for handle in list(self._flying.values()):
            handle.is_orphaned = True
            self._land(handle, 0, "")
        self._multi.close()
        for handle in self._free:
            handle.easy.close()
        self._free.clear()

    async def exchange(self, request: Request) -> Exchange:
        """Ask once and tell what came of it. A failure of the asked side is data in the Exchange.

        Raises DiskTrouble when a body's temporary file cannot be written, what `want` raised, and
        trio.ClosedResourceError when the engine is closed meanwhile. Cancelling returns everything.
        """
        refused = self._refuse(request)
        handle = self._free.pop() if self._free else Handle(self._shared)
        why = refused or handle.begin(request)
        if why is not None:
            self._free.append(handle)
            await trio.lowlevel.checkpoint()
            return Exchange(time.monotonic(), error="blocked_address" if refused else "malformed", reason=why)
        await self._fly(handle)
        if handle.is_stale:  # nothing was sent: the request goes out once, on a fresh connection
            handle.begin(request, fresh=True)
            await self._fly(handle)
        try:
            return handle.exchange()
        finally:
            self._put_back(handle)

    def _refuse(self, request: Request) -> str | None:
        """Through a proxy the host's own address is judged before the request: libcurl only sees the proxy's."""
        if not self.settings.proxy:
            return None
        return guard.judge(request.address, request.typed, self.settings.allow_nets)

    async def _fly(self, handle: Handle) -> None:
        self._serial += 1
        handle.serial = self._serial
        handle.task = trio.lowlevel.current_task()
        self._flying[handle.serial] = handle
        self._multi.add_handle(handle.easy)

        def abort(_: Callable[[], None]) -> trio.lowlevel.Abort:
            handle.task = None  # the driver must not wake it a second time
            return trio.lowlevel.Abort.SUCCEEDED

        try:
            await trio.lowlevel.wait_task_rescheduled(abort)
            if handle.is_orphaned:
                raise trio.ClosedResourceError("the engine was closed")
        except BaseException:
            handle.task = None
            if handle.serial in self._flying:
                self._land(handle, 0, "")
            handle.body.close()
            self._put_back(handle)
            raise

    def _put_back(self, handle: Handle) -> None:
        if len(self._free) < HANDLES_KEPT:
            self._free.append(handle)
        else:
            handle.easy.close()

    def _land(self, handle: Handle, code: int, message: str) -> None:
        """Take a handle out of the multi and wake its task if it still waits."""
        del self._flying[handle.serial]
        self._multi.remove_handle(handle.easy)
        self._wait.settle()
        handle.code, handle.message, handle.ended = code, message, time.monotonic()
        if handle.task is not None:
            trio.lowlevel.reschedule(handle.task)
            handle.task = None

    async def _drive(self) -> None:
        """Wait, act, wake, for as long as the engine is open."""
        while True:
            ready = await self._wait.ready(min(self._timer_at, self._late[0][0] if self._late else math.inf))
            for descriptor, bits in ready:
                self._act(descriptor, bits)
            if trio.current_time() >= self._timer_at:
                self._timer_at = math.inf  # libcurl names the next one while it acts
                self._act(pycurl.SOCKET_TIMEOUT, 0)
            self._reap()
            self._watch_first_bytes()

    def _act(self, descriptor: int, bits: int) -> None:
        self._multi.socket_action(descriptor, bits)
        self._wait.settle()
        if self._trouble is not None:
            raise self._trouble

    def _reap(self) -> None:
        left = 1
        while left:
            left, done, failed = self._multi.info_read()
            for easy in done:
                easy.handle.note_kept()
                self._land(easy.handle, 0, "")
            for easy, code, message in failed:
                self._land(easy.handle, code, message)

    def _watch_first_bytes(self) -> None:
        """Start the clock of requests just sent; end those whose answer did not begin in time."""
        now = trio.current_time()
        late, flying = self._late, self._flying
        for handle in self._shared.asked:
            heapq.heappush(late, (now + handle.request.timeout_first_byte_s, handle.serial))
        self._shared.asked.clear()
        while late and late[0][0] <= now:
            handle_late = flying.get(heapq.heappop(late)[1])
            if handle_late is not None and not handle_late.header_size:
                handle_late.is_first_byte_late = True
                self._land(handle_late, pycurl.E_OPERATION_TIMEDOUT, "")
        if len(late) > 2 * len(flying) + 1024:
            self._late = [entry for entry in late if entry[1] in flying]
            heapq.heapify(self._late)

    # Callbacks of libcurl: they record and return.

    def _on_socket(self, what: int, descriptor: int, multi: object, data: object) -> None:
        try:
            self._wait.watch(descriptor, what)
        except OSError as error:  # raised by the driver: pycurl would swallow it
            self._trouble = error

    def _on_timer(self, timeout_ms: int) -> None:
        self._timer_at = math.inf if timeout_ms < 0 else trio.current_time() + timeout_ms / 1000
        self._wait.wake(self._timer_at)


def find_bundle(named: str | None = None) -> str:
    """Give the file of CA certificates: the named one, SSL_CERT_FILE, the system's, else certifi's.

    pycurl's wheels carry their own OpenSSL, whose built-in path need not exist on this system.
    """
    if named:
        return named
    for path in (os.environ.get("SSL_CERT_FILE"), ssl.get_default_verify_paths().cafile, *BUNDLES):
        if path and Path(path).is_file():
            return path
    import certifi  # comes with httpx; loaded only where the system has no bundle

    return str(certifi.where())


async def _pin_of(proxy: str) -> list[str]:
    """Resolve the proxy's name for libcurl, which never resolves. Raises BadPolicy when it has no address."""
    parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    host, port = parts.hostname or "", parts.port or 1080
    try:
        found = await trio.socket.getaddrinfo(host, port, type=trio.socket.SOCK_STREAM)
    except OSError as error:
        raise BadPolicy(f"--proxy {proxy}: {error}") from None
    address = str(found[0][4][0])
    return [f"{host}:{port}:{f'[{address}]' if ':' in address else address}"]
