"""Who may send what: the inbox everything, the input what was named, others candidates."""

from __future__ import annotations

import shutil
from pathlib import Path

from crawltool import records
from crawltool.core.frontier.turn import Event
from crawltool.stages.frontierinputs import Doors
from crawltool.stages.sources import open_async_source
from crawltool.stores import spool

LINES = [
    records.encode(records.Candidate(url="http://a.example/")),
    records.encode(records.Control(action="pause")),
    records.encode(records.Outcome(url="http://a.example/", lease="1-1", kind="page", verdict="ok")),
    records.encode(records.Text(url="http://a.example/", lease="1-1", text="")),
    b"no record\n",
]


class House:
    """A crawl directory with its doors, and what came in by them."""

    def __init__(self, folder: Path, accept: tuple[str, ...] = ("candidate", "outcome")) -> None:
        self.dir = folder
        (folder / "input").write_bytes(b"".join(LINES))
        inbox = open_async_source(f"spool:{spool.create(folder / 'inbox')}", endless=True)
        self.doors = Doors(folder, open_async_source(str(folder / "input")), inbox, accept)
        self.refused: list[str] = []

    def put(self, name: str) -> None:
        writer = spool.SpoolWriter(self.dir / name)
        writer.publish(LINES)
        writer.close()

    def events(self) -> dict[str, list[Event]]:
        found: dict[str, list[Event]] = {}
        while (batch := self.doors.inputs.poll()) is not None:
            for event in self.doors.events(batch, lambda line, why: self.refused.append("bad"), self.refused.append):
                found.setdefault(event.channel, []).append(event)
            batch.done()
        return found


def kinds(events: list[Event]) -> list[str]:
    return [type(event.record).__name__ for event in events]


def test_each_door_lets_in_what_it_may(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.put("inbox")
    house.put("inbox.d/feeds")
    assert house.doors.rescan() == []
    found = house.events()
    assert kinds(found[""]) == ["Candidate", "Outcome"]
    assert kinds(found["inbox"]) == ["Candidate", "Control", "Outcome", "Text"]
    assert kinds(found["feeds"]) == ["Candidate"]
    assert [event.operator for event in (*found["inbox"][:1], *found["feeds"])] == [True, False]
    assert sorted(house.refused) == [
        "bad", "bad", "bad", "control: not from the operator", "control: not from the operator",
        "outcome: not from inbox.d/feeds", "text: not from inbox.d/feeds", "text: not from the input",
    ]  # fmt: skip
    house.doors.inputs.close()


def test_accept_names_what_the_input_brings(tmp_path: Path) -> None:
    house = House(tmp_path, accept=("outcome",))
    assert kinds(house.events()[""]) == ["Outcome"]
    house.doors.inputs.close()


def test_strange_folders_are_told_once_and_a_channel_named_inbox_is_none(tmp_path: Path) -> None:
    house = House(tmp_path)
    for name in ("inbox", "a b", "..x", ".hidden", "ok"):
        (tmp_path / "inbox.d" / name).mkdir(parents=True)
    (tmp_path / "inbox.d" / "file").write_text("")
    said = house.doors.rescan()
    assert len(said) == 2 and list(house.doors.channels) == ["ok"]
    assert house.doors.rescan() == []
    house.doors.inputs.close()


def test_a_channel_that_is_removed_is_over_and_harms_nobody(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.put("inbox.d/feeds")
    house.doors.rescan()
    shutil.rmtree(tmp_path / "inbox.d" / "feeds")
    house.put("inbox")
    assert list(house.events()) == ["", "inbox"]
    assert house.doors.channels["feeds"].ended
    assert house.doors.is_quiet(lambda name: False)
    house.doors.inputs.close()


def test_others_cannot_keep_a_crawl_from_its_end(tmp_path: Path) -> None:
    house = House(tmp_path)
    writer = spool.SpoolWriter(tmp_path / "inbox.d" / "feeds")
    house.doors.rescan()
    assert house.doors.is_quiet(lambda name: False), "an idle writer of theirs does not count"
    writer.publish(LINES)
    assert not house.doors.is_quiet(lambda name: False)
    assert house.doors.is_quiet(lambda name: True), "nor what waits beyond the quota"
    own = spool.SpoolWriter(tmp_path / "inbox")
    assert not house.doors.is_quiet(lambda name: True)
    own.close()
    writer.close()
    house.doors.inputs.close()


def test_segments_of_channels_have_names_of_their_own(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.put("inbox.d/feeds")
    house.doors.rescan()
    batch = next(batch for batch in iter(house.doors.inputs.poll, None) if batch.name)
    assert house.doors.segment_of(batch) == f"applied:feeds/{batch.name}".encode()
    house.doors.inputs.close()
