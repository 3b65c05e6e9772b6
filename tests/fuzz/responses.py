"""Throws mutated answers at the real fetch stage and reads back what it stored.

    python -m tests.fuzz.responses --minutes 60 --seed 1      (make fuzz)
    python -m tests.fuzz.responses --seed 1 --round 17        replays one round

A round is CASES answers through engine, outcome and archive of one crawl directory. It holds when it ends in bounded time,
each target has one outcome with a verdict of the closed list, the archive gives back what came, other people's reader
accepts the file, and memory stays where it was. What breaks in here breaks this process; `--round` replays it alone.
"""

from __future__ import annotations

import argparse
import os
import random
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import psutil
import trio

from crawltool import records
from crawltool.records import VERDICTS, Outcome, Target
from crawltool.stages.drain import TrioDrain
from crawltool.stages.feeds import Batch
from crawltool.stages.fetch import FetchStage
from crawltool.stages.fetchsettings import Settings
from crawltool.stages.where import Trouble
from crawltool.stores import warcread
from crawltool.stores.digests import DigestIndex
from crawltool.stores.warc import Capture, Stored, WarcWriter
from crawltool.stores.warcverify import Finding, Verifier
from tests.archives import warcio_problems
from tests.fuzz.mutations import Answer, answer

CASES = 600
TOTAL_S = 1.5  # --timeout-total of the stage
ROUND_S = 40.0
SLACK_S = 4.0  # a loaded machine
MEMORY_GROWTH = 1.2
KINDS = ("page", "page", "page", "page", "robots", "sitemap", "probe")
RESET = struct.pack("ii", 1, 0)


