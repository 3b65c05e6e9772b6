"""How do captures become a tree of files that no URL can break out of?

Names are core/filetree's. The folder must be new or empty, so what is found in it was put there by this run: a second URL of
the same name gets a marked one, and so does a folder where a file is. Every file is made, none is opened that exists. Which
names are one where case does not count is told by the order in which stores/warcpick gives them. Called by cli/warc.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from crawltool.core import filetree, urls
from crawltool.errors import CannotHold
from crawltool.stores import atomic

_TRIES = 8


class Tree:
    """Writes files under a folder. `files` and `bytes` count them."""

    def __init__(self, folder: Path) -> None:
        """Make the folder. Raises CannotHold when something is in it."""
        self.folder = folder
        self.files = self.bytes = 0
        with atomic.disk(folder):
            folder.mkdir(parents=True, exist_ok=True)
        if next(folder.iterdir(), None) is not None:
            raise CannotHold(f"{folder} is not empty", remedy="name a folder that does not exist")

    def add(self, href: str, data: bytes, is_twin: bool = False) -> Path | None:
        """Write one URL's file; gives its path, None for what is no http(s) URL. Raises DiskTrouble, CannotHold.

        is_twin: another URL has the same name on some file systems, so this one gets a mark.
        """
        url = urls.split(href)
        if url is None:
            return None
        *folders, name = filetree.path_of(url)
        with atomic.disk(self.folder):
            folder = self.folder
            for part in folders:
                folder = self._folder(folder, part)
            path = self._file(folder, name, href, data, int(is_twin))
        self.files += 1
        self.bytes += len(data)
        return path

    def _folder(self, parent: Path, name: str) -> Path:
        """Make a folder, or another one where a file or a name of other case is in its place."""
        for number in range(_TRIES):
            path = parent / (name if not number else filetree.marked(name, f"{name}/{number}"))
            with suppress(FileExistsError):
                path.mkdir()
                return path
            if path.is_dir() and not path.is_symlink():
                return path
        raise CannotHold(f"{parent / name}: cannot be made a folder")

    def _file(self, folder: Path, name: str, href: str, data: bytes, first: int) -> Path:
        for number in range(first, _TRIES):
            path = folder / (filetree.marked(name, f"{href}#{number}") if number else name)
            try:
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
            except FileExistsError:
                continue
            try:
                atomic.write_all(descriptor, data)
            finally:
                os.close(descriptor)
            return path
        raise CannotHold(f"{folder / name}: no free name")
