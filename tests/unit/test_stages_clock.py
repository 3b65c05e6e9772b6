"""All processes of one boot see one time that never steps."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from crawltool.stages import clock


def test_a_step_of_the_wall_clock_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monotonic = [100.0]
    one = clock.Clock(monotonic=lambda: monotonic[0])
    began = one.now()
    monkeypatch.setattr(time, "time", lambda: 0.0)
    monotonic[0] += 2.5
    assert one.now() == pytest.approx(began + 2.5)
    assert one.at(100.0) == pytest.approx(began)


def test_a_clock_of_the_same_boot_is_taken_over(tmp_path: Path) -> None:
    first = clock.Clock(offset=12345.0)
    (tmp_path / clock.LOCK_NAME).write_bytes(first.note(run=7, pid=1))
    assert clock.of_crawl(tmp_path).offset == 12345.0
    assert clock.read_note((tmp_path / clock.LOCK_NAME).read_bytes()).run == 7


@pytest.mark.parametrize(
    "content", [None, b"", b'{"run":1,"bo', b"\xff", b"[]", b'{"boot":"another","offset":5}', b'{"offset":5}']
)
def test_any_other_note_means_the_own_clock(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / clock.LOCK_NAME).write_bytes(content)
    assert abs(clock.of_crawl(tmp_path).now() - time.time()) < 60
    assert abs(clock.of_crawl(None).now() - time.time()) < 60
