"""core/pressure: half at once, back in small steps, one burst is one event."""

from __future__ import annotations

from crawltool import limits
from crawltool.core.pressure import Pressure, is_memory_short

CALM = limits.PRESSURE_CALM_S


def test_half_of_what_was_in_the_air_is_allowed_after_a_shortage() -> None:
    rule = Pressure(500)
    assert rule.shortage(44, 10.0) and rule.allowed == 22 and rule.is_low


def test_a_burst_of_failures_is_one_event() -> None:
    rule = Pressure(500)
    assert [rule.shortage(44, 10.0 + step / 1000) for step in range(400)].count(True) == 1
    assert rule.allowed == 22
    assert rule.shortage(22, 10.0 + CALM) and rule.allowed == 11


def test_at_least_one_exchange_flies_whatever_happens() -> None:
    rule = Pressure(3)
    for second in range(10):
        rule.shortage(0, second * CALM)
    assert rule.allowed == 1


def test_calm_seconds_give_it_back_in_small_steps_up_to_what_was_wanted() -> None:
    rule = Pressure(500)
    rule.shortage(500, 0.0)
    assert not rule.calm(CALM / 2) and rule.allowed == 250
    seen = []
    for second in range(1, 100):
        if rule.calm(second * CALM):
            seen.append(rule.allowed)
    assert seen == list(range(260, 501, 10)) and not rule.is_low


def test_a_second_shortage_on_the_way_up_halves_again() -> None:
    rule = Pressure(100)
    rule.shortage(40, 0.0)
    for second in range(1, 21):
        rule.calm(second * CALM)
    assert rule.allowed == 60
    rule.shortage(40, 21 * CALM)
    assert rule.allowed == 20


def test_memory_is_short_by_a_share_in_a_small_container_and_by_an_amount_on_a_large_machine() -> None:
    assert is_memory_short(255 * limits.MIB, 64 << 30) and not is_memory_short(257 * limits.MIB, 64 << 30)
    assert is_memory_short(31 * limits.MIB, 512 << 20) and not is_memory_short(33 * limits.MIB, 512 << 20)
