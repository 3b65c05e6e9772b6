"""The sieve never calls a known key new; a snapshot and the keys since make the same sieve."""

from __future__ import annotations

import errno
import os
import random
import shutil
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from crawltool.errors import DiskTrouble
from crawltool.stores.seen import Seen, Snapshot

SMALL = {"first_keys": 20, "growth": 4, "snapshot_keys": 30}
KEYS = st.integers(0, 400).map(lambda number: random.Random(number).randbytes(16))


def keys(count: int, seed: int = 1) -> list[bytes]:
    rng = random.Random(seed)
    return [rng.randbytes(16) for _ in range(count)]


def test_added_keys_are_seen_and_others_mostly_not() -> None:
    seen = Seen(Path("unused"), first_keys=2000, growth=8)
    mine, others = keys(12_000), keys(20_000, seed=2)
    seen.add(mine)
    assert all(seen.maybe(key) for key in mine)
    wrong = sum(seen.maybe(key) for key in others)
    assert wrong / len(others) < 0.025  # two layers of 1 % each
    assert len(seen) == pytest.approx(12_000, rel=0.02)


def test_two_million_keys_take_under_three_megabytes() -> None:
    assert Seen(Path("unused")).size_bytes < 3_000_000


def test_adding_again_takes_no_room() -> None:
    seen = Seen(Path("unused"), **SMALL)
    for _ in range(50):
        seen.add(keys(15))
    assert len(seen) <= 15 and len(seen._layers) == 1


def test_replayed_keys_are_seen_and_grow_the_layers() -> None:
    seen, mine = Seen(Path("unused"), **SMALL), keys(500)
    seen.replay(mine)
    assert all(seen.maybe(key) for key in mine)
    assert (len(seen), [layer.capacity for layer in seen._layers]) == (500, [20, 80, 320, 1280])
    assert sum(seen.maybe(key) for key in keys(2000, seed=2)) < 200


def test_a_snapshot_tells_whether_it_is_written(tmp_path: Path) -> None:
    seen = Seen(tmp_path / "seen", **SMALL)
    snapshot = seen.freeze()
    (tmp_path / "seen").write_text("in the way")
    with pytest.raises(OSError, match="exists"):
        snapshot.write()
    assert not snapshot.is_written
    (tmp_path / "seen").unlink()
    snapshot.write()
    assert snapshot.is_written


def test_a_snapshot_holds_what_was_added_before_freeze(tmp_path: Path) -> None:
    seen = Seen(tmp_path / "seen", **SMALL)
    first, later = keys(100), keys(1000, seed=2)
    seen.add(first)
    assert seen.is_due
    snapshot = seen.freeze()
    assert not seen.is_due and (snapshot.generation, seen.generation) == (0, 1)
    seen.add(later)
    snapshot.write()
    loaded = Seen.load(tmp_path / "seen", **SMALL)
    assert loaded.generation == 1
    assert all(loaded.maybe(key) for key in first)
    assert not all(loaded.maybe(key) for key in later)
    loaded.add(later)
    assert all(loaded.maybe(key) for key in later)


def test_keys_may_be_added_while_a_thread_writes(tmp_path: Path) -> None:
    seen = Seen(tmp_path / "seen", first_keys=1_000_000)
    rng = random.Random(3)
    seen.add(keys(1000))
    added: list[bytes] = []
    for generation in range(3):
        thread = threading.Thread(target=seen.freeze().write)
        thread.start()
        while thread.is_alive():
            added.append(rng.randbytes(16))
            seen.add(added[-1:])
        thread.join()
        assert Seen.load(tmp_path / "seen").generation == generation + 1
    assert all(seen.maybe(key) for key in added)
    assert all(Seen.load(tmp_path / "seen").maybe(key) for key in keys(1000))


def test_only_changed_layers_are_written(tmp_path: Path) -> None:
    seen = Seen(tmp_path, **SMALL)
    seen.add(keys(30))
    seen.freeze().write()
    before = (tmp_path / "layer-00.bloom").stat().st_mtime_ns
    seen.add(keys(30, seed=2))
    seen.freeze().write()
    assert (tmp_path / "layer-00.bloom").stat().st_mtime_ns == before
    assert all(Seen.load(tmp_path, **SMALL).maybe(key) for key in keys(30) + keys(30, seed=2))


def test_a_snapshot_that_failed_is_made_up_for_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Seen(tmp_path, **SMALL)
    seen.add(keys(30))

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(DiskTrouble):
            seen.freeze().write()
    assert Seen.load(tmp_path, **SMALL).generation == 0
    seen.freeze().write()
    loaded = Seen.load(tmp_path, **SMALL)
    assert loaded.generation == 2 and all(loaded.maybe(key) for key in keys(30))


@pytest.mark.parametrize("name", ["layers.json", "layer-00.bloom", "layer-01.bloom"])
def test_a_damaged_snapshot_counts_as_none(tmp_path: Path, name: str) -> None:
    seen = Seen(tmp_path, **SMALL)
    seen.add(keys(60))
    seen.freeze().write()
    content = bytearray((tmp_path / name).read_bytes())
    content[-3] ^= 0x10
    (tmp_path / name).write_bytes(content)
    loaded = Seen.load(tmp_path, **SMALL)
    assert loaded.generation == 0 and len(loaded) == 0


class SieveAndStore(RuleBasedStateMachine):
    """A frontier in small: exact store, since_snapshot rows, sieve; crashes lose what was not committed or written."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "seen"
        self.store: set[bytes] = set()
        self.since: set[tuple[int, bytes]] = set()
        self.trimmed = -1
        self.writing: Snapshot | None = None
        self.load()

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def load(self) -> None:
        self.seen = Seen.load(self.path, **SMALL)
        if self.trimmed >= self.seen.generation:
            self.seen.add(self.store)
        else:
            self.seen.add(key for generation, key in self.since if generation >= self.seen.generation)

    @rule(batch=st.lists(KEYS, max_size=40), dies=st.booleans())
    def admit(self, batch: list[bytes], dies: bool) -> None:
        new = {key for key in batch if not self.seen.maybe(key) or key not in self.store}
        assert new == set(batch) - self.store  # sieve == set
        self.seen.add(new)
        if dies:  # before the commit
            self.writing = None
            self.load()
            return
        self.store |= new
        self.since |= {(self.seen.generation, key) for key in new}

    @rule()
    def freeze(self) -> None:
        if self.writing is None:
            self.writing = self.seen.freeze()

    @rule(trims=st.booleans())
    def write(self, trims: bool) -> None:
        if self.writing is not None:
            self.writing.write()
            if trims:
                self.trimmed = self.writing.generation
                self.since = {row for row in self.since if row[0] > self.trimmed}
            self.writing = None

    @rule(loses_snapshot=st.booleans())
    def crash(self, loses_snapshot: bool) -> None:
        if loses_snapshot:
            (self.path / "layers.json").unlink(missing_ok=True)
        self.writing = None
        self.load()

    @invariant()
    def no_known_key_is_called_new(self) -> None:
        assert all(self.seen.maybe(key) for key in self.store)


TestSieveAndStore = SieveAndStore.TestCase
TestSieveAndStore.settings = settings(
    max_examples=40, stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
