"""How does a damaged archive become a valid one that holds all that can be read?

Walks over the file (stores/warcwalk) and writes every record as a gzip member of its own into a new file: whole records byte
for byte, torn ones as far as they go and marked as truncated. What is left out is told with its place. The new file appears
under its name when it is complete and durable, never before, and no file is replaced. Called by cli/warcrepair.
"""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Literal

import msgspec
from isal import isal_zlib

from crawltool import limits
from crawltool.core import warcmending
from crawltool.core.warcrecords import END
from crawltool.errors import CannotHold
from crawltool.stores import atomic
from crawltool.stores.warcfile import GZIP_WINDOW, LEVEL
from crawltool.stores.warcwalk import Piece, walk

_HELD_BYTES = 4 * limits.MIB  # of a block in memory; a longer one waits in a temporary file until its length is known


class Mended(msgspec.Struct, tag="repair", frozen=True, omit_defaults=True, kw_only=True):
    """What was done about one place of the old file."""

    offset: int
    length: int
    did: Literal["left_out", "mended", "cut"]
    message: str
    url: str = ""


class Repair:
    """One file to be written anew. run() gives what was not taken as it was; `records` counts those written."""

    def __init__(self, source: Path, target: Path) -> None:
        self.source, self.target = source, target
        self.records = 0
        self.left_out_bytes = 0
        self._packs = not target.name.endswith(".warc")

    def run(self) -> Iterator[Mended]:
        """Write the new file. Raises CannotHold when there is one of its name, DiskTrouble; then nothing is left behind."""
        if self.target.exists():
            raise CannotHold(f"{self.target} is there already", remedy="name a file that does not exist")
        temporary = self.target.with_name(f".{self.target.name}.{os.getpid()}.tmp")
        try:
            with atomic.disk(self.target), temporary.open("xb") as out:
                for piece in walk(self.source):
                    yield from self._piece(piece, out)
                out.flush()
                os.fsync(out.fileno())
            with atomic.disk(self.target):
                os.link(temporary, self.target)  # unlike rename, it never replaces
        except FileExistsError:
            raise CannotHold(f"{self.target} is there already", remedy="name a file that does not exist") from None
        finally:
            temporary.unlink(missing_ok=True)
        atomic.sync_folder(self.target.parent)

    def _piece(self, piece: Piece, out: IO[bytes]) -> Iterator[Mended]:
        if piece.head is None:
            piece.close()
            self.left_out_bytes += piece.length
            yield self._mended(piece, "left_out", piece.troubles[0].text)
            return
        with tempfile.SpooledTemporaryFile(_HELD_BYTES) as block:
            for data in piece.chunks():
                block.write(data)
            piece.close()
            is_torn = any(trouble.code == "torn" for trouble in piece.troubles)
            if piece.head.content_length is None or (is_torn and not piece.block_bytes):
                self.left_out_bytes += piece.length
                yield self._mended(piece, "left_out", f"only a header: {'; '.join(text for _, text in piece.troubles)}")
                return
            new_id = f"urn:uuid:{uuid.uuid4()}"
            header, changes = warcmending.header(piece.head, piece.raw_head, piece.block_bytes, is_torn, new_id)
            block.seek(0)
            self._write(header, block, out)
        self.records += 1
        if changes:
            yield self._mended(piece, "cut" if is_torn else "mended", "; ".join(changes))

    def _write(self, header: bytes, block: tempfile.SpooledTemporaryFile[bytes], out: IO[bytes]) -> None:
        packer = isal_zlib.compressobj(LEVEL, isal_zlib.DEFLATED, GZIP_WINDOW) if self._packs else None
        for data in _pieces(header, block):
            out.write(packer.compress(data) if packer else data)
        if packer:
            out.write(packer.flush())

    def _mended(self, piece: Piece, did: Literal["left_out", "mended", "cut"], message: str) -> Mended:
        url = piece.head.url if piece.head else ""
        return Mended(offset=piece.offset, length=piece.length, did=did, message=message, url=url)


def _pieces(header: bytes, block: tempfile.SpooledTemporaryFile[bytes]) -> Iterator[bytes]:
    yield header
    while data := block.read(64 * limits.KIB):
        yield data
    yield END
