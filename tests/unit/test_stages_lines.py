"""Lines come whole and bounded, go out in one write, and are let go of last."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
import zstandard

from crawltool import limits
from crawltool.errors import BadRecord, Misuse, NoInput
from crawltool.stages import lines, sinks, sources, where
from crawltool.stages.drain import FilterDrain, ReaderGone
from crawltool.stages.feeds import PipeFeed, open_feed
from crawltool.stages.outlets import FileOutlet

CONTROL = b'{"type":"control","action":"a"}\n'
OUTCOME = b'{"type":"outcome","url":"http://a.example/","lease":"1-1","verdict":"ok"}\n'
TEXT = b'{"type":"text","url":"http://a.example/","lease":"1-1","text":"t"}\n'


# --- WHERE ---


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("-", "std", "-"),
        ("null", "null", "null"),
        ("spool:a/b", "spool", "a/b"),
        ("x.jsonl", "file", "x.jsonl"),
        ("a:b", "file", "a:b"),
        ("dir/*.jsonl", "set", "dir/*.jsonl"),
    ],
)
def test_a_where_is_one_of_five_kinds(text: str, kind: str, name: str) -> None:
    assert where.parse(text) == (kind, name)


@pytest.mark.parametrize("text", ["", "spool:", "redis://x/y", "http://x.example/"])
def test_another_where_is_misuse(text: str) -> None:
    with pytest.raises(Misuse):
        where.parse(text)


def test_a_folder_and_a_glob_are_sets_of_files_by_name(tmp_path: Path) -> None:
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(b"3\n") + gzip.compress(b"4\n"))
    (tmp_path / "a.jsonl.zst").write_bytes(zstandard.compress(b"1\n") + zstandard.compress(b"2\n"))
    (tmp_path / "c.jsonl").write_bytes(b"5")
    (tmp_path / "d.txt").write_bytes(b"no\n")
    for text in (str(tmp_path), f"{tmp_path}/*"):
        assert read_all(text) == [b"1\n", b"2\n", b"3\n", b"4\n", b"5\n"]


def test_a_missing_file_or_empty_set_or_spool_is_no_input(tmp_path: Path) -> None:
    for text in (str(tmp_path), str(tmp_path / "x.jsonl"), str(tmp_path / "*.jsonl"), f"spool:{tmp_path}/none"):
        with pytest.raises(NoInput):
            lines.open_source(text)


def test_a_torn_compressed_file_gives_what_is_whole_and_is_counted(tmp_path: Path) -> None:
    packed = gzip.compress(b"".join(b"%d\n" % random.Random(1).getrandbits(60) for _ in range(5000)))
    (tmp_path / "a.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    trouble = where.Trouble(lambda text: None)
    source = lines.open_source(str(tmp_path), trouble=trouble)
    assert sum(len(batch.lines) for batch in source) >= 0
    assert trouble.total == 1


def read_all(text: str) -> list[bytes]:
    """Read a WHERE to its end."""
    return [line for batch in lines.open_source(text) for line in batch.lines]


# --- lines ---


@pytest.mark.parametrize("seed", range(20))
def test_however_the_bytes_come_the_lines_are_the_same(seed: int) -> None:
    dice = random.Random(seed)
    data = b"".join(bytes(dice.choices(b"ab\r \n", k=dice.randrange(40))) for _ in range(20))
    expected = [line for line in io.BytesIO(data).readlines() if line not in (b"\n", b"\r\n") and len(line.rstrip(b"\n")) <= 12]
    dropped: list[int] = []
    splitter = where.Splitter(dropped.append, line_bytes_max=13)
    found: list[bytes] = []
    at = 0
    while at < len(data):
        size = dice.randrange(1, 30)
        found += splitter.feed(data[at : at + size])
        at += size
    found += splitter.end()
    if expected and not data.endswith(b"\n") and len(data.rsplit(b"\n", 1)[-1]) <= 12:
        expected[-1:] = [expected[-1].rstrip(b"\n") + b"\n"]
    assert found == expected
    assert len(dropped) == sum(len(line.rstrip(b"\n")) > 12 for line in io.BytesIO(data).readlines())


def test_a_huge_line_costs_no_memory_and_only_itself() -> None:
    dropped: list[int] = []
    splitter = where.Splitter(dropped.append, keep_blank=True)
    found = splitter.feed(b"a\n\n")
    for _ in range(50):
        found += splitter.feed(b"x" * limits.MIB)
        assert sum(map(len, splitter._parts)) <= limits.RECORD_BYTES_MAX
    found += splitter.feed(b"x\nb")
    assert found + splitter.end() == [b"a\n", b"\n", b"\n", b"b\n"]
    assert (dropped, splitter.line_number) == ([3], 4)


def test_bad_lines_are_counted_and_the_first_few_shown_harmless() -> None:
    said: list[str] = []
    trouble = where.Trouble(said.append)
    for number in range(1, 101):
        trouble.refuse("list.txt", number, "not a URL", b"\x1b[2J\xff" + "ü\u202e".encode() + b"x" * 1000 + b"\n")
    assert len(said) == where.SHOWN
    assert said[0].startswith("list.txt:1: not a URL: \\x1b[2J\\xffü\\u202exxx")
    assert len(said[0]) < 120
    assert trouble.summary() == "100 bad lines (100 not a URL)"
    trouble.check(strict=False)
    with pytest.raises(BadRecord, match="100 bad lines"):
        trouble.check(strict=True)


# --- sources ---


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Give a pipe's two ends; what is still open afterwards is closed."""
    ends = os.pipe()
    inode = os.fstat(ends[0]).st_ino
    yield ends
    for end in ends:
        with contextlib.suppress(OSError):
            if os.fstat(end).st_ino == inode:
                os.close(end)


