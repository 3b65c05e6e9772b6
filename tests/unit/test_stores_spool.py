"""No kill at any step loses a published line; targets are delivered at most once."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from crawltool import limits
from crawltool.errors import DiskTrouble, NoInput
from crawltool.stores import spool
from crawltool.stores.spool import SpoolWriter
from crawltool.stores.spoolread import SpoolReader

CONTROL = b'{"type":"control","action":"a"}\n'
CANDIDATE = b'{"type":"candidate","url":"http://a.example/"}\n'
OUTCOME = b'{"type":"outcome","url":"http://a.example/","lease":"1-1","verdict":"ok"}\n'
FOLDERS = ("tmp", "new", "cur", "bad", "owners")


@pytest.fixture(autouse=True)
def _look_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SPOOL_RESCAN_S", 0.0)


def numbered(*numbers: int) -> list[bytes]:
    """Make lines that can be told apart."""
    return [b'{"type":"control","action":"%d"}\n' % number for number in numbers]


def drink(reader: SpoolReader) -> list[bytes]:
    """Read all that can be claimed now, and let go of it."""
    found: list[bytes] = []
    while (segment := reader.claim()) is not None:
        found += segment.lines()
        segment.done()
    return found


def drink_and_go(path: Path, *, at_most_once: bool = False) -> list[bytes]:
    """Read all there is as a reader that comes and goes."""
    reader = SpoolReader(path, at_most_once=at_most_once)
    found = drink(reader)
    reader.close()
    return found


def counts(path: Path) -> dict[str, int]:
    """Count the entries of each folder that has any."""
    return {name: number for name in FOLDERS if (number := len(list((path / name).iterdir())))}


def kill(one: SpoolReader | SpoolWriter) -> None:
    """Do to its flock what the kernel does when its process is killed."""
    one._lock.release()


# --- the way of a segment ---


def test_a_segment_goes_from_tmp_to_new_to_cur_and_away(tmp_path: Path) -> None:
    writer = SpoolWriter(tmp_path / "s")
    reader = SpoolReader(tmp_path / "s")
    writer.publish(numbered(1, 2))
    writer.publish(numbered(3))
    assert counts(tmp_path / "s") == {"new": 2, "owners": 1}
    segment = reader.claim()
    assert segment is not None
    assert segment.lines() == numbered(1, 2)
    assert counts(tmp_path / "s") == {"new": 1, "cur": 1, "owners": 1}
    segment.done()
    segment.done()
    assert drink(reader) == numbered(3)
    reader.close()
    writer.close()
    assert counts(tmp_path / "s") == {}


def test_a_missing_spool_is_no_input(tmp_path: Path) -> None:
    with pytest.raises(NoInput):
        SpoolReader(tmp_path / "s")


def test_an_unfinished_claim_is_published_again_at_the_close(tmp_path: Path) -> None:
    writer = SpoolWriter(tmp_path / "s")
    writer.publish(numbered(1))
    reader = SpoolReader(tmp_path / "s")
    assert reader.claim() is not None
    reader.close()
    assert drink(SpoolReader(tmp_path / "s")) == numbered(1)


def test_what_cannot_be_read_goes_to_bad_with_a_reason(tmp_path: Path) -> None:
    path = spool.create(tmp_path / "s")
    (path / "new" / "0-folder").mkdir()
    (path / "new" / "1-link").symlink_to("/etc/passwd")
    os.mkfifo(path / "new" / "2-fifo")
    (path / "new" / "3.jsonl").write_bytes(CONTROL[:-1])
    reader = SpoolReader(path)
    assert drink(reader) == [CONTROL]
    assert reader.set_aside == 3
    assert "not a regular file" in (path / "bad" / "2-fifo.reason").read_text()
    assert counts(path) == {"bad": 6, "owners": 1}


def test_a_reader_may_set_a_segment_aside(tmp_path: Path) -> None:
    SpoolWriter(tmp_path / "s").publish(numbered(1))
    reader = SpoolReader(tmp_path / "s")
    segment = reader.claim()
    assert segment is not None
    segment.bad("because")
    assert counts(tmp_path / "s") == {"bad": 2, "owners": 1}


# --- segments ---


def test_segments_close_at_their_limits_but_never_between_links_and_their_outcome() -> None:
    page = [CANDIDATE] * 700 + [OUTCOME]
    assert [len(piece) for piece in spool.cut([CONTROL] * 1000, 1000)] == [1000]
    assert [len(piece) for piece in spool.cut([CONTROL] * 2500, 1000)] == [1000, 1000, 500]
    assert [len(piece) for piece in spool.cut(page * 3, 1000)] == [1402, 701]
    assert [len(piece) for piece in spool.cut([CANDIDATE] * 2500, 1000)] == [1000, 1000, 500]
    assert [len(piece) for piece in spool.cut([b'{"type":"text"}' + b" " * limits.MIB + b"\n", OUTCOME] * 5, 1000)] == [8, 2]


def test_one_writers_order_is_kept_when_the_wall_clock_steps_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = SpoolWriter(tmp_path / "s")
    ticks = iter(range(1000, 0, -1))
    monkeypatch.setattr("time.time_ns", lambda: next(ticks))
    for number in range(10):
        writer.publish(numbered(number))
    assert drink(SpoolReader(tmp_path / "s")) == numbered(*range(10))


def test_a_forward_spool_is_full_at_its_depth_and_an_inbox_never(tmp_path: Path) -> None:
    forward, inbox = SpoolWriter(tmp_path / "f", depth_max=2), SpoolWriter(tmp_path / "i")
    for writer in (forward, inbox):
        writer.publish(numbered(1))
        assert not writer.full()
        writer.publish(numbered(2))
    assert (forward.full(), inbox.full()) == (True, False)


# --- ends and wake-ups ---


def test_a_spool_ends_when_closed_for_good_by_its_last_writer_and_empty(tmp_path: Path) -> None:
    first, second = SpoolWriter(tmp_path / "s"), SpoolWriter(tmp_path / "s")
    reader, other = SpoolReader(tmp_path / "s"), SpoolReader(tmp_path / "s")
    first.publish(numbered(1))
    first.close(end=True)
    assert reader.writers_alive()
    second.close()
    assert (reader.writers_alive(), reader.ended()) == (False, False)
    segment = other.claim()
    assert segment is not None
    assert not reader.ended(), "the other reader may die with it"
    assert other.ended()
    segment.done()
    assert reader.ended()
    third = SpoolWriter(tmp_path / "s")
    assert not reader.ended()
    third.close()
    assert not reader.ended(), "a writer that came back has opened it again"


def test_a_killed_writer_counts_as_gone_and_its_torn_file_is_removed(tmp_path: Path) -> None:
    writer = SpoolWriter(tmp_path / "s")
    (tmp_path / "s" / "tmp" / "torn").write_bytes(b"half a li")
    SpoolWriter(tmp_path / "s").close()
    assert counts(tmp_path / "s") == {"tmp": 1}, "not while another writer lives"
    kill(writer)
    SpoolWriter(tmp_path / "s")
    assert counts(tmp_path / "s") == {}


def test_a_poke_wakes_the_reader_and_a_look_takes_it_away(tmp_path: Path) -> None:
    import select

    writer, reader = SpoolWriter(tmp_path / "s"), SpoolReader(tmp_path / "s")
    fd = reader.trigger_fd()
    assert fd is not None

    def poked() -> bool:
        return bool(select.select([fd], [], [], 0)[0])

    assert not poked()
    for number in range(3):
        writer.publish(numbered(number))
    assert poked()
    assert len(drink(reader)) == 3
    assert reader.claim() is None
    assert not poked()
    writer.close(end=True)
    assert poked()


def test_a_poke_without_a_segment_is_taken_away_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import select

    monkeypatch.setattr(limits, "SPOOL_RESCAN_S", 60.0)
    writer, reader = SpoolWriter(tmp_path / "s"), SpoolReader(tmp_path / "s")
    os.utime(tmp_path / "s" / "new", (1, 1))  # long quiet
    assert (reader.claim(), reader.claim()) == (None, None)
    writer._poke()
    assert reader.claim() is None
    assert not select.select([reader.trigger_fd()], [], [], 0)[0], "a reader that waits for it would spin"
    writer.publish(numbered(1))
    assert drink(reader) == numbered(1)


def test_pokes_that_nobody_takes_never_make_the_writer_wait(tmp_path: Path) -> None:
    writer = SpoolWriter(tmp_path / "s")
    reader = SpoolReader(tmp_path / "s")
    for _ in range(70_000 // 50):
        for _ in range(50):
            writer._poke()
    writer.publish(numbered(1))
    assert drink(reader) == numbered(1)


def test_without_a_fifo_a_reader_finds_segments_by_looking(tmp_path: Path) -> None:
    path = spool.create(tmp_path / "s")
    (path / "trigger").unlink()
    (path / "trigger").write_bytes(b"")
    reader = SpoolReader(path)
    SpoolWriter(path).publish(numbered(1))
    assert reader.trigger_fd() is None
    assert drink(reader) == numbered(1)


# --- death ---


def test_what_a_dead_reader_held_is_claimed_again_and_a_living_ones_not(tmp_path: Path) -> None:
    writer = SpoolWriter(tmp_path / "s")
    dead, alive = SpoolReader(tmp_path / "s"), SpoolReader(tmp_path / "s")
    for number in range(4):
        writer.publish(numbered(number))
    assert dead.claim() is not None
    assert alive.claim() is not None
    assert dead.claim() is not None
    third = SpoolReader(tmp_path / "s")
    assert drink(third) == numbered(3)
    kill(dead)
    assert drink(third) == numbered(0, 2)
    assert counts(tmp_path / "s") == {"cur": 1, "owners": 2}


def test_a_target_is_let_go_of_before_it_is_handed_out(tmp_path: Path) -> None:
    SpoolWriter(tmp_path / "s").publish(numbered(1))
    reader = SpoolReader(tmp_path / "s", at_most_once=True)
    segment = reader.take()
    assert segment is not None
    assert counts(tmp_path / "s") == {"owners": 1}
    assert segment.lines() == numbered(1)
    segment.done()


def test_targets_of_a_dead_reader_are_set_aside_and_never_claimed(tmp_path: Path) -> None:
    SpoolWriter(tmp_path / "s").publish(numbered(1))
    dead = SpoolReader(tmp_path / "s")  # claims, and dies before it lets go
    assert dead.claim() is not None
    kill(dead)
    reader = SpoolReader(tmp_path / "s", at_most_once=True)
    assert reader.take() is None
    assert reader.set_aside == 1
    assert counts(tmp_path / "s") == {"bad": 2, "owners": 1}


class Died(BaseException):
    """the process is killed at this step"""


class Steps:
    """Lets the process die at the n-th touch of the disk; before the act or just after it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
        self.left, self.after = at // 2, bool(at % 2)
        for owner, name in ((os, "write"), (os, "fsync"), (Path, "rename"), (Path, "unlink"), (os, "open")):
            monkeypatch.setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, act: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.left -= 1
            if self.left == -1 and not self.after:
                raise Died
            result = act(*args, **kwargs)
            if self.left == -1:
                raise Died
            return result

        return counted


