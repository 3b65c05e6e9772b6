"""Issue 3: the alarm fires within 2,000 fetches on each endless space of the test web, and names host and path pattern.

Walked without a network, in the order of a crawl without a depth limit: what is asked here is the judgement alone.
"""

from __future__ import annotations

import pytest

from tests.walks import alarms, of_the_web
from tests.web import table

FETCHES = 2000
PATTERNS = {
    "calendar": "/day/*",
    "facets": "/list?f0=*&f1=*&f2=*&f3=*&f4=*&f5=*",
    "sessions": "/*?PHPSESSID=*",
    "soft404": "/nothing/**",
    "maze": "/**",
    "hidden": "/trap/*",
}


@pytest.mark.parametrize(("name", "pattern"), PATTERNS.items())
def test_an_endless_space_raises_one_alarm_that_names_it(name: str, pattern: str) -> None:
    found = alarms(f"{name}.test", of_the_web(table.ALL[name]), FETCHES)
    assert [(alarm.host, alarm.pattern) for alarm in found] == [(f"{name}.test", pattern)]
    assert found[0].host_fetches < FETCHES and found[0].new_per_page >= 0.9 and found[0].why


@pytest.mark.parametrize("name", ["plain", "many", "redirects", "duplicates", "hostcase", "charsets", "flaky", "encodings"])
def test_a_host_that_ends_raises_none(name: str) -> None:
    assert alarms(f"{name}.test", of_the_web(table.ALL[name]), FETCHES) == []
