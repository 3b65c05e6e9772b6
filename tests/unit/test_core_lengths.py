"""core/frontier/lengths: what a crash leaves is what was counted, however the rows were folded."""

from __future__ import annotations

import random

import pytest

from crawltool.core.frontier import lengths
from crawltool.core.frontier.lengths import Lengths
from crawltool.core.frontier.rows import CLASSES, Save, Table
from tests.sim.store import DictStore


def loaded(store: DictStore) -> Lengths:
    found = Lengths()
    found.load(store.get(Table.META, b"lengths"), store.scan(Table.LENGTHS, b"", b"\xff" * 9, 1 << 30))
    return found


@pytest.mark.parametrize(("rows_max", "changes_min"), [(3, 10**6), (10**6, 5), (10**6, 10**6)])
def test_a_restart_counts_what_was_saved(rows_max: int, changes_min: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lengths, "ROWS_MAX", rows_max)
    monkeypatch.setattr(lengths, "CHANGES_MIN", changes_min)
    chance, store, model = random.Random(5), DictStore(), dict[tuple[int, int], int]()
    mine = Lengths()
    for _ in range(300):
        save: Save = []
        for _ in range(chance.randrange(4)):
            host, place = chance.randrange(20), chance.randrange(CLASSES)
            mine.grow(host)
            by = 1 if model.get((host, place), 0) == 0 or chance.random() < 0.6 else -1
            model[host, place] = model.get((host, place), 0) + by
            assert mine.add(host, place, by) == model[host, place]
        mine.save_into(save)
        store.commit(save)
        if chance.random() < 0.1:
            mine = loaded(store)
    counts = loaded(store).counts
    for (host, place), count in model.items():
        assert (counts[host * CLASSES + place] if host * CLASSES < len(counts) else 0) == count
    assert len(store.rows[Table.LENGTHS]) <= max(rows_max, 1)


def test_a_count_below_zero_is_a_bug() -> None:
    mine = Lengths()
    mine.grow(1)
    with pytest.raises(OverflowError):
        mine.add(1, 0, -1)
