"""WHATWG URL, as the shared web-platform data tells it, for http and https."""

from __future__ import annotations

import json

from crawltool.core import urls
from tests.paths import shared_data

# Cases the installed ada-url reads otherwise than the data. Empty: none.
MISSED_BY_ADA: frozenset[tuple[str, str | None]] = frozenset()


def test_http_urls_are_read_as_the_url_standard_says() -> None:
    cases = [row for row in json.loads(shared_data("url/wpt/urltestdata.json").read_text("utf-8")) if isinstance(row, dict)]
    wrong = []
    asked = 0
    for row in cases:
        text, base, right = row["input"], row.get("base"), row.get("href")
        usable = right is not None and row["protocol"] in ("http:", "https:") and row["hostname"].strip(".")
        found = urls.parse(text, base)
        if usable:
            asked += 1
            host = row["host"] if row["port"] else row["hostname"]
            expected = f"{row['protocol']}//{host}{row['pathname']}" + (
                "?" if right.partition("#")[0].endswith("?") else row["search"]
            )
            good = found is not None and found.href == expected
        else:
            good = found is None
        if not good and (text, base) not in MISSED_BY_ADA:
            wrong.append((text, base, right, found))
    assert asked > 200
    assert wrong == []
