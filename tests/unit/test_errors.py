"""Every way to end is told apart, documented, and has advice."""

from __future__ import annotations

import inspect

from crawltool import errors


def classes() -> list[type[errors.CrawltoolError]]:
    found = [one for _, one in inspect.getmembers(errors, inspect.isclass) if issubclass(one, errors.CrawltoolError)]
    return [one for one in found if one is not errors.CrawltoolError]


def test_no_two_endings_share_a_code() -> None:
    codes = [one.exit_code for one in classes()]
    assert len(codes) == len(set(codes))


def test_every_ending_is_in_the_table_of_the_manual_with_message_and_remedy() -> None:
    assert set(classes()) == set(errors.ENDINGS)
    for one in classes():
        assert one.__doc__ and one.remedy, one


def test_an_error_without_words_says_its_docstring() -> None:
    assert str(errors.DiskTrouble()) == errors.DiskTrouble.__doc__
    assert str(errors.DiskTrouble("x", remedy="y")) == "x" and errors.DiskTrouble("x", remedy="y").remedy == "y"
