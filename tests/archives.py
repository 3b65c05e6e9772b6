"""Captures to write, and other people's readers to judge what was written."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

from cdxj_indexer.main import CDXJIndexer
from fastwarc import ArchiveIterator as FastIterator
from warcio.archiveiterator import ArchiveIterator

from crawltool.records import Kind, Prior
from crawltool.stores import warcread
from crawltool.stores.digests import DigestIndex
from crawltool.stores.warc import Body, Capture, WarcWriter

REQUEST = b"GET /p HTTP/1.1\r\nHost: h.test\r\nUser-Agent: crawltool/0.1\r\n\r\n"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
EMPTY_DIGEST = "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"


class Pieces:
    """A body that is not in memory."""

    def __init__(self, data: bytes, piece: int = 100_000) -> None:
        self.size, self._data, self._piece = len(data), data, piece

    def chunks(self) -> Iterator[bytes]:
        for start in range(0, len(self._data), self._piece):
            yield self._data[start : start + self._piece]


def capture(
    url: str,
    body: bytes | Body,
    *,
    head: bytes = HEAD,
    status: int = 200,
    kind: Kind = "page",
    truncated: str | None = None,
    prior: Prior | None = None,
    fetched_at: float = 1_796_040_000.0,
    ip: str = "192.0.2.7",
) -> Capture:
    return Capture(url, fetched_at, ip, REQUEST, head, body, status, kind, truncated, prior)


class Archive:
    """A directory with an index and a writer, as fetch has them."""

    def __init__(self, directory: Path, rotate_bytes: int = 1_000_000_000) -> None:
        self.directory = directory
        self.index = DigestIndex(directory / "digests.lmdb")
        self.writer = WarcWriter(directory, self.index, {"software": "crawltool/0.1"}, rotate_bytes)

    def close(self) -> None:
        self.writer.close()
        self.index.close()


def files(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.warc.gz*"))


def found(path: Path) -> list[warcread.Found]:
    return list(warcread.records(path))


def types(path: Path) -> list[str]:
    return [item.record.type if item.record else "DAMAGE" for item in found(path)]


def warcio_problems(path: Path) -> list[str]:
    """Do what `warcio check` does, but for undoing content codings: at `br` it breaks with the brotli of the day."""
    problems: list[str] = []
    with path.open("rb") as stream:
        for record in ArchiveIterator(stream, check_digests=True):
            while record.raw_stream.read(1 << 20):
                pass
            problems += record.digest_checker.problems
    return problems


def fastwarc_problems(path: Path) -> list[str]:
    """Do what `fastwarc check` does, payloads of responses included."""
    problems: list[str] = []
    for record in FastIterator(io.BytesIO(path.read_bytes()), parse_http=False):
        if not record.verify_block_digest():
            problems.append(f"block {record.record_id}")
        if record.headers.get("WARC-Payload-Digest") and record.headers.get("WARC-Type") != "revisit":
            record.parse_http()
            if not record.verify_payload_digest():
                problems.append(f"payload {record.record_id}")
    return problems


def assert_clean(path: Path) -> None:
    """Judge a finished file by two readers of others and by our own."""
    assert warcio_problems(path) == []
    assert fastwarc_problems(path) == []
    assert "DAMAGE" not in types(path)


def cdxj_of(paths: list[Path], folder: Path) -> bytes:
    """Give what `cdxj-indexer --sort` writes; raises what it raises."""
    out = folder / "theirs.cdxj"
    CDXJIndexer(str(out), [str(path) for path in paths], sort=True).process_all()
    return out.read_bytes()


def content(path: Path, url: str) -> bytes:
    """Give what warcio shows as the last body of a URL, content coding undone."""
    last = b""
    with path.open("rb") as stream:
        for record in ArchiveIterator(stream):
            if record.rec_type == "response" and record.rec_headers.get_header("WARC-Target-URI") == url:
                last = record.content_stream().read()
    return last


def fast_content(path: Path, url: str) -> bytes:
    """The same by fastwarc, without undoing anything."""
    last = b""
    for record in FastIterator(io.BytesIO(path.read_bytes())):
        if record.headers.get("WARC-Type") == "response" and record.headers.get("WARC-Target-URI") == url:
            record.parse_http()
            last = record.reader.read()
    return last
