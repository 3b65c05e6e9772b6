"""How do the stages of a crawl run together, and how do they end together?

The porcelain's engine room: real processes joined to a ring by pipes, frontier | fetch | parse | dedup | (frontier), all
in the caller's process group so that Ctrl-C reaches every one. It reads no record. When a stage dies, the ring is
drained: frontier and fetch are told to stop, parse and dedup read on to the end of their input. Called by cli/crawl,
which shows what goes on at every tick.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from math import inf
from pathlib import Path

from crawltool import limits
from crawltool.errors import NothingFetched, Unfinished

RING = ("frontier", "fetch", "parse", "dedup")
LAST_WORDS_S = 2.0
LEADERS = ("frontier", "fetch")  # who is told to stop; the others end when their input does
STOPPERS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
F_SETPIPE_SZ = 1031  # fcntl has the name only since Linux headers that some builds lack
WITHIN = "CRAWLTOOL_WITHIN"  # tells a stage that crawl sums up for all
# Set by a person for one command, these would derail a stage whose input and output are the ring.
OWN_VARIABLES = ("INPUT", "OUTPUT", "ROUTE", "QUIET", "DIR")


def command(name: str, arguments: Sequence[str]) -> list[str]:
    """Give the command line of a stage, run by this same interpreter."""
    # -P keeps a stray module in the working directory from being imported; a bare checkout needs that directory.
    checkout = Path(__file__).resolve().parents[2] == Path.cwd()
    return [sys.executable, *([] if checkout else ["-P"]), "-m", "crawltool", name, *arguments]


def environment(**more: str) -> dict[str, str]:
    """Give the environment of a stage."""
    own = {f"CRAWLTOOL_{name}" for name in OWN_VARIABLES}
    return {name: value for name, value in os.environ.items() if name not in own} | more


def run_once(name: str, arguments: Sequence[str]) -> int:
    """Run one command before the ring, its input and stderr ours; give its exit code (negative: a signal)."""
    return subprocess.run(command(name, arguments), env=environment(), check=False).returncode


@dataclasses.dataclass(frozen=True)
class Settings:
    """What runs, and how it is watched."""

    arguments: Mapping[str, Sequence[str]]  # per stage, what follows its name
    tick_s: float = 0.2  # how often the caller is called
    capture_words: bool = False  # stderr of the stages goes to the caller's tick instead of ours
    command: Callable[[str, Sequence[str]], list[str]] = command  # tests put other programs into the ring


@dataclasses.dataclass
class Ended:
    """How the ring ended. code: exit code of the crawl; culprit: the stage that died of itself; signum: what stopped us."""

    code: int = 0
    culprit: str | None = None
    returncode: int = 0
    signum: int | None = None


class Ring:
    """The running stages."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._order: list[str] = []  # as they ended
        self._words: int | None = None
        self._signals: list[int] = []
        self._drain_began: float | None = None
        self._terminate_at = inf

    def run(self, tick: Callable[[bytes], None]) -> Ended:
        """Start all, wait for the end of all. tick gets what the stages wrote on stderr since, when it is captured."""
        before = {number: signal.signal(number, self._note) for number in STOPPERS}
        watched = {signal.SIGCHLD, *STOPPERS}
        try:
            self._start()
            # Only now: a blocked signal would be inherited by the children.
            signal.pthread_sigmask(signal.SIG_BLOCK, watched)
            while len(self._order) < len(self._children):
                self._wait(watched)
                tick(self._read_words())
            tick(self._read_words())
            return self._ending()
        finally:
            self._kill()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, watched)
            for number, handler in before.items():
                signal.signal(number, handler)

    def _note(self, number: int, frame: object) -> None:
        self._signals.append(number)

    def _start(self) -> None:
        """Start the stages in ring order; the last one's output is the first one's input."""
        pipes = [_pipe() for _ in RING]
        words_in = None
        if self._settings.capture_words:
            self._words, words_in = os.pipe()
            os.set_blocking(self._words, False)
        try:
            for position, name in enumerate(RING):
                self._children[name] = subprocess.Popen(
                    self._settings.command(name, self._settings.arguments.get(name, ())),
                    stdin=pipes[position - 1][0],
                    stdout=pipes[position][1],
                    stderr=words_in,
                    env=environment(**{WITHIN: "crawl"}),
                )
        finally:
            for descriptor in (*(end for pipe in pipes for end in pipe), *([words_in] if words_in is not None else [])):
                os.close(descriptor)

    def _wait(self, watched: set[signal.Signals]) -> None:
        """Wait for a signal or the next tick, then do what it asks."""
        caught = signal.sigtimedwait(watched, self._settings.tick_s)
        # After SIGSTOP and SIGCONT the call may come back with a signal that was never sent: only ours count.
        if caught is not None and caught.si_signo in STOPPERS:
            self._signals.append(caught.si_signo)
        self._pass_on()
        for name, child in self._children.items():
            if name not in self._order and child.poll() is not None:
                self._order.append(name)
                if child.returncode != 0:
                    self._drain(name)
        if self._drain_began is not None and time.monotonic() > self._terminate_at:
            self._terminate_at = inf
            self._send(signal.SIGTERM, LEADERS)
        if self._drain_began is not None and time.monotonic() > self._drain_began + limits.DRAIN_S_MAX:
            self._kill()

    def _pass_on(self) -> None:
        """See to it that the stages get the signal we got: once, for a second one means `at once`.

        A terminal or a supervisor signals the whole group, a person perhaps only us. A stage that has it no longer
        catches it (stages/drain), so whoever still does has not got it, or has only just started.
        """
        if not self._signals:
            return
        self._drain_began = self._drain_began or time.monotonic()
        if len(self._signals) > 1:
            self._send(self._signals[1], RING)
        elif time.monotonic() > self._drain_began + self._settings.tick_s / 2:
            self._send(self._signals[0], [name for name in LEADERS if catches(self._children[name].pid, self._signals[0])])

    def _drain(self, ended: str) -> None:
        """A stage has died: let the others end in order.

        The frontier ends when its input does: a stage behind it is about to die, and must be able to say of what.
        """
        if self._drain_began is None:
            self._drain_began = time.monotonic()
            self._terminate_at = self._drain_began + (LAST_WORDS_S if ended == "frontier" else 0.0)

    def _send(self, number: int, names: Sequence[str]) -> None:
        for name in names:
            if name in self._children and name not in self._order:
                with contextlib.suppress(ProcessLookupError):
                    self._children[name].send_signal(number)

    def _kill(self) -> None:
        for name, child in self._children.items():
            if child.poll() is None:
                child.kill()
                child.wait()
            if name not in self._order:
                self._order.append(name)

    def _read_words(self) -> bytes:
        parts: list[bytes] = []
        while self._words is not None:
            try:
                part = os.read(self._words, limits.PIPE_READ_BYTES)
            except BlockingIOError:
                break
            if not part:
                break
            parts.append(part)
        return b"".join(parts)

    def _ending(self) -> Ended:
        """Decide what the crawl's end is: a signal to us, else the first stage that died of itself, else the frontier's."""
        codes = {name: self._children[name].returncode for name in self._order}
        if self._signals:
            number = self._signals[0]
            return Ended(code=Unfinished.exit_code, signum=None if number == signal.SIGUSR1 else number)
        # SIGPIPE and SIGTERM are what the death of another stage, and our drain, did to a stage.
        effects = (0, -signal.SIGPIPE, -signal.SIGTERM, Unfinished.exit_code)
        culprits = [name for name in self._order if codes[name] not in effects]
        # A frontier whose fetch died has fetched nothing, too: its 69 says why only when it stands alone.
        culprit = next((name for name in culprits if codes[name] != NothingFetched.exit_code), next(iter(culprits), None))
        culprit = culprit or next((name for name in self._order if name != "frontier" and codes[name] != 0), None)
        if culprit is None:
            return Ended(code=_code(codes["frontier"]))
        return Ended(code=_code(codes[culprit]), culprit=culprit, returncode=codes[culprit])


def catches(pid: int, number: int) -> bool:
    """Tell whether a process has a handler for a signal; no, when it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    mask = next((line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:")), "0")
    return bool(int(mask, 16) >> (number - 1) & 1)


def _code(returncode: int) -> int:
    return Unfinished.exit_code if returncode < 0 else returncode


def _pipe() -> tuple[int, int]:
    """Make a pipe, as large as the kernel lets us: fewer switches between the stages."""
    reader, writer = os.pipe()
    with contextlib.suppress(OSError):  # not Linux, or the user's share of pipe memory is used up: 64 KiB will do
        fcntl.fcntl(writer, F_SETPIPE_SZ, limits.PIPE_BYTES)
    return reader, writer
