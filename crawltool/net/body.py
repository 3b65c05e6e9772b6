"""Where does a response body live while nobody has stored it yet: in memory or in an unlinked file?

A body stays in memory up to limits.BODY_IN_MEMORY_BYTES and as long as all bodies together stay under a shared
budget; what is more goes to a temporary file without a name, so that a killed process leaves nothing behind.
net/handle.py fills bodies from libcurl's callback; the fetch stage reads and closes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from crawltool import limits
from crawltool.net import descriptors

CHUNK_BYTES = 64 * limits.KIB  # of chunks() from a file


class BodyMemory:
    """The budget, in bytes, that all bodies of an engine share; `used` is what they hold now."""

    __slots__ = ("limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0


class Body:
    """The bytes of one response body, in memory or in an unlinked temporary file.

    The holder calls close() when it has stored them: that returns the memory to the budget, or closes the file.
    A body that is dropped without close() does so when it is collected.
    """

    __slots__ = ("_chunks", "_directory", "_file", "_memory", "size")

    def __init__(self, memory: BodyMemory, directory: str | None = None) -> None:
        self.size = 0  # bytes kept
        self._memory = memory
        self._directory = directory
        self._chunks: list[bytes] = []
        self._file: IO[bytes] | None = None

    def __len__(self) -> int:
        return self.size

    @property
    def in_file(self) -> bool:
        """Tell whether the bytes went to a file."""
        return self._file is not None

    def add(self, chunk: bytes) -> None:
        """Keep one more piece. Raises OSError when the temporary file cannot be written."""
        self.size += len(chunk)
        if self._file is not None:
            self._file.write(chunk)
            return
        self._chunks.append(chunk)
        memory = self._memory
        memory.used += len(chunk)
        if self.size > limits.BODY_IN_MEMORY_BYTES or memory.used > memory.limit:
            self._spill()

    def _spill(self) -> None:
        """Move what came to a file; without a descriptor for one it stays in memory, and the next piece asks again."""
        self._file = descriptors.open_unlinked(self._directory)
        if self._file is None:
            return
        self._file.writelines(self._chunks)
        self._memory.used -= sum(map(len, self._chunks))
        self._chunks.clear()

    def read(self) -> bytes:
        """Give the whole body; from a file this is a blocking read of at most the request's max_body_bytes."""
        if self._file is not None:
            self._file.seek(0)
            return self._file.read()
        if len(self._chunks) > 1:
            self._chunks[:] = [b"".join(self._chunks)]
        return self._chunks[0] if self._chunks else b""

    def chunks(self) -> Iterator[bytes]:
        """Give the body piece by piece, from its start."""
        if self._file is None:
            yield from self._chunks
            return
        self._file.seek(0)
        while chunk := self._file.read(CHUNK_BYTES):
            yield chunk

    def close(self) -> None:
        """Let go of the bytes; `size` stays. Closing twice is harmless."""
        if self._chunks:
            self._memory.used -= sum(map(len, self._chunks))
            self._chunks.clear()
        if self._file is not None:
            self._file.close()
            self._file = None

    def __del__(self) -> None:
        self.close()
