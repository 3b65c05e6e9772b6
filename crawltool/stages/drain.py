"""How does a stage end when it is told to, or when nobody reads it any more?

The first SIGTERM, SIGINT or SIGUSR1 starts the drain, the second kills at once: after the first the system's own
action is back in force, so that it works even inside a long call of a C library. Law 4 makes that safe. Nothing here
exits: a drain ends in EndedBySignal (cli/main.py then calls die_by) or, for SIGUSR1, in Unfinished. FilterDrain is for
parse and dedup, which read on to the end of their input; TrioDrain for frontier and fetch.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Self

from crawltool import limits
from crawltool.errors import Unfinished

if TYPE_CHECKING:
    import trio

STARTERS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)

# crawltool(1) and each stage's page print SIGNALS from here: (signal, what happens).
SIGNALS: tuple[tuple[str, str], ...] = (
    (
        "SIGTERM, SIGINT",
        "The first one drains: the frontier releases nothing more, closes its output and settles its input to end of file; "
        "fetch reads to end of file, lets what is in the air land within --grace and gives the rest back; parse and dedup "
        "read on to the end of their input, which is about to come; a stage that reads a spool claims no new segment. Then "
        "the process dies of that same signal, so that shells and supervisors see the truth.",
    ),
    ("SIGUSR1", "The same drain, but the exit code is 75: run again to go on."),
    (
        "a second of these",
        "Stops at once, as does the end of the grace time. What is on disk is safe, because a crash is the normal path.",
    ),
    (
        "SIGPIPE",
        "Ignored. When the reader of the output has gone, the stage reads nothing more, drains with its output closed "
        "(fetch finishes its WARC files) and then dies of SIGPIPE (a shell shows 141).",
    ),
)


class EndedBySignal(Exception):
    """the stage has drained and must now die of this signal"""

    def __init__(self, signum: int) -> None:
        super().__init__(f"ended by {signal.Signals(signum).name}")
        self.signum = signum


class ReaderGone(EndedBySignal):
    """nobody reads the output any more"""

    def __init__(self) -> None:
        super().__init__(signal.SIGPIPE)


def die_by(signum: int) -> None:
    """Restore a signal's own action and send it to this process. Does not return."""
    signal.signal(signum, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signum})
    os.kill(os.getpid(), signum)
    os._exit(128 + signum)  # only if the signal's own action is not to kill


class Drain:
    """Catch the signals for as long as the `with` lasts; at its end die as the first one demands.

    grace_s is the time for what is under way; limits.GRACE_MARGIN_S later the process is killed, whatever it does.
    Outside the main thread no signal is caught. A `with` that ends by another exception keeps that one.
    """

    def __init__(self, grace_s: float = limits.GRACE_S) -> None:
        self.grace_s = grace_s
        self.reason: int | None = None
        self._before: dict[int, signal.Handlers | int | object] = {}

    def begin(self, signum: int) -> None:
        """Start the drain and its grace clock; a second call changes neither, but a signal outranks a gone reader."""
        if self.reason is None:
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGALRM, self._overdue)
                signal.setitimer(signal.ITIMER_REAL, self.grace_s + limits.GRACE_MARGIN_S)
            self.reason = signum
        elif self.reason == signal.SIGPIPE:
            self.reason = signum

    def conclude(self) -> None:
        """Raise what main needs to end as the signal demands; nothing when there was none."""
        if self.reason == signal.SIGPIPE:
            raise ReaderGone
        if self.reason == signal.SIGUSR1:
            raise Unfinished("stopped by SIGUSR1")
        if self.reason is not None:
            raise EndedBySignal(self.reason)

    def _caught(self, signum: int, frame: FrameType | None) -> None:
        for each in STARTERS:
            signal.signal(each, signal.SIG_DFL)
        self.begin(signum)

    def _overdue(self, signum: int, frame: FrameType | None) -> None:
        die_by(self.reason if self.reason is not None else signum)

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = {each: signal.signal(each, self._caught) for each in STARTERS}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._before:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if self.reason is None:
            # A stage that ends in a signal keeps SIG_DFL: the second one must find it until the last moment.
            for signum, handler in self._before.items():
                signal.signal(signum, handler)  # type: ignore[arg-type]
        self._before = {}
        if error is None:
            self.conclude()


class FilterDrain(Drain):
    """For synchronous filters: `stopping` is a fact to look at, `wakeup_fd` becomes readable when it turns true.

    A filter fed by a pipe does not look: its input is about to end. One fed by a spool claims no new segment.
    """

    def __init__(self, grace_s: float = limits.GRACE_S) -> None:
        super().__init__(grace_s)
        self.wakeup_fd, self._poke_fd = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    @property
    def stopping(self) -> bool:
        """Tell whether the drain has begun."""
        return self.reason is not None

    def begin(self, signum: int) -> None:
        """Start the drain."""
        super().begin(signum)
        with contextlib.suppress(BlockingIOError):
            os.write(self._poke_fd, b"\0")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            super().__exit__(kind, error, trace)
        finally:
            os.close(self.wakeup_fd)
            os.close(self._poke_fd)


class TrioDrain(Drain):
    """For frontier and fetch, entered inside trio.run: `stopping` is an event to wait for.

    `grace_ends_at` is in trio.current_time() seconds, infinity until the drain begins: what is in the air then is cut.
    """

    def __init__(self, grace_s: float = limits.GRACE_S) -> None:
        import trio  # not at the top: parse, dedup and main use this file and must start without trio

        super().__init__(grace_s)
        self._trio = trio
        self.stopping: trio.Event = trio.Event()
        self.grace_ends_at = float("inf")
        self._token = trio.lowlevel.current_trio_token()

    def begin(self, signum: int) -> None:
        """Start the drain; safe inside a signal handler."""
        super().begin(signum)
        # A handler runs between any two byte codes of any task: the event is set by the loop itself.
        with contextlib.suppress(self._trio.RunFinishedError):
            self._token.run_sync_soon(self._announce, idempotent=True)

    def _announce(self) -> None:
        if not self.stopping.is_set():
            self.grace_ends_at = self._trio.current_time() + self.grace_s
            self.stopping.set()
