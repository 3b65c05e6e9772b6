"""One grammar of units, read and written."""

from __future__ import annotations

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawltool.cli import units
from crawltool.cli.units import Count, Duration, Factor, Quantity, Share, Size, Token


@pytest.mark.parametrize(
    ("kind", "text", "number"),
    [
        (Duration(), "1.5", 1.5),
        (Duration(), "500ms", 0.5),
        (Duration(), "90s", 90),
        (Duration(), "15m", 900),
        (Duration(), "4h", 14_400),
        (Duration(), "2 d", 172_800),
        (Duration(), 3, 3),
        (Size(), "2048", 2048),
        (Size(), "10MiB", 10 * 2**20),
        (Size(), "10M", 10 * 2**20),
        (Size(), "1GB", 10**9),
        (Size(), "1.5kB", 1500),
        (Count(), "20k", 20_000),
        (Count(), "1M", 1_000_000),
        (Factor(), "0.5", 0.5),
    ],
)
def test_a_quantity_is_read_with_its_unit(kind: Quantity, text: object, number: float) -> None:
    assert kind.convert(text, None, None) == number


@pytest.mark.parametrize("text", ["", "1,5", "five", "-1", "1e3", "10 MiBs", "٣s", "1.2.3", True, "nan", "inf", "0x10"])
@pytest.mark.parametrize("kind", [Duration(), Size(), Count(), Factor()])
def test_what_is_no_quantity_is_refused_with_advice(kind: Quantity, text: object) -> None:
    with pytest.raises(click.BadParameter) as caught:
        kind.convert(text, None, None)
    assert "write" in caught.value.message or "between" in caught.value.message


def test_bounds_hold_and_are_named() -> None:
    with pytest.raises(click.BadParameter, match="between 30m and 1d"):
        Duration(1800, 86_400).convert("5s", None, None)


def test_none_lifts_an_optional_limit_only() -> None:
    assert Count(optional=True).convert("none", None, None) is None
    with pytest.raises(click.BadParameter):
        Count().convert("none", None, None)


@given(st.integers(0, 10**12), st.sampled_from([Duration(), Size(), Count()]))
def test_what_is_written_reads_back(number: int, kind: Quantity) -> None:
    assert kind.convert(kind.write(number), None, None) == number


@pytest.mark.parametrize("text", ["4/4", "-1/4", "1", "a/b", "1/0"])
def test_a_share_lies_within_its_whole(text: str) -> None:
    assert Share().convert("0/4", None, None) == (0, 4)
    with pytest.raises(click.BadParameter):
        Share().convert(text, None, None)


def test_durations_and_sizes_are_said_in_two_figures() -> None:
    said = [units.spoken_duration(seconds) for seconds in (0.24, 59, 600, 3 * 3600 + 1200, 7200, 5 * 86_400, 86_400 * 5000)]
    assert said == ["0.2 s", "59 s", "10 min", "3 h 20 min", "2 h", "5.0 days", "5,000 days"]
    assert [units.spoken_size(size) for size in (812, 4_100_000)] == ["812 bytes", "4.1 MB"]


def test_a_name_that_no_robots_txt_can_hold_is_refused_with_one_that_can() -> None:
    assert Token().convert("My-Bot_x", None, None) == "My-Bot_x"
    for text in ("my-bot/1.0", "bot2", "my bot", "", "*", "böt"):
        with pytest.raises(click.BadParameter, match="write letters"):
            Token().convert(text, None, None)