def die_at_every_step(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> Iterator[bool]:
    """Run act again and again, dying one step later each time, until it lives; tell whether it did."""
    for at in range(1000):
        with monkeypatch.context() as patch:
            Steps(patch, at)
            try:
                act()
                lived = True
            except Died:
                lived = False
        yield lived
        if lived:
            assert at > 4
            return
    raise AssertionError("never lived")


def test_a_writer_may_die_at_every_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writers: list[SpoolWriter] = []
    path = tmp_path / "s"

    def act() -> None:
        writers[0].publish(numbered(*range(1500)))

    writers.append(SpoolWriter(path))
    for lived in die_at_every_step(monkeypatch, act):
        kill(writers.pop())
        writers.append(SpoolWriter(path))
        assert "tmp" not in counts(path)
        found = drink_and_go(path)
        whole = (numbered(*range(1500)), numbered(*range(1000)), [])
        assert found in whole, "a segment is in whole or not at all, and in order"
        assert not lived or found == whole[0]


def test_a_reader_may_die_at_every_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s"
    writer = SpoolWriter(path)
    readers: list[SpoolReader] = []
    used: list[bytes] = []

    def act() -> None:
        while (segment := readers[0].claim()) is not None:
            used.extend(segment.lines())  # published
            segment.done()

    readers.append(SpoolReader(path))
    writer.publish(numbered(1))
    for _ in die_at_every_step(monkeypatch, act):
        kill(readers.pop())
        used += drink_and_go(path)
        assert set(used) == set(numbered(1)), "read at least once"
        assert len(used) <= 2
        used.clear()
        writer.publish(numbered(1))
        readers.append(SpoolReader(path))


def test_a_reader_of_targets_may_die_at_every_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s"
    writer = SpoolWriter(path)
    readers: list[SpoolReader] = []
    used: list[bytes] = []

    def act() -> None:
        while (segment := readers[0].take()) is not None:
            used.extend(segment.lines())
            segment.done()

    readers.append(SpoolReader(path, at_most_once=True))
    writer.publish(numbered(1))
    for lived in die_at_every_step(monkeypatch, act):
        kill(readers.pop())
        used += drink_and_go(path, at_most_once=True)
        assert len(used) == 1 if lived else len(used) <= 1
        used.clear()
        writer.publish(numbered(1))
        readers.append(SpoolReader(path, at_most_once=True))


def test_a_full_disk_publishes_nothing_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    writer = SpoolWriter(tmp_path / "s")
    real = os.write
    calls = iter(range(100))

    def full(descriptor: int, data: bytes) -> int:
        if next(calls) == 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(DiskTrouble):
        writer.publish(numbered(*range(1500)))
    assert counts(tmp_path / "s") == {}


# --- real processes ---

WRITE = """
import sys
from crawltool.stores.spool import SpoolWriter
writer = SpoolWriter(sys.argv[1], durable=False)
print("here", flush=True)
for number in range(10**9):
    writer.publish([b'{"type":"control","action":"%s-%d"}\\n' % (sys.argv[2].encode(), number)] * 3)
    print(number, flush=True)
"""
READ = """
import sys
from crawltool.stores.spoolread import SpoolReader
reader = SpoolReader(sys.argv[1])
print("here", flush=True)
while not reader.ended():
    while (segment := reader.claim()) is not None:
        sys.stdout.write(b"".join(segment.lines()).decode())
        sys.stdout.flush()
        segment.done()
"""


def start(script: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a script; it is there when this returns."""
    process = subprocess.Popen([sys.executable, "-c", script, *arguments], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"here\n"
    return process


def end(process: subprocess.Popen[bytes], signum: int = signal.SIGKILL) -> list[bytes]:
    """Kill a process; give what it printed."""
    process.send_signal(signum)
    return process.communicate()[0].splitlines(keepends=True)


def test_killed_writers_and_a_killed_reader_lose_nothing(tmp_path: Path) -> None:
    path = spool.create(tmp_path / "s")
    writers = {name: start(WRITE, str(path), name) for name in "ab"}
    reader = start(READ, str(path))
    while len(list((path / "new").iterdir())) < 30:
        pass
    used = end(reader)
    said = {name: len(end(writer)) for name, writer in writers.items()}
    used = [line for line in used if line.endswith(b"\n")]
    left = drink(SpoolReader(path))
    numbers = {
        name: {line for line in (*used, *left) if line.startswith(b'{"type":"control","action":"%s-' % name.encode())}
        for name in said
    }
    for name, published in said.items():
        assert published <= len(numbers[name]) <= published + 1, "all that were told published, at most one that was not told"
    twice = len(used) + len(left) - 3 * sum(map(len, numbers.values()))
    assert 0 <= twice <= 3, "a killed reader repeats one segment at most"
    assert not spool.writers_alive(path)


def test_two_readers_share_a_spool_and_both_see_its_end(tmp_path: Path) -> None:
    path = spool.create(tmp_path / "s")
    readers = [start(READ, str(path)) for _ in range(2)]
    writer = SpoolWriter(path, durable=False)
    for number in range(300):
        writer.publish(numbered(number))
    writer.close(end=True)
    found = [line for reader in readers for line in reader.communicate(timeout=20)[0].splitlines(keepends=True)]
    assert sorted(found) == sorted(numbered(*range(300)))
    assert counts(path) == {"owners": 2}


# --- any order of things ---


class SpoolMachine(RuleBasedStateMachine):
    """A spool behaves like a bag of segments: published, claimed by somebody, done."""

    def __init__(self) -> None:
        super().__init__()
        self.before, limits.SPOOL_RESCAN_S = limits.SPOOL_RESCAN_S, 0.0
        self.path = Path(tempfile.mkdtemp()) / "s"
        self.writers = [SpoolWriter(self.path, durable=False)]
        self.readers = [SpoolReader(self.path)]
        self.open: set[bytes] = set()  # published, not done
        self.held: list[tuple[SpoolReader, Any, bytes]] = []
        self.serial = 0

    @rule(which=st.integers(0, 9))
    def publish(self, which: int) -> None:
        """Publish one segment."""
        self.serial += 1
        lines = numbered(self.serial)
        self.writers[which % len(self.writers)].publish(lines)
        self.open.add(lines[0])

    @rule(which=st.integers(0, 9))
    def claim(self, which: int) -> None:
        """Claim; nothing may be held twice."""
        reader = self.readers[which % len(self.readers)]
        segment = reader.claim()
        if segment is None:
            assert self.open == {line for _, _, line in self.held}
            return
        (line,) = segment.lines()
        assert line in self.open
        assert line not in {held for _, _, held in self.held}
        self.held.append((reader, segment, line))

    @precondition(lambda self: self.held)
    @rule(which=st.integers(0, 9))
    def done(self, which: int) -> None:
        """Let go of one."""
        _, segment, line = self.held.pop(which % len(self.held))
        segment.done()
        self.open.remove(line)

    @rule(clean=st.booleans())
    def reader_goes(self, clean: bool) -> None:
        """Close or kill the oldest reader; another comes."""
        reader = self.readers.pop(0)
        reader.close() if clean else kill(reader)
        self.held = [one for one in self.held if one[0] is not reader]
        self.readers.append(SpoolReader(self.path))

    @rule()
    def reader_comes(self) -> None:
        """Start one more."""
        if len(self.readers) < 3:
            self.readers.append(SpoolReader(self.path))

    @rule(clean=st.booleans())
    def writer_goes(self, clean: bool) -> None:
        """Close or kill the oldest writer, in the middle of a segment; another comes."""
        writer = self.writers.pop(0)
        (self.path / "tmp" / writer._name()).write_bytes(b"half")
        writer.close() if clean else kill(writer)
        self.writers.append(SpoolWriter(self.path, durable=False))

    @invariant()
    def nothing_is_lost(self) -> None:
        """All that is published and not done is in new/ or cur/."""
        found = counts(self.path)
        assert found.get("new", 0) + found.get("cur", 0) == len(self.open)
        assert "bad" not in found

    def teardown(self) -> None:
        """A last reader finds all that nobody living holds."""
        for reader in self.readers:
            kill(reader)
        assert set(drink(SpoolReader(self.path))) == self.open
        limits.SPOOL_RESCAN_S = self.before
        shutil.rmtree(self.path.parent)


TestSpoolMachine = SpoolMachine.TestCase
TestSpoolMachine.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