class Server:
    """Gives the case that the path names, the next one of the list for each further request of a connection."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.answers, self.asked = answers, Counter[int]()

    async def __call__(self, stream: trio.SocketStream) -> None:
        stream.setsockopt(trio.socket.IPPROTO_TCP, trio.socket.TCP_NODELAY, 1)
        try:
            while await self._one(stream):
                pass
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return

    async def _one(self, stream: trio.SocketStream) -> bool:
        head = b""
        while b"\r\n\r\n" not in head:
            more = await stream.receive_some(65_536)
            if not more:
                return False
            head += more
        number = int(head.split(b" ", 2)[1].rpartition(b"/")[2])
        self.asked[number] += 1
        given = self.answers[number]
        for piece in given.pieces:
            await stream.send_all(piece)
            await trio.lowlevel.checkpoint()
        if given.end == "silent":
            await trio.sleep(2 * TOTAL_S)
        if given.end == "reset":
            stream.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_LINGER, RESET)
        return given.end == "keep"


class Source:
    """One batch, then the end."""

    def __init__(self, lines: list[bytes]) -> None:
        self.batches, self.trouble = [Batch(lines)], Trouble(print)

    async def next(self, timeout_s: float = 0) -> Batch | None:
        await trio.lowlevel.checkpoint()
        return self.batches.pop() if self.batches else None

    def stop(self) -> None:
        raise AssertionError("nobody stops a round")


class Sink:
    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []

    async def publish(self, lines: Sequence[bytes]) -> None:
        await trio.lowlevel.checkpoint()
        for line in lines:
            outcome = records.decode(line)
            assert isinstance(outcome, Outcome)
            self.outcomes.append(outcome)


class Archive:
    """The real writer; keeps what it was given beside what it said."""

    def __init__(self, writer: WarcWriter) -> None:
        self.writer, self.kept = writer, dict[str, tuple[Capture, bytes, Stored]]()

    def store(self, captures: Sequence[Capture]) -> list[Stored]:
        bodies = [one.body if isinstance(one.body, bytes) else b"".join(one.body.chunks()) for one in captures]
        stored = self.writer.store(captures)
        for capture, body, place in zip(captures, bodies, stored, strict=True):
            self.kept[capture.url] = capture, body, place
        return stored


class Round:
    """One round: `problems` tells what did not hold, each with its case number."""

    def __init__(self, seed: str, folder: Path, cases: int = CASES) -> None:
        chance = random.Random(seed)
        self.folder, self.problems = folder, list[str]()
        self.answers = [answer(chance) for _ in range(cases)]
        self.kinds = [chance.choice(KINDS) for _ in range(cases)]
        self.rests = [chance.choice((0.0, 0.0, 1.0)) for _ in range(cases)]

    def run(self) -> Counter[str]:
        """Fetch and check; gives the verdicts."""
        digests = DigestIndex(self.folder / "warc" / "digests.lmdb")
        writer = WarcWriter(self.folder / "warc", digests, {})
        archive, sink, server = Archive(writer), Sink(), Server(self.answers)
        try:
            trio.run(self._fetch, archive, sink, server)
        finally:
            writer.close()
            digests.close()
        self._judge_outcomes(sink, server)
        self._judge_archive(archive, sink)
        return Counter(outcome.verdict for outcome in sink.outcomes)

    async def _fetch(self, archive: Archive, sink: Sink, server: Server) -> None:
        settings = Settings(
            self.folder,
            "crawltool/1",
            concurrency=200,
            min_free_bytes=0,
            timeout_connect_s=TOTAL_S,
            timeout_first_byte_s=TOTAL_S,
            timeout_total_s=TOTAL_S,
            max_body_bytes=200_000,
        )
        with trio.fail_after(ROUND_S), TrioDrain() as drain:
            async with trio.open_nursery() as nursery:
                listeners = await nursery.start(partial(trio.serve_tcp, server, 0, host="127.0.0.1"))
                port = listeners[0].socket.getsockname()[1]
                source = Source([records.encode(self._target(number, port)) for number in range(len(self.answers))])
                await FetchStage(settings, source, sink, archive, drain).run()  # type: ignore[arg-type]
                nursery.cancel_scope.cancel()

    def _target(self, number: int, port: int) -> Target:
        kind, rest_s = self.kinds[number], self.rests[number]
        url = f"http://127.0.0.1:{port}/{number}"
        return Target(url=url, lease=f"1-{number}", kind=kind, address="127.0.0.1", typed=True, rest_s=rest_s)  # type: ignore[arg-type]

    def _judge_outcomes(self, sink: Sink, server: Server) -> None:
        leases = Counter(outcome.lease for outcome in sink.outcomes)
        self._claim(len(leases) == len(self.answers) and max(leases.values()) == 1, "one outcome for each target", -1)
        for outcome in sink.outcomes:
            number = int(outcome.lease.partition("-")[2])
            self._claim(outcome.verdict in VERDICTS, f"verdict {outcome.verdict}", number)
            self._claim(bool(outcome.status or outcome.reason), f"{outcome.verdict} without a reason", number)
            self._claim((outcome.elapsed_s or 0) < TOTAL_S + SLACK_S, f"took {outcome.elapsed_s} s", number)
            self._claim(server.asked[number] <= 1, f"asked {server.asked[number]} times", number)
            self._claim((outcome.status is None) == (outcome.warc is None), "an answer is archived, nothing else", number)

    def _judge_archive(self, archive: Archive, sink: Sink) -> None:
        for outcome in sink.outcomes:
            if outcome.warc is not None:
                self._read_back(outcome, *archive.kept[outcome.url])
        verifier = Verifier()
        for path in sorted((self.folder / "warc").glob("*.warc.gz")):
            for found in verifier.file(path):
                if isinstance(found, Finding) and found.severity == "error":
                    self._claim(False, f"verify: {found.code} {found.message} {found.url}", self._number(found.url))
            for problem in warcio_problems(path):
                self._claim(False, f"warcio: {problem}", -1)

    def _read_back(self, outcome: Outcome, capture: Capture, body: bytes, stored: Stored) -> None:
        number = self._number(outcome.url)
        place = stored.body_warc or stored.warc
        record = warcread.read(self.folder / "warc", place)
        self._claim(record.body == body, f"{len(record.body)} bytes read back of {len(body)}", number)
        head = warcread.read(self.folder / "warc", stored.warc)
        self._claim(head.http_status == outcome.status, f"status {head.http_status} read back, {outcome.status} told", number)
        self._claim(outcome.body_bytes == len(body), "body_bytes is the length", number)
        # On a kept connection the junk behind one answer may come late and be taken for the next: HTTP/1.1 cannot tell.
        if self.rests[number] and b"transfer-encoding" not in capture.response_header_bytes.lower():
            self._claim(body in self.answers[number].data, "the body is not what was sent", number)

    def _number(self, url: str) -> int:
        tail = url.rpartition("/")[2]
        return int(tail) if tail.isdigit() else -1

    def _claim(self, holds: bool, text: str, number: int) -> None:
        if not holds:
            sent = self.answers[number].data[:300] if number >= 0 else b""
            self.problems.append(f"case {number}: {text}; sent {sent!r}")


def campaign(seed: int, ends_at: float, first: int = 0, most: int = 10**9) -> int:
    """Run rounds until the time is over; gives the number of problems."""
    process, verdicts, problems, base = psutil.Process(), Counter[str](), 0, 0
    done = first
    while done < first + most and time.monotonic() < ends_at:
        with tempfile.TemporaryDirectory() as folder:
            one = Round(f"{seed}/{done}", Path(folder))
            try:
                verdicts += one.run()
            except BaseException:
                print(f"seed {seed}, round {done} broke", flush=True)
                raise
        for problem in one.problems:
            print(f"seed {seed}, round {done}, {problem}", flush=True)
        problems += len(one.problems)
        done += 1
        memory = process.memory_info().rss
        base = memory if done - first == 20 else base  # what a process takes in use
        if (done - first) % 50 == 0:
            print(f"{done} rounds, {memory >> 20} MB, {problems} problems, {dict(verdicts)}", flush=True)
            if memory > base * MEMORY_GROWTH + (32 << 20):
                problems += 1
                print(f"seed {seed}, round {done}: memory grew from {base >> 20} to {memory >> 20} MB", flush=True)
    print(f"seed {seed}: {done - first} rounds of {CASES} answers, {problems} problems, {dict(verdicts)}", flush=True)
    return problems


def main() -> int:
    """Read the command line and run."""
    ask = argparse.ArgumentParser(prog="make fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--minutes", type=float, default=60.0)
    ask.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(3)))
    ask.add_argument("--round", type=int, help="run this round only")
    given = ask.parse_args()
    ends_at = time.monotonic() + given.minutes * 60
    if given.round is not None:
        return 1 if campaign(given.seed, ends_at, given.round, 1) else 0
    print(f"seed {given.seed}", flush=True)
    return 1 if campaign(given.seed, ends_at) else 0


if __name__ == "__main__":
    sys.exit(main())