def test_a_batch_is_what_is_there_and_the_end_is_seen(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    feed = PipeFeed(reader, where.Trouble(), "-")
    assert feed.read() is None
    os.write(writer, b"1\n2\n3")
    batch = feed.read()
    assert batch is not None
    assert batch.lines == [b"1\n", b"2\n"]
    assert feed.read() is None
    os.close(writer)
    batch = feed.read()
    assert batch is not None
    assert (batch.lines, batch.first, feed.ended) == ([b"3\n"], 3, True)


def test_stdin_may_be_a_file_or_null(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1\n2")
    for name, expected in ((str(tmp_path / "a"), [b"1\n", b"2\n"]), (os.devnull, [])):
        fd = os.open(name, os.O_RDONLY)
        feed = open_feed("-", stdin=fd)
        found: list[bytes] = []
        while not feed.ended:
            batch = feed.read()
            found += batch.lines if batch else []
        os.close(fd)
        assert found == expected


def test_a_filter_on_a_spool_lets_go_of_a_segment_after_publishing(tmp_path: Path) -> None:
    spool = tmp_path / "s"
    sink = lines.open_sink(f"spool:{spool}")
    sink.publish([CONTROL] * 3)
    sink.close(end=True)
    with FilterDrain() as drain:
        source = lines.open_source(f"spool:{spool}", drain)
        for batch in source:
            assert batch.lines == [CONTROL] * 3
            assert len(list((spool / "cur").iterdir())) == 1
            batch.done()
            assert not list((spool / "cur").iterdir())
        source.close()


def test_a_filter_on_a_spool_claims_nothing_once_the_drain_began(tmp_path: Path) -> None:
    sink = lines.open_sink(f"spool:{tmp_path}/s")
    drain = FilterDrain()
    source = lines.open_source(f"spool:{tmp_path}/s", drain)
    sink.publish([CONTROL])
    seen = 0
    for batch in source:
        seen += 1
        sink.publish([CONTROL])
        drain.reason = 15
        batch.done()
    assert seen == 1
    assert source.feed.ended


def test_a_segment_of_any_size_is_read_in_named_pieces(tmp_path: Path) -> None:
    lines.open_sink(f"spool:{tmp_path}/s").close(end=True)
    line = b"x" * 999 + b"\n"
    count = limits.SEGMENT_BYTES_MAX * 8 // len(line) + 1000
    (tmp_path / "s" / "new" / "mine.jsonl").write_bytes(line * count)
    batches = []
    for batch in lines.open_source(f"spool:{tmp_path}/s"):
        batches.append((batch.name, len(batch.lines)))
        batch.done()
    assert sum(number for _, number in batches) == count
    names = [name for name, _ in batches]
    assert names[:2] == ["mine.jsonl@1048576", "mine.jsonl@2097152"]
    assert len(set(names)) == len(names)
    assert not list((tmp_path / "s" / "cur").iterdir())


def test_a_segment_without_a_line_is_let_go_of_unseen(tmp_path: Path) -> None:
    lines.open_sink(f"spool:{tmp_path}/s").close(end=True)
    (tmp_path / "s" / "new" / "1.jsonl").write_bytes(b"")
    (tmp_path / "s" / "new" / "2.jsonl").write_bytes(b"\n\r\n")
    (tmp_path / "s" / "new" / "3.jsonl").write_bytes(b"x" * (limits.RECORD_BYTES_MAX + 1))
    trouble = where.Trouble(lambda text: None)
    assert list(lines.open_source(f"spool:{tmp_path}/s", trouble=trouble)) == []
    assert trouble.total == 1
    assert not list((tmp_path / "s" / "cur").iterdir())


def test_a_huge_segment_is_let_go_of_with_its_last_piece_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crawltool.stages.feeds.SEGMENT_READ_BYTES", 100)
    monkeypatch.setattr(limits, "PIPE_READ_BYTES", 100)
    spool = spool_with(tmp_path, CONTROL * 10 + b"\n" * 250)
    feed = open_feed(f"spool:{spool}")
    batches = []
    while (batch := feed.read()) is not None:
        batches.append(batch)
    for batch in batches[:-1]:
        batch.done()
    assert len(list((spool / "cur").iterdir())) == 1
    batches[-1].done()
    assert not list((spool / "cur").iterdir())


def spool_with(tmp_path: Path, data: bytes) -> Path:
    """Make a spool with one segment."""
    writer = lines.open_sink(f"spool:{tmp_path}/s")
    writer.publish([CONTROL])
    (segment,) = (tmp_path / "s" / "new").iterdir()
    segment.write_bytes(data)
    return tmp_path / "s"


# --- sinks ---


def test_an_interrupted_file_is_appended_to_on_a_new_line(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(CONTROL + b'{"type":"cont')
    sink = lines.open_sink(str(path))
    sink.publish([CONTROL])
    sink.close()
    assert path.read_bytes() == CONTROL + b'{"type":"cont\n' + CONTROL


def test_a_route_takes_its_type_out_of_the_stream(tmp_path: Path) -> None:
    sink = lines.open_sink(str(tmp_path / "main"), lines.parse_routes([f"text={tmp_path / 'text'}", "control=null"]))
    sink.publish([TEXT, OUTCOME, CONTROL, b"not json\n"])
    sink.close()
    assert (tmp_path / "main").read_bytes() == OUTCOME + b"not json\n"
    assert (tmp_path / "text").read_bytes() == TEXT


@pytest.mark.parametrize("route", ["text", "page=x", "=x"])
def test_a_route_names_a_record_type(route: str) -> None:
    with pytest.raises(Misuse):
        lines.parse_routes([route])


@pytest.mark.parametrize("name", ["x.jsonl.gz", "x.jsonl.zst", "."])
def test_records_are_not_written_to_packed_files_or_folders(tmp_path: Path, name: str) -> None:
    with pytest.raises(Misuse):
        lines.open_sink(str(tmp_path / name))


def test_a_gone_reader_is_reader_gone(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    os.close(reader)
    with pytest.raises(ReaderGone):
        FileOutlet(writer, "-").write([CONTROL])


def test_a_pipe_somebody_made_non_blocking_still_takes_all(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    os.set_blocking(writer, False)
    found = io.BytesIO()

    def read() -> None:
        while data := os.read(reader, 65536):
            found.write(data)

    thread = threading.Thread(target=read)
    thread.start()
    FileOutlet(writer, "-").write([CONTROL] * 20_000)
    os.close(writer)
    thread.join()
    assert found.getvalue() == CONTROL * 20_000


# --- trio ---


def test_next_gives_a_batch_or_an_empty_one_in_time_or_none_at_the_end(pipe: tuple[int, int]) -> None:
    reader, writer = pipe

    async def main() -> None:
        source = sources.AsyncSource(PipeFeed(reader, where.Trouble(), "-"))
        batch = await source.next(0)
        assert batch is not None
        assert batch.lines == []
        async with trio.open_nursery() as nursery:

            async def write_soon() -> None:
                os.write(writer, b"1\n")

            nursery.start_soon(write_soon)
            batch = await source.next(5)
        assert batch is not None
        assert batch.lines == [b"1\n"]
        os.close(writer)
        assert await source.next(5) is None
        assert source.ended

    trio.run(main)


@pytest.mark.parametrize("through_proc", [True, False])
def test_a_slow_reader_holds_up_only_the_writing_task(
    pipe: tuple[int, int], through_proc: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = pipe
    if not through_proc:
        real = os.open
        monkeypatch.setattr(os, "open", lambda path, *rest: real("/nowhere" if "/proc/self/fd" in str(path) else path, *rest))
    big = b"x" * 700_000 + b"\n"

    async def main() -> None:
        outlet = sinks.adapt(FileOutlet(writer, "-"))
        source = sources.AsyncSource(PipeFeed(reader, where.Trouble(), "-"))
        with trio.move_on_after(0.02):  # nobody reads: cancelled in the middle of the line
            await outlet.write([big])
        found: list[bytes] = []
        async with trio.open_nursery() as nursery:

            async def write() -> None:
                await outlet.write([CONTROL])
                outlet.close()

            nursery.start_soon(write)
            while (batch := await source.next(5)) is not None:
                found += batch.lines
        assert found == [big, CONTROL]

    trio.run(main)
    assert os.get_blocking(reader)


def test_an_async_sink_says_once_that_the_reader_is_gone(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    os.close(reader)

    async def main() -> None:
        sink = sinks.AsyncSink(sinks.adapt(FileOutlet(writer, "-")))
        with pytest.raises(ReaderGone):
            await sink.publish([CONTROL])
        await sink.publish([CONTROL])
        await sink.aclose()

    trio.run(main)


def test_many_tasks_fill_one_segment_and_targets_at_most_sixty_four(tmp_path: Path) -> None:
    async def main() -> None:
        sink = sinks.open_async_sink(f"spool:{tmp_path}/s", targets=True)
        async with trio.open_nursery() as nursery:
            for _ in range(100):
                nursery.start_soon(sink.publish, [b'{"type":"target","url":"http://a.example/","lease":"1-1"}\n'])
        await sink.aclose(end=True)
        source = sources.open_async_source(f"spool:{tmp_path}/s", at_most_once=True)
        sizes = []
        while (batch := await source.next(5)) is not None:
            assert not list((tmp_path / "s" / "cur").iterdir()), "a target's segment is let go of before it is handed out"
            sizes.append(len(batch.lines))
        source.close()
        assert (sum(sizes), max(sizes)) == (100, 64)
        assert len(sizes) <= 3

    trio.run(main)


def test_a_cancelled_publish_is_made_good_at_the_close(tmp_path: Path) -> None:
    async def main() -> None:
        sink = sinks.open_async_sink(f"spool:{tmp_path}/s")
        with trio.move_on_after(0):
            await sink.publish([CONTROL])
        await sink.aclose(end=True)

    trio.run(main)
    assert read_all(f"spool:{tmp_path}/s") == [CONTROL]


def test_a_full_forward_spool_makes_the_writer_wait_for_a_reader(tmp_path: Path) -> None:
    async def main() -> None:
        sink = sinks.open_async_sink(f"spool:{tmp_path}/s", depth_max=1)
        source = sources.open_async_source(f"spool:{tmp_path}/s")
        await sink.publish([CONTROL])
        with trio.move_on_after(0.3) as scope:
            await sink.publish([OUTCOME])
        assert scope.cancelled_caught
        batch = await source.next(1)
        assert batch is not None
        batch.done()
        await sink.aclose(end=True)
        batch = await source.next(5)
        assert batch is not None
        assert batch.lines == [OUTCOME]
        batch.done()
        assert await source.next(5) is None

    trio.run(main)


def test_pipe_and_inbox_are_waited_for_together(pipe: tuple[int, int], tmp_path: Path) -> None:
    reader, writer = pipe

    async def main() -> None:
        box = lines.open_sink(f"spool:{tmp_path}/inbox", depth_max=None)
        both = sources.Inputs(
            sources.AsyncSource(PipeFeed(reader, where.Trouble(), "-")),
            sources.open_async_source(f"spool:{tmp_path}/inbox", endless=True),
        )
        for put, expected in ((lambda: os.write(writer, OUTCOME), OUTCOME), (lambda: box.publish([CONTROL]), CONTROL)):
            async with trio.open_nursery() as nursery:

                async def soon(put=put) -> None:  # type: ignore[no-untyped-def]
                    put()

                nursery.start_soon(soon)
                batch = await both.next(5)
            assert batch is not None
            assert batch.lines == [expected]
            batch.done()
        os.close(writer)
        batch = await both.next(5)
        assert batch is not None
        assert (batch.lines, both.sources[0].ended, both.ended) == ([], True, False)

    trio.run(main)
