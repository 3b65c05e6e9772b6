"""A host's queue gives its entries in key order whatever is pushed, popped, removed or committed in between."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from crawltool.core.frontier import queue, rows
from crawltool.core.frontier.queue import HostQueue
from crawltool.core.frontier.rows import Entry, Table
from tests.sim.store import DictStore

PREFIX = rows.queue_prefix(7, rows.NORMAL)
STEPS = st.lists(
    st.tuples(st.sampled_from(["push", "push", "push", "pop", "remove", "commit"]), st.integers(0, 400)), max_size=400
)


@settings(max_examples=150, deadline=None)
@given(STEPS, st.integers(1, 4))
def test_a_host_queue_is_a_sorted_set(steps: list[tuple[str, int]], held: int) -> None:
    store, serial = DictStore(), 0
    model: dict[bytes, bytes] = {}
    pending: list[tuple[Table, bytes, bytes | None]] = []  # this turn's save
    before, queue.HELD = queue.HELD, held
    try:
        mine = HostQueue(PREFIX, more=False)
        for word, number in steps:
            if word == "push":
                serial += 1
                key = rows.queue_key(7, rows.NORMAL, float(number), serial)
                model[key] = rows.pack(Entry(f"http://a/{serial}"))
                pending.append((Table.QUEUE, key, model[key]))
                mine.push(key, model[key])
            elif word == "pop" and model:
                head = mine.head(lambda a, b, n: store.scan(Table.QUEUE, a, b, n))
                first = min(model)
                assert head is not None and head[0] == first and head[1] == model[first]
                mine.pop()
                del model[first]
                pending.append((Table.QUEUE, first, None))
            elif word == "remove" and model:
                key = sorted(model)[number % len(model)]
                mine.remove(key)
                del model[key]
                pending.append((Table.QUEUE, key, None))
            elif word == "commit":
                store.commit(pending)
                pending.clear()
                mine.committed()
        head = mine.head(lambda a, b, n: store.scan(Table.QUEUE, a, b, n))
        assert (head is None) == (not model)
    finally:
        queue.HELD = before
