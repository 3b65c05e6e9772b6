"""The robots.txt rules of authorities: those that were used lately are in memory, parsed.

Called by core/frontier/release (to judge), core/frontier/hosting and core/frontier/robotsanswers (when rules come, or do
not). A part of core/frontier/book.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from crawltool import limits
from crawltool.core.frontier import rows
from crawltool.core.frontier.rows import RobotsRow, Table
from crawltool.core.frontier.workbench import Port
from crawltool.core.robots import Rules
from crawltool.records import Robots

ROBOTS_HELD = 20_000  # authorities whose rules are in memory; the longest unused go first
RULES_HELD = 400_000  # rules of them all, about 0.3 KB each with what is compiled


class RobotsState:
    """One authority's rules in memory: its row, the compiled rules, and whether a fetch of them is under way."""

    __slots__ = ("is_unused", "pending", "row", "rules", "waiting")

    def __init__(self, row: RobotsRow | None) -> None:
        self.row = row
        self.rules: Rules | None = None
        self.pending = False
        self.is_unused = False  # they came, and nothing was judged by them yet
        self.waiting: dict[str, None] = {}  # hosts parked until the answer

    def hold(self, now: float) -> bool:
        """Tell whether the rules may be used.

        One URL may be judged by rules that are just too old if they came for it: where many hosts share an address and
        --robots-ttl is short, a host's turn comes so late that its rules would be fetched for ever (law 11).
        """
        row = self.row
        if row is None or row.fetched_at > now or row.availability == "unreachable":
            return False
        return now < row.expires_at or (self.is_unused and now < row.fetched_at + limits.ROBOTS_TTL_S_MAX)

    def compiled(self) -> Rules:
        """Give the compiled rules."""
        assert self.row is not None
        if self.rules is None:
            self.rules = Rules(Robots(rules=self.row.rules))
        return self.rules


class Rulebook:
    """What is known of the rules of authorities."""

    def __init__(self, port: Port, put: Callable[[Table, bytes, bytes | None], None]) -> None:
        """put: saves a row with this turn."""
        self.port, self.put = port, put
        self.held: dict[str, RobotsState] = {}  # the longest unused first
        self.held_most, self.rules_most = ROBOTS_HELD, RULES_HELD
        self.rules_held = 0

    def of(self, authority: str) -> RobotsState:
        """Give the rules of an authority as they are known."""
        state = self.held.pop(authority, None)
        if state is None:
            raw = self.port.get(Table.ROBOTS, authority.encode())
            state = RobotsState(rows.robots_row_of(raw) if raw else None)
            self.rules_held += _rules_of(state)
            self._forget()
        self.held[authority] = state
        return state

    def save(self, authority: str, row: RobotsRow) -> None:
        """Change the rules of an authority."""
        state = self.of(authority)
        self.rules_held -= _rules_of(state)
        state.row, state.rules, state.pending = row, None, False
        state.is_unused = row.availability != "unreachable"
        self.rules_held += _rules_of(state)
        self.put(Table.ROBOTS, authority.encode(), rows.pack(row))

    def _forget(self) -> None:
        """Drop the longest unused rules; those that somebody waits for stay, and so do the newest: they may be of this turn."""
        if len(self.held) <= self.held_most and self.rules_held <= self.rules_most:
            return
        held_before = len(self.held)
        for authority in list(islice(self.held, held_before // 4)):
            state = self.held[authority]
            if not state.pending and not state.waiting and not state.is_unused:
                self.rules_held -= _rules_of(state)
                del self.held[authority]
        # Where most must stay, the next look waits until many more are there: each look costs as much as it passes by.
        self.held_most = max(ROBOTS_HELD, len(self.held) + held_before // 8)
        self.rules_most = max(RULES_HELD, self.rules_held + RULES_HELD // 8)


def _rules_of(state: RobotsState) -> int:
    return len(state.row.rules) if state.row is not None else 0
