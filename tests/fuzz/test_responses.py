"""One round of mutated answers, always the same: every answer has its outcome, and the archive gives back what came."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.responses import Round


def test_mutated_answers_are_one_outcome_each_and_read_back_as_they_came(tmp_path: Path) -> None:
    one = Round("2/2", tmp_path, 600)
    verdicts = one.run()
    assert one.problems == []
    assert len(verdicts) >= 10 and verdicts["ok"] > 50, f"the mutations have lost their variety: {verdicts}"
