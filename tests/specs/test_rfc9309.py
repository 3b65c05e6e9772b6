"""RFC 9309, as the shared cases and Google's own matcher read it."""

from __future__ import annotations

import base64
import json
import re
import tarfile
from collections.abc import Iterator
from typing import Any

import pytest
import zstandard

from crawltool.core import robots, urls
from crawltool.core.verdicts import availability
from tests.paths import shared_data


def cases(name: str) -> Iterator[dict[str, Any]]:
    for line in shared_data(name).read_text("utf-8").strip().split("\n"):
        yield json.loads(line)


def allowed(row: dict[str, Any]) -> bool:
    """Judge a row. Rows pass whole User-Agent headers where RFC 9309 takes the product token, and paths where it takes URLs."""
    body = base64.b64decode(row["robots_txt_b64"]) if "robots_txt_b64" in row else row["robots_txt"].encode()
    token = row["user_agent"].partition("/")[0]
    path = row["url"].replace("ftp:", "http:")
    url = urls.parse(path)
    return robots.Rules(robots.parse(body, token)).judge(path if url is None else url.target)[0]


def is_robots_txt(row: dict[str, Any]) -> bool:
    return bool(row["url"].endswith("/robots.txt"))


def test_every_case_on_which_all_suites_agree_is_judged_so() -> None:
    # Google's matcher leaves /robots.txt to its caller; RFC 9309 section 2.2.2 allows it.
    rows = list(cases("robots/core.jsonl"))
    wrong = [row["id"] for row in rows if allowed(row) is not (row["allowed"] or is_robots_txt(row))]
    assert len(rows) > 1000
    assert wrong == []


def test_the_examples_of_the_rfc_hold() -> None:
    wrong = [row["id"] for row in cases("robots/rfc9309_examples.jsonl") if allowed(row) is not row["allowed"]]
    assert wrong == []


@pytest.mark.slow
def test_real_files_are_read_as_google_reads_them() -> None:
    archive = shared_data("robots/real_robots.tar.zst")
    probes = shared_data("robots/real_verdicts.jsonl.zst")
    bodies = {}
    with zstandard.open(archive, "rb") as raw, tarfile.open(fileobj=raw, mode="r|") as tar:
        for member in tar:
            file = tar.extractfile(member)
            if file is not None:
                bodies[member.name.rpartition("/")[2]] = file.read()
    rules: dict[tuple[str, str], robots.Rules] = {}
    right = total = 0
    with zstandard.open(probes, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            known = (row["host"], row["user_agent"])
            if known not in rules:
                rules[known] = robots.Rules(robots.parse(bodies[row["host"]], row["user_agent"]))
            url = urls.parse(row["url"])
            assert url is not None
            total += 1
            right += rules[known].judge(url.target)[0] is row["google_allowed"]
    print(f"{right} of {total} real verdicts agree ({right / total:.2%})")
    assert right / total > 0.99


def test_an_answer_means_what_the_rfc_says_by_its_status() -> None:
    meanings = {"parse": "rules", "unavailable": "allow_all", "unreachable": "unreachable"}
    for row in cases("robots/http_status_semantics.jsonl"):
        status = re.fullmatch(r"HTTP (\d+)", row["situation"])
        if status is None or "expect" not in row:
            continue
        code = int(status[1])
        expected = meanings[re.split(r"[ :]", row["expect"])[0]]
        if code == 429:
            expected = "unreachable"  # DESIGN section 7, as Google documents it: the host asks for a rest
        verdict = "ok" if code < 300 else "busy" if code in (429, 503) else "server_error" if code >= 500 else "client_error"
        assert availability(verdict, code) == expected, row["id"]
    assert availability("timeout", None) == "unreachable"
