"""Every byte before the end is whole; a torn frame is cut, damage is not."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from crawltool.errors import DiskTrouble
from crawltool.stores import frames


def fill(path: Path, *contents: bytes) -> list[int]:
    file = frames.FrameFile(path)
    ends = [file.append(content) for content in contents]
    file.close()
    return ends


def test_frames_are_read_back_with_their_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.zst"
    contents = [b"one\n", b"two\n" * 50_000, b"", b"four\n"]
    ends = fill(path, *contents)
    assert list(frames.read(path)) == list(zip(contents, ends, strict=True))
    assert list(frames.read(path, ends[1])) == [(b"", ends[2]), (b"four\n", ends[3])]
    assert ends[-1] == path.stat().st_size


def test_a_frame_torn_at_any_byte_is_cut_and_the_file_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "a.zst"
    ends = fill(path, b"one\n", b"two two two\n")
    whole = path.read_bytes()
    for length in range(ends[0], ends[1]):
        path.write_bytes(whole[:length])
        assert [content for content, _ in frames.read(path)] == [b"one\n"]
        file = frames.FrameFile(path)
        assert file.cut(ends[0]) == length - ends[0]
        file.append(b"three\n")
        file.close()
        assert [content for content, _ in frames.read(path)] == [b"one\n", b"three\n"]


def test_a_tail_of_zeros_after_a_power_cut_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "a.zst"
    ends = fill(path, b"one\n", b"two two two\n")
    whole = path.read_bytes()
    path.write_bytes(whole[: ends[0] + 6] + bytes(ends[1] - ends[0] - 6))
    file = frames.FrameFile(path)
    assert [end for _, end in frames.read(path)] == ends[:1]
    assert file.cut(ends[0]) > 0 and path.stat().st_size == ends[0]


def test_damage_in_the_middle_is_told_and_nothing_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "a.zst"
    ends = fill(path, b"one\n", b"two two two\n", b"three\n")
    content = bytearray(path.read_bytes())
    content[ends[1] - 1] ^= 1
    path.write_bytes(content)
    assert [end for _, end in frames.read(path)] == ends[:1]
    with pytest.raises(DiskTrouble, match="damaged at byte"):
        frames.FrameFile(path).cut(ends[0])
    assert path.read_bytes() == content


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.zst"
    fill(path, b"one\n")
    before, real = path.read_bytes(), os.write
    room = [9]

    def nearly_full(descriptor: int, data: bytes) -> int:
        if not room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, bytes(data[: room.pop()]))

    file = frames.FrameFile(path)
    monkeypatch.setattr(os, "write", nearly_full)
    with pytest.raises(DiskTrouble, match="No space left"):
        file.append(b"two\n" * 100)
    monkeypatch.undo()
    assert path.read_bytes() == before
    file.append(b"two\n")
    assert [content for content, _ in frames.read(path)] == [b"one\n", b"two\n"]
