"""The ring of stages ends together, and says truly why. The stages here are small programs that stand in for real ones."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Sequence

import pytest

from crawltool.stages import crawl

# As the real stages do (stages/drain), one ends of the broken pipe when who reads its lines is gone, at whatever moment that is.
ENDS_WITH_ITS_READER = "import signal; signal.signal(signal.SIGPIPE, signal.SIG_DFL)\n"
PASS_ON = "import sys\nfor line in sys.stdin.buffer:\n    sys.stdout.buffer.write(line); sys.stdout.buffer.flush()\n"
# Sends ten lines around the ring, closes its output, reads its input to the end: the protocol of a frontier.
FRONTIER = """
import sys, os
for number in range(10):
    os.write(1, b"line\\n")
    assert sys.stdin.buffer.readline() == b"line\\n"
os.close(1)
assert sys.stdin.buffer.read() == b""
"""
# Runs until it is told to stop; a stage catches the first signal and drains.
PATIENT = """
import os, signal, sys, time
told = []
def note(number, frame):
    told.append(number); signal.signal(number, signal.SIG_DFL)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, note)
os.write(1, b"up\\n"); sys.stdin.buffer.readline()
while not told:
    time.sleep(0.01)
time.sleep(0.3)  # the drain: a second signal in this time would kill at once
os.close(1); sys.stdin.buffer.read()
os.write(2, b"drained\\n")
signal.signal(told[0], signal.SIG_DFL); os.kill(os.getpid(), told[0])
"""


def ring(**programs: str) -> crawl.Ring:
    """Make a ring of these programs; the others pass lines on."""
    texts = dict.fromkeys(crawl.RING, PASS_ON) | {"frontier": FRONTIER} | programs

    def command(name: str, arguments: Sequence[str]) -> list[str]:
        return [sys.executable, "-S", "-E", "-c", ENDS_WITH_ITS_READER + texts[name]]

    return crawl.Ring(crawl.Settings(arguments={}, tick_s=0.05, capture_words=True, command=command))


def run(subject: crawl.Ring) -> tuple[crawl.Ended, bytes]:
    words: list[bytes] = []
    ended = subject.run(words.append)
    return ended, b"".join(words)


def test_a_ring_whose_frontier_is_done_ends_with_0() -> None:
    ended, words = run(ring())
    assert ended == crawl.Ended(code=0), words


def test_the_code_of_the_frontier_is_the_crawls() -> None:
    ended, _ = run(ring(frontier=FRONTIER + "\nsys.exit(69)"))
    assert ended.code == 69 and ended.culprit == "frontier"


def test_a_frontier_that_fetched_nothing_because_a_stage_died_is_not_the_culprit() -> None:
    nothing = "import sys; sys.stdin.buffer.read(); sys.exit(69)"
    ended, words = run(ring(frontier=nothing, fetch="import sys; sys.exit(74)"))
    assert (ended.code, ended.culprit) == (74, "fetch"), words


@pytest.mark.parametrize("pipe_first_s", [0.0, 0.3])  # how long the others see the broken pipe before crawl sees the death
@pytest.mark.parametrize("name", ["fetch", "parse", "dedup"])
def test_a_stage_that_is_killed_is_named_and_the_code_is_75(name: str, pipe_first_s: float) -> None:
    killed = {name: f"import os, time; os.close(0); time.sleep({pipe_first_s}); os.kill(os.getpid(), 9)"}
    ended, _ = run(ring(frontier=PATIENT, **killed))
    assert (ended.code, ended.culprit, ended.returncode) == (75, name, -signal.SIGKILL)


def test_a_stage_that_fails_gives_its_code_to_the_crawl() -> None:
    ended, _ = run(ring(frontier=PATIENT, fetch="import sys; sys.exit(74)"))
    assert (ended.code, ended.culprit) == (74, "fetch")


def test_a_frontier_that_ends_with_75_after_a_death_is_not_blamed() -> None:
    ended, _ = run(ring(frontier=PATIENT.rsplit("\n", 2)[0] + "\nsys.exit(75)", parse="import sys; sys.exit(70)"))
    assert (ended.code, ended.culprit) == (70, "parse")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
@pytest.mark.parametrize("whole_group", [False, True])
def test_a_signal_reaches_each_stage_once(number: signal.Signals, whole_group: bool) -> None:
    """A terminal signals the group, a supervisor perhaps only the parent: the stages drain in both cases, undisturbed."""
    subject = ring(frontier=PATIENT, fetch=PATIENT)

    def strike() -> None:
        deadline = time.monotonic() + 5
        while (
            not all(crawl.catches(child.pid, number) for child in list(subject._children.values())[:2])
            or len(subject._children) < 4
        ):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        time.sleep(0.1)
        for pid in [child.pid for child in subject._children.values() if whole_group][:2]:
            os.kill(pid, number)
        os.kill(os.getpid(), number)

    striker = threading.Thread(target=strike)
    # A thread that does not block the signals would get them in place of the main thread.
    signal.pthread_sigmask(signal.SIG_BLOCK, {number})
    striker.start()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    ended, words = run(subject)
    striker.join()
    assert words.count(b"drained") == 2, words
    assert ended == crawl.Ended(code=75, signum=None if number == signal.SIGUSR1 else number)


def test_a_stage_that_does_not_end_when_told_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crawltool.limits.DRAIN_S_MAX", 0.3)
    deaf = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(60)"
    ended, _ = run(ring(frontier=PATIENT, fetch=deaf, dedup="import sys; sys.exit(74)"))
    assert (ended.code, ended.culprit) == (74, "dedup")
