"""How does the operator steer a crawl that runs?

Control lines set, never add: the same line twice is the same as once. What they set is in META rows `control:…` of the turn's
batch, so it is durable and holds from that turn on; every line that was applied is told (`told`), for the log. What needs a walk
over many rows (refuse a queue, lift a ban, requeue, forget) is a job: a bounded number of rows each turn, its place durable.
Laws 6 and 11. Called by core/frontier/turn with lines of the operator's inbox only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec

from crawltool import limits, records
from crawltool.core.frontier import deadletters, rows
from crawltool.core.frontier.admission import Admission
from crawltool.core.frontier.bans import BanList, Bans, read_line
from crawltool.core.frontier.book import Book
from crawltool.core.frontier.jobs import Jobs
from crawltool.core.frontier.ledger import bump
from crawltool.core.frontier.rows import Entry, Table
from crawltool.core.frontier.wishes import Refused, host_of, number_of, url_of, value_of
from crawltool.core.urls import key as url_key
from crawltool.errors import BadPolicy

PREFIX, PREFIX_END = b"control:", b"control;"
TOP_PRIORITY = 1e6  # what inject gives where the line names none: before all that links and sitemaps claim
REASON_CHARS_MAX = 100
TOLD_CHARS_MAX = 2000  # of a URL in the log
Number = TypeVar("Number", int, float)


class HostSettings(msgspec.Struct, array_like=True):
    """What the operator set for one host. None: as for all."""

    delay_s: float | None = None
    pages: int | None = None
    reputation: float | None = None


settings_of = msgspec.msgpack.Decoder(HostSettings).decode


class Steering:
    """The operator's hand on the crawl.

    delays, budgets and reputations are read by the rooms that decide, one look-up a target; `paused` by core/frontier/release;
    `stop` by the frontier's shell.
    """

    def __init__(self, book: Book, admission: Admission, bans: Bans) -> None:
        self.book, self.admission, self.bans = book, admission, bans
        self.delays: dict[str, float] = {}
        self.budgets: dict[str, int] = {}
        self.reputations: dict[str, float] = {}
        self.paused = False
        self.stop = False
        self.bans_applied = Bans().fingerprint()  # the lists that what is stored was judged by
        self.new_lists: dict[str, BanList] | None = None
        self.troubles: list[str] = []
        self.told: list[dict[str, object]] = []  # what was applied or refused, since the shell looked last
        self.jobs = Jobs(book, self._job_done)
        self.actions: dict[str, Callable[[records.Control, float], str]] = {
            "block": self._block,
            "unblock": self._unblock,
            "slow": self._slow,
            "budget": self._budget,
            "reputation": self._reputation,
            "pause": self._pause,
            "resume": self._resume,
            "stop": self._stop,
            "requeue": self._requeue,
            "forget": self._forget,
            "reload": lambda control, now: "the ban files were read",  # by the shell, before this turn
        }

    # --- start, and each turn ---

    def start(self) -> None:
        """Take up what was set, in the frontier's start; a ban list that changed meanwhile is applied to what is stored."""
        for key, value in rows.each(self.book.port.scan, Table.META, PREFIX, PREFIX_END):
            self._restore(key.removeprefix(PREFIX), value)
        self.bans_changed()

    def _restore(self, key: bytes, value: bytes) -> None:
        kind, _, name = key.partition(b":")
        if kind == b"ban" and (ban := read_line(name.decode())) is not None:
            self.bans.block(ban)
        elif kind == b"host":
            self._hold(name.decode(), settings_of(value))
        elif kind == b"bans":
            self.bans_applied = value
        elif kind == b"paused":
            self.paused = True
        elif kind == b"job":
            self.jobs.restore(name, value)

    def bans_changed(self) -> bool:
        """Judge by the bans of now what was judged by others: what is queued, and what was refused. False: they are the same."""
        book, before = self.book, self.bans_applied
        self._note_bans()
        if self.bans_applied == before:
            return False
        if book.ledger.refused.get(deadletters.BANNED):
            self.jobs.add("unban")
        if self.bans.active and book.ledger.queued:
            self.jobs.add("sweep")
        return True

    def _note_bans(self) -> None:
        now_is = self.bans.fingerprint()
        if now_is != self.bans_applied:
            self.bans_applied = now_is
            self._put(b"bans", now_is)

    def step(self, now: float) -> None:
        """Go on with the jobs: a bounded number of rows."""
        if self.new_lists is not None:
            lists, self.new_lists = self.new_lists, None
            self.bans.replace(lists)
            changed = self.bans_changed()
            did = "; ".join(
                [f"{sum(found.count for found in lists.values())} bans in files" if changed else "no ban changed", *self.troubles]
            )
            self.told.append({"action": "reload", "did": did[:TOLD_CHARS_MAX]})
        self.jobs.step(self.bans, self.admission, now)

    def replace_bans(self, lists: Mapping[str, BanList], troubles: list[str]) -> None:
        """Take the ban files as they are now; they are judged by from the next turn on."""
        self.new_lists, self.troubles = dict(lists), troubles

    @property
    def is_busy(self) -> bool:
        """Tell whether the crawl is not over although nothing can be released: jobs, or a pause with something queued."""
        return bool(self.jobs) or (self.paused and self.book.ledger.queued > 0)

    def status(self) -> dict[str, object]:
        """Give what is in force, for status.json."""
        return {
            "paused": self.paused,
            "bans": {source: found.count for source, found in self.bans.lists.items() if found.count},
            "slow": dict(list(self.delays.items())[:20]),
            "budgets": dict(list(self.budgets.items())[:20]),
            "jobs": self.jobs.names(),
        }

    # --- one line ---

    def apply(self, control: records.Control, now: float) -> list[Entry]:
        """Do what a line of the operator's inbox says; the result is to be admitted in the same turn."""
        found: list[Entry] = []
        try:
            if control.action == "inject":
                did = self._inject(control, found, now)
            elif control.action in self.actions:
                did = self.actions[control.action](control, now)
            else:
                raise Refused("unknown action")
        except (Refused, BadPolicy) as error:
            reason = str(error) if isinstance(error, Refused) else "a ban that cannot be read"
            bump(self.book.ledger.lines_refused, f"control: {reason}")
            self._tell(control, f"refused: {error}")
            return []
        self._tell(control, did)
        return found

    def _tell(self, control: records.Control, did: str) -> None:
        value = bytes(control.value)[:TOLD_CHARS_MAX].decode(errors="replace") if control.value is not None else None
        facts = {"action": control.action, "host": control.host, "url": control.url, "value": value, "did": did}
        self.told.append({name: fact[:TOLD_CHARS_MAX] for name, fact in facts.items() if fact is not None})

    def _job_done(self, action: str, host: str, reason: str, did: str) -> None:
        facts = {"action": action, "host": host, "value": reason, "did": did}
        self.told.append({name: fact for name, fact in facts.items() if fact})

    def _inject(self, control: records.Control, found: list[Entry], now: float) -> str:
        """Put a URL before all others of its host. One that is out or done is left alone."""
        url = url_of(control)
        priority = number_of(control, -TOP_PRIORITY, TOP_PRIORITY, default=TOP_PRIORITY)
        assert priority is not None
        if (line := self.bans.judge(url)) is not None:
            return f"not queued: banned by {line}"
        key = url_key(url)
        state = self.book.known_now([key])[0]
        if state is None:
            found.append(Entry(url.href, priority=priority, typed=True, seed=True))
            return "queued"
        return deadletters.hasten(self.book, key, url, state, priority)

    # --- bans ---

    def _block(self, control: records.Control, now: float) -> str:
        ban = read_line(control.host or control.url or "")
        if ban is None:
            raise Refused("block needs a host or a URL pattern")
        if self.bans.lists["control"].count >= limits.CONTROL_BANS_MAX:
            raise Refused(f"more than {limits.CONTROL_BANS_MAX} blocks: use a ban file")
        if not self.bans.block(ban):
            return "was blocked already"
        self._put(b"ban:" + ban.line.encode(), b"1")
        self._note_bans()
        if ban.kind == "pattern":
            self.jobs.add("sweep")
        elif ban.kind == "host" or ban.also:
            self.jobs.add("sweep", ban.name)
        if ban.kind == "domain":
            self.jobs.add("hosts", reason=ban.line)
        return f"blocked {ban.line}"

    def _unblock(self, control: records.Control, now: float) -> str:
        ban = read_line(control.host or control.url or "")
        if ban is None:
            raise Refused("unblock needs a host or a URL pattern")
        if not self.bans.unblock(ban):
            return "was not blocked by control (a ban file is edited by hand)"
        self._put(b"ban:" + ban.line.encode(), None)
        self._note_bans()
        if self.book.ledger.refused.get(deadletters.BANNED):
            self.jobs.add("unban")
        return f"unblocked {ban.line}"

    # --- settings of one host ---

    def _slow(self, control: records.Control, now: float) -> str:
        name, delay_s = host_of(control), number_of(control, 0.0, limits.CONTROL_DELAY_S_MAX)
        if not self._set(name, delay_s=delay_s):
            return "was set already"
        if delay_s and self.book.is_host_known(name):
            # From now on, not from the next exchange on; and a rest that has begun is never shortened (law 8).
            host = self.book.host(name)
            host.rest_until(now + delay_s, delay_s)
            self.book.touch(host)
            self.book.schedule(host)
        return f"{name} rests at least {delay_s:g} s" if delay_s else f"{name} rests as before"

    def _budget(self, control: records.Control, now: float) -> str:
        name, pages = host_of(control), number_of(control, 0.0, 1e12)
        if not self._set(name, pages=int(pages) if pages is not None else None):
            return "was set already"
        if self.book.is_host_known(name):
            host = self.book.host(name)
            host.full = False  # release looks again
            self.book.touch(host)
            self.book.schedule(host)
        return f"at most {pages:g} pages of {name}" if pages is not None else f"the budget of {name} is as before"

    def _reputation(self, control: records.Control, now: float) -> str:
        name, factor = host_of(control), number_of(control, 0.001, 1000.0)
        if not self._set(name, reputation=factor):
            return "was set already"
        return f"the reputation of {name} is {factor:g}" if factor is not None else f"the reputation of {name} is computed"

    def _set(self, name: str, **change: float | None) -> bool:
        """Change a host's settings; False when they are so already."""
        old = HostSettings(self.delays.get(name), self.budgets.get(name), self.reputations.get(name))
        new = msgspec.structs.replace(old, **change)
        if new == old:
            return False
        if len(self.delays) + len(self.budgets) + len(self.reputations) >= limits.CONTROL_HOSTS_MAX:
            raise Refused("too many hosts with settings of their own")
        self._hold(name, new)
        self._put(b"host:" + name.encode(), rows.pack(new) if new != HostSettings() else None)
        return True

    def _hold(self, name: str, new: HostSettings) -> None:
        _put_or_drop(self.delays, name, new.delay_s)
        _put_or_drop(self.budgets, name, new.pages)
        _put_or_drop(self.reputations, name, new.reputation)

    # --- the whole crawl ---

    def _pause(self, control: records.Control, now: float) -> str:
        if self.paused:
            return "was paused already"
        self.paused = True
        self._put(b"paused", b"1")
        return "paused"

    def _resume(self, control: records.Control, now: float) -> str:
        if not self.paused:
            return "was not paused"
        self.paused = False
        self._put(b"paused", None)
        return "resumed"

    def _stop(self, control: records.Control, now: float) -> str:
        """End this run; a line that was meant for an earlier one does nothing."""
        run = number_of(control, 0.0, 1e15)
        if run is not None and run != self.book.run:
            return f"run {run:g} is over already"
        self.stop = True
        return "stopping"

    # --- dead letters and take-downs ---

    def _requeue(self, control: records.Control, now: float) -> str:
        if control.url:
            url = url_of(control)
            key = url_key(url)
            state = self.book.known_now([key])[0]
            return deadletters.requeue(self.book, self.admission, self.bans, key, state)
        value = value_of(control)
        reason = value[:REASON_CHARS_MAX] if isinstance(value, str) else ""
        name = host_of(control) if control.host else ""
        if not name and not reason:
            raise Refused("requeue needs a URL, a host or a reason")
        if name and self.book.is_host_known(name):
            deadletters.reopen(self.book, self.book.host(name))
        self.jobs.add("requeue", name, reason)
        return "begun"

    def _forget(self, control: records.Control, now: float) -> str:
        self.admission.forget_texts()
        if control.url:
            url = url_of(control)
            return "forgotten" if deadletters.forget(self.book, url_key(url), url.host) else "was not known"
        name = host_of(control)
        gone = deadletters.forget_held(self.book, name)
        self.jobs.add("forget", name)
        return f"begun; {gone} URLs that were out or waited are forgotten"

    def _put(self, key: bytes, value: bytes | None) -> None:
        self.book.put(Table.META, PREFIX + key, value)


def _put_or_drop(found: dict[str, Number], name: str, value: Number | None) -> None:
    if value is None:
        found.pop(name, None)
    else:
        found[name] = value
