"""A file is whole or not at all; a lock has one holder."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from crawltool.errors import CannotHold, DiskTrouble
from crawltool.stores import atomic


def test_a_written_file_replaces_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "crawl.toml"
    atomic.write_file(path, b"old")
    atomic.write_file(str(path), b"new", durable=False)
    assert path.read_bytes() == b"new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["crawl.toml"]


def test_a_full_disk_leaves_the_old_content_and_no_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state"
    atomic.write_file(path, b"old")

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(DiskTrouble, match="No space left"):
        atomic.write_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["state"]


def test_a_short_write_is_carried_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, bytes(data[:3])))
    atomic.write_file(tmp_path / "a", b"0123456789")
    assert (tmp_path / "a").read_bytes() == b"0123456789"


def test_a_forbidden_folder_is_cannot_hold(tmp_path: Path) -> None:
    with pytest.raises(CannotHold), atomic.disk(tmp_path):
        raise PermissionError(errno.EACCES, "Permission denied")
    with pytest.raises(FileNotFoundError), atomic.disk(tmp_path):
        raise FileNotFoundError(errno.ENOENT, "gone")


def test_an_exclusive_lock_has_one_holder(tmp_path: Path) -> None:
    path = tmp_path / "frontier.lock"
    with atomic.lock(path) as held:
        held.write(b'{"run":12345}')
        held.write(b'{"run":2}')
        assert held.read() == b'{"run":2}'
        with pytest.raises(CannotHold, match="held by another"):
            atomic.lock(path, shared=True)
    again = atomic.lock(path)
    again.release()
    again.release()


def test_shared_locks_keep_an_exclusive_one_out(tmp_path: Path) -> None:
    path = tmp_path / "fetch.lock"
    with atomic.lock(path, shared=True), atomic.lock(path, shared=True), pytest.raises(CannotHold):
        atomic.lock(path)
    atomic.lock(path, wait=True).release()


def test_an_exclusive_holder_may_let_shared_ones_in(tmp_path: Path) -> None:
    with atomic.lock(tmp_path / "writers") as held:
        held.share()
        atomic.lock(tmp_path / "writers", shared=True).release()
        with pytest.raises(CannotHold):
            atomic.lock(tmp_path / "writers")
