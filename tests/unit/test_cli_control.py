"""What a person types becomes one control line, or a message that says what is wrong."""

from __future__ import annotations

import pytest

from crawltool import records
from crawltool.cli import control
from crawltool.errors import CrawltoolError


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("inject", "http://A.example/x#y", None), b'{"type":"control","action":"inject","url":"http://a.example/x"}'),
        (("block", "*.a.example", None), b'{"type":"control","action":"block","host":"*.a.example"}'),
        (("block", "a.example/x/*", None), b'{"type":"control","action":"block","url":"a.example/x/*"}'),
        (("slow", "A.example", "1.5m"), b'{"type":"control","action":"slow","host":"a.example","value":90.0}'),
        (("slow", "a.example", "none"), b'{"type":"control","action":"slow","host":"a.example"}'),
        (("budget", "a.example", "2k"), b'{"type":"control","action":"budget","host":"a.example","value":2000}'),
        (("requeue", "dns_failure", None), b'{"type":"control","action":"requeue","value":"dns_failure"}'),
        (("requeue", "localhost", None), b'{"type":"control","action":"requeue","host":"localhost"}'),
        (("forget", "http://a.example/", None), b'{"type":"control","action":"forget","url":"http://a.example/"}'),
        (("pause", None, None), b'{"type":"control","action":"pause"}'),
    ],
)
def test_what_is_typed_becomes_a_line(words: tuple[str, str | None, str | None], line: bytes) -> None:
    assert records.encode(control.line_of(*words)) == line + b"\n"


@pytest.mark.parametrize(
    "words",
    [
        ("inject", None, None),
        ("inject", "a.example", None),
        ("inject", "ftp://a.example/", None),
        ("inject", "http://a.example/", "none"),
        ("slow", "a.example", None),
        ("slow", "a.example", "3d"),
        ("slow", "http://a.example/", "1"),
        ("slow", "a.example:80:90", "1"),
        ("block", "a b", None),
        ("block", "#", None),
        ("block", "re:(", None),
        ("pause", "a.example", None),
        ("pause", None, "1"),
        ("forget", "http://[/", None),
    ],
)
def test_what_cannot_be_meant_is_said(words: tuple[str, str | None, str | None]) -> None:
    with pytest.raises((CrawltoolError, control.click.BadParameter)):
        control.line_of(*words)


def test_every_action_has_a_target_rule_and_is_in_the_manual() -> None:
    assert set(control.TARGETS) == set(records.ACTIONS)
    assert all(f"{name}" in control.NOTES for name in records.ACTIONS)
