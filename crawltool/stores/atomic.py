"""How does a file come to be whole or not at all, and who holds a directory?

Every durable file of the project that is not appended to is made here: temporary file in the same folder, fsync,
rename, fsync of the folder. Locks are flock(2): the kernel lets go of them when the process dies, at any byte. Called
by the other stores, by the frontier and fetch (their lock files) and by cli/init.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from crawltool.errors import CannotHold, DiskTrouble

# The disk cannot take it (full, quota, size limit, read-only after an error) or has lost it.
DISK_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS})
# The directory is not ours to write.
ACCESS_ERRNOS = frozenset({errno.EACCES, errno.EPERM})


@contextlib.contextmanager
def disk(path: Path | str) -> Iterator[None]:
    """Turn the system's word for a full, broken or forbidden disk into DiskTrouble or CannotHold; pass the rest on."""
    try:
        yield
    except OSError as error:
        if error.errno in DISK_ERRNOS:
            raise DiskTrouble(f"{path}: {error.strerror}") from error
        if error.errno in ACCESS_ERRNOS:
            raise CannotHold(f"{path}: {error.strerror}", remedy="make it writable, or use another directory") from error
        raise


def sync_folder(folder: Path) -> None:
    """Make names created, renamed or removed in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write every byte; write(2) may stop early on a disk that is nearly full. Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def write_file(path: Path | str, *pieces: bytes, durable: bool = True) -> None:
    """Replace a file as a whole: a reader, or a crash at any byte, sees the old content or the new.

    The pieces follow one another; they are not joined in memory. durable=False leaves out both fsyncs, for files that are
    only looked at (status.json). Raises DiskTrouble, CannotHold.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with disk(path):
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
            try:
                for piece in pieces:
                    write_all(descriptor, piece)
                if durable:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
            temporary.rename(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        if durable:
            sync_folder(path.parent)


class Lock:
    """A held flock. Ends with release(), at the end of a `with`, or with the process."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    def read(self) -> bytes:
        """Give what the holder wrote into the lock file."""
        return os.pread(self._descriptor, os.fstat(self._descriptor).st_size, 0)

    def write(self, data: bytes) -> None:
        """Replace the content of the lock file; durable on return. Only for an exclusive holder."""
        with disk(self.path):
            os.ftruncate(self._descriptor, 0)
            assert os.pwrite(self._descriptor, data, 0) == len(data), self.path
            os.fsync(self._descriptor)

    def share(self) -> None:
        """Let other shared holders in beside this one; the kernel may let an exclusive one pass in between."""
        grab(self._descriptor, shared=True, wait=True)

    def release(self) -> None:
        """Let go; a second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.release()


def lock(path: Path | str, shared: bool = False, wait: bool = False) -> Lock:
    """Take a file's flock, creating the file; the descriptor is not inherited by child processes.

    Raises CannotHold at once when another process holds it (unless wait), or when it cannot be created.
    """
    path = Path(path)
    with disk(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    if not grab(descriptor, shared=shared, wait=wait):
        os.close(descriptor)
        raise CannotHold(f"{path} is held by another process")
    return Lock(path, descriptor)


def grab(descriptor: int, *, shared: bool = False, wait: bool = False) -> bool:
    """Take the flock of an open file; tell whether that worked. With wait it always does."""
    how = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB)
    try:
        fcntl.flock(descriptor, how)
    except BlockingIOError:
        return False
    return True
