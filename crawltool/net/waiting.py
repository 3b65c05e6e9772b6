"""How does the engine learn that one of libcurl's sockets is ready?

Two ways with one shape. EpollWait registers every socket in one epoll, and a single trio task waits for that descriptor.
TaskWait, for systems without epoll, has one waiting task per socket and direction. Linux tests force that path too.
`watch` is called from inside libcurl's socket callback and only records; `settle` runs afterwards, when socket_action has
returned, and does what may cancel tasks or close descriptors. Called by net/engine.py only.
"""

from __future__ import annotations

import os
import select
from typing import Protocol

import trio

READ, WRITE, FAULT, REMOVE = 1, 2, 4, 4  # libcurl's CURL_CSELECT_* and CURL_POLL_* bits
BATCH = 512  # ready sockets handled before other tasks get their turn


class Wait(Protocol):
    """What the engine's driver needs."""

    def watch(self, descriptor: int, what: int) -> None: ...
    def settle(self) -> None: ...
    async def ready(self, deadline: float) -> list[tuple[int, int]]: ...
    def wake(self, deadline: float) -> None: ...
    def close(self) -> None: ...


class _Waker:
    """A sleep that ends at a deadline that others may bring forward (trio's clock)."""

    def __init__(self) -> None:
        self._scope: trio.CancelScope | None = None

    def wake(self, deadline: float) -> None:
        """Let the waiting driver go on no later than `deadline`."""
        if self._scope is not None and deadline < self._scope.deadline:
            self._scope.deadline = deadline


class EpollWait(_Waker):
    """All sockets in one epoll, one task waiting for it."""

    def __init__(self) -> None:
        super().__init__()
        self._epoll = select.epoll()
        self._watched: dict[int, int] = {}

    def watch(self, descriptor: int, what: int) -> None:
        """Record what libcurl wants of a socket."""
        if self._epoll.closed:
            return
        if what == REMOVE:
            if self._watched.pop(descriptor, None) is not None:
                self._epoll.unregister(descriptor)
            return
        mask = (select.EPOLLIN if what & READ else 0) | (select.EPOLLOUT if what & WRITE else 0)
        if descriptor in self._watched:
            self._epoll.modify(descriptor, mask)
        else:
            self._epoll.register(descriptor, mask)
        self._watched[descriptor] = what

    def settle(self) -> None:
        """Nothing waits until socket_action returns: epoll calls neither cancel nor wake anybody."""

    async def ready(self, deadline: float) -> list[tuple[int, int]]:
        """Wait for sockets or the deadline; give (descriptor, CSELECT bits)."""
        with trio.CancelScope(deadline=deadline) as self._scope:
            await trio.lowlevel.wait_readable(self._epoll.fileno())
        self._scope = None
        bits = []
        for descriptor, mask in self._epoll.poll(0, BATCH):
            ready = (READ if mask & select.EPOLLIN else 0) | (WRITE if mask & select.EPOLLOUT else 0)
            bits.append((descriptor, ready | FAULT if mask & (select.EPOLLERR | select.EPOLLHUP) else ready))
        return bits

    def close(self) -> None:
        self._epoll.close()


class _Watched:
    """One socket of TaskWait: a duplicate descriptor of our own, what libcurl wants of it, and who waits for it."""

    __slots__ = ("descriptor", "duplicate", "scopes", "wish")

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.duplicate = os.dup(descriptor)
        self.wish = 0
        self.scopes: dict[int, trio.CancelScope] = {}


class TaskWait(_Waker):
    """One waiting task per socket and direction, each for one report.

    libcurl closes a socket right after it says REMOVE, and trio must not see a descriptor closed under a waiting task:
    the tasks wait on a duplicate, which is closed when the last of them has left.
    """

    def __init__(self, nursery: trio.Nursery) -> None:
        super().__init__()
        self._nursery = nursery
        self._watched: dict[int, _Watched] = {}
        self._changed: list[_Watched] = []
        self._ready: dict[int, int] = {}
        self._is_closed = False

    def watch(self, descriptor: int, what: int) -> None:
        """Record what libcurl wants of a socket."""
        if self._is_closed:
            return
        if what == REMOVE:
            self._ready.pop(descriptor, None)
            watched = self._watched.pop(descriptor, None)
            if watched is None:
                return
            watched.wish = 0
        else:
            watched = self._watched.get(descriptor) or self._watched.setdefault(descriptor, _Watched(descriptor))
            watched.wish = what
        self._changed.append(watched)

    def settle(self) -> None:
        """Start and stop tasks until they fit the wishes."""
        while self._changed:
            watched = self._changed.pop()
            for bit in (READ, WRITE):
                scope = watched.scopes.get(bit)
                if watched.wish & bit and scope is None:
                    watched.scopes[bit] = trio.CancelScope()
                    self._nursery.start_soon(self._wait, watched, bit)
                elif scope is not None and not watched.wish & bit:
                    scope.cancel()
            self._let_go(watched)

    def _let_go(self, watched: _Watched) -> None:
        if not watched.wish and not watched.scopes and watched.duplicate >= 0:
            os.close(watched.duplicate)
            watched.duplicate = -1

    async def _wait(self, watched: _Watched, bit: int) -> None:
        try:
            with watched.scopes[bit] as scope:
                await (trio.lowlevel.wait_readable if bit == READ else trio.lowlevel.wait_writable)(watched.duplicate)
        finally:
            del watched.scopes[bit]
            self._let_go(watched)
        if watched.wish & bit and not scope.cancelled_caught:
            self._ready[watched.descriptor] = self._ready.get(watched.descriptor, 0) | bit
        self._changed.append(watched)  # the driver settles after it has acted: until then the socket stays ready
        self.wake(trio.current_time())

    async def ready(self, deadline: float) -> list[tuple[int, int]]:
        """Wait for reports or the deadline; give (descriptor, CSELECT bits)."""
        with trio.CancelScope(deadline=deadline) as self._scope:
            if self._ready or self._changed:
                await trio.lowlevel.checkpoint()
            else:
                await trio.sleep_forever()
        self._scope = None
        bits = list(self._ready.items())
        self._ready.clear()
        return bits

    def close(self) -> None:
        """Close what is left, after the nursery's tasks have ended; from now on nothing is watched."""
        self._is_closed = True
        self._changed.clear()
        for watched in self._watched.values():
            watched.wish = 0
            self._let_go(watched)
        self._watched.clear()


def best_wait(use_epoll: bool, nursery: trio.Nursery) -> Wait:
    """Choose epoll where it is wanted and exists."""
    if use_epoll and hasattr(select, "epoll"):
        return EpollWait()
    return TaskWait(nursery)
