"""Which bans stand in files, and have they changed?

A file is read whole, at start and again when its name leads to other bytes (inode, size or time of change). One that is gone or
cannot be read while the crawl runs keeps the bans it had, and that is said: an opt-out must not end with a slip of an editor.
core/frontier/bans gives the lines their meaning. Called by stages/frontier.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crawltool import limits
from crawltool.core.frontier.bans import BanList, read_lines
from crawltool.errors import BadPolicy


class BanFiles:
    """The ban files of a crawl, in the order in which they are asked."""

    def __init__(self, paths: Sequence[Path]) -> None:
        """Read all. Raises BadPolicy."""
        self.paths = list(dict.fromkeys(paths))
        self.seen: dict[Path, tuple[int, int, int] | None] = {}
        self.lists: dict[str, BanList] = {}
        for path in self.paths:
            self.seen[path] = _mark(path)
            self.lists[str(path)] = _read(path)

    def changed(self) -> bool:
        """Tell whether one of the files is not the one that was read. Costs a stat(2) each."""
        return any(_mark(path) != self.seen[path] for path in self.paths)

    def reload(self) -> list[str]:
        """Read all again; the result says what could not be read, and why."""
        troubles = []
        for path in self.paths:
            self.seen[path] = _mark(path)
            try:
                self.lists[str(path)] = _read(path)
            except BadPolicy as error:
                troubles.append(f"{error}: the bans it had before hold on")
        return troubles


def _mark(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _read(path: Path) -> BanList:
    try:
        with path.open("rb") as file:
            data = file.read(limits.BAN_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise BadPolicy(f"ban file {path}: {error.strerror}", remedy="make it readable, or take it out of the policy") from None
    if len(data) > limits.BAN_FILE_BYTES_MAX:
        raise BadPolicy(f"ban file {path} is larger than {limits.BAN_FILE_BYTES_MAX // limits.MIB} MiB")
    return read_lines(data.decode("utf-8", "replace"), str(path))
