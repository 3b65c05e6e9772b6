"""How does a wish of the operator that concerns a million URLs come true without a turn that lasts a minute?

A job walks over the rows of a table, ROWS_PER_TURN each turn, and its place is in the turn's batch: after a crash it goes on
where it was. Jobs run one after the other, in the order in which they were wished for. Called by core/frontier/steering.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from crawltool.core.frontier import deadletters, rows
from crawltool.core.frontier.admission import Admission
from crawltool.core.frontier.bans import BanList, Bans, read_line
from crawltool.core.frontier.book import Book
from crawltool.core.frontier.rows import Table
from crawltool.core.urls import parse

ROWS_PER_TURN = 2000  # 20 to 40 ms
PREFIX = b"control:job:"
HOSTS_END, QUEUE_END, SETTLED_END = b"\xff" * 64, b"\xff" * 8, b"\xff" * 17


class Job(msgspec.Struct, array_like=True):
    """One walk. `place` is the first key that was not looked at."""

    action: str  # hosts | sweep | unban | requeue | forget
    host: str = ""
    reason: str = ""
    step: int = 0  # which of its tables
    place: bytes = b""
    count: int = 0  # URLs that it changed
    left: int = 0  # dead letters that are so for a reason that still holds


_job_of = msgspec.msgpack.Decoder(Job).decode
WORDS = {
    "hosts": "hosts are blocked",
    "sweep": "queued URLs refused (banned)",
    "unban": "URLs queued again that were refused (banned)",
    "requeue": "dead letters queued again",
    "forget": "URLs that were queued, failed or refused are forgotten",
}


class Jobs:
    """The walks that are under way."""

    def __init__(self, book: Book, done: Callable[[str, str, str, str], None]) -> None:
        self.book = book
        self.done = done  # action, host, reason, what was done
        self.waiting: dict[bytes, Job] = {}  # by number, oldest first
        self.serial = 0

    def __bool__(self) -> bool:
        return bool(self.waiting)

    def names(self) -> list[str]:
        """Give the jobs in a few words, the first of them running."""
        return [f"{job.action} {job.host or job.reason}".strip() for job in list(self.waiting.values())[:20]]

    def add(self, action: str, host: str = "", reason: str = "") -> None:
        """Begin a job; one that is wished for again while it runs begins anew."""
        for number, job in list(self.waiting.items()):
            if (job.action, job.host, job.reason) == (action, host, reason):
                self._drop(number)
        self.serial += 1
        number = b"%012d" % self.serial
        self.waiting[number] = Job(action, host, reason)
        self._keep(number)

    def restore(self, number: bytes, value: bytes) -> None:
        """Take up a job of an earlier run; they come in order."""
        self.waiting[number] = _job_of(value)
        self.serial = max(self.serial, int(number))

    def step(self, bans: Bans, admission: Admission, now: float) -> None:
        """Look at the next rows: of the first job, and of those behind it when it ends within this turn."""
        left = ROWS_PER_TURN
        while left > 0 and self.waiting:
            left -= self._step(left, bans, admission, now)

    def _step(self, at_most: int, bans: Bans, admission: Admission, now: float) -> int:
        """Look at the next rows of the first job; the result is how much of the turn that took."""
        number, job = next(iter(self.waiting.items()))
        table, start, end = self._range(job)
        part = self.book.port.scan(table, max(start, job.place), end, at_most) if start < end else []
        for key, value in part:
            self._row(job, key, value, bans, admission, now)
        if part:
            job.place = part[-1][0] + b"\0"
        if len(part) < at_most:
            job.step, job.place = job.step + 1, b""
        if job.step < (2 if job.action == "forget" else 1):
            self._keep(number)
        else:
            self._end(number, job)
        return len(part) + 1

    def _end(self, number: bytes, job: Job) -> None:
        self._drop(number)
        if job.count or job.left or job.action != "sweep":  # most sweeps find nothing, and nobody wished for them
            left = f"; {job.left} are refused for a reason that still holds" if job.left else ""
            self.done(job.action, job.host, job.reason, f"{job.count} {WORDS[job.action]}{left}")

    def _range(self, job: Job) -> tuple[Table, bytes, bytes]:
        """Give the table that a job is in, and the keys to look at: of a host's queue those that begin with its number."""
        if job.action == "hosts":
            return Table.HOSTS, b"", HOSTS_END
        if job.action == "sweep" and not job.host:
            return Table.QUEUE, b"", QUEUE_END
        if job.action == "sweep" or (job.action == "forget" and job.step == 0):
            if not self.book.is_host_known(job.host):
                return Table.QUEUE, b"", b""
            number = self.book.host(job.host).row.number
            return Table.QUEUE, number.to_bytes(4, "big"), (number + 1).to_bytes(4, "big")
        return Table.SETTLED, b"", SETTLED_END

    def _row(self, job: Job, key: bytes, value: bytes, bans: Bans, admission: Admission, now: float) -> None:
        book = self.book
        if job.action == "hosts":
            job.count += self._host(job.reason, key.decode())
        elif job.action == "sweep":
            job.count += deadletters.refuse_banned(book, bans, key, value, now)
        elif job.action == "forget" and job.step == 0:
            job.count += deadletters.forget_queued(book, key, value)
        elif job.action == "forget":
            job.count += deadletters.forget_settled(book, job.host, key, value)
        else:
            reason = deadletters.BANNED if job.action == "unban" else job.reason
            came = deadletters.revive(book, admission, bans, key, rows.settled_of(value), job.host, reason)
            job.count += came is True
            job.left += came is False

    def _host(self, line: str, name: str) -> bool:
        """Refuse the queue of a host that a line bans, in a job of its own."""
        ban, url = read_line(line), parse(f"http://{name}/")
        if ban is None or url is None or BanList([ban]).match(url.host.rstrip("."), url) is None:
            return False
        self.add("sweep", name)
        return True

    def _keep(self, number: bytes) -> None:
        self.book.put(Table.META, PREFIX + number, rows.pack(self.waiting[number]))

    def _drop(self, number: bytes) -> None:
        del self.waiting[number]
        self.book.put(Table.META, PREFIX + number, None)
