"""Every answer of the collected bad servers, through `crawltool fetch` and out of its archive: what curl makes of it, or why not.

raw_answers_differences.json names each case in which we differ, with the reason; a case that agrees may not stand there.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from crawltool.core.decoding import decode
from crawltool.records import Locator
from crawltool.stores import warcread
from tests.archives import assert_clean
from tests.e2e.crawls import CONTACT, tool
from tests.paths import shared_data

pytestmark = pytest.mark.real
DIFFERENCES = Path(__file__).with_name("raw_answers_differences.json")
REFUSED = ("malformed", "unreachable")
BROKE_OFF = (18, 56)  # curl's exits for a body that ended early or whose chunks are broken


def cases() -> list[dict[str, Any]]:
    """Give the answers with what curl made of them."""
    return [json.loads(line) for line in shared_data("http/responses.jsonl").read_bytes().splitlines()]


def sent(case: dict[str, Any], port: int) -> bytes:
    """Give the bytes that the server sends before it closes."""
    if "response_b64" in case:
        return base64.b64decode(case["response_b64"])
    return str(case["response"]).replace("PORT", str(port)).encode()


@contextmanager
def serving(found: list[dict[str, Any]]) -> Iterator[tuple[int, list[str]]]:
    """Answer /case/N with case N; gives the port and the targets that were asked for."""
    asked: list[str] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            target = self.rfile.readline().split(b" ")[1].decode()
            while self.rfile.readline() not in (b"\r\n", b""):
                pass
            asked.append(target)
            self.wfile.write(sent(found[int(target.rpartition("/")[2])], self.server.server_address[1]))

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads, request_queue_size = True, 500

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield server.server_address[1], asked
        server.shutdown()


def fetched(folder: Path, port: int, number: int) -> list[dict[str, Any]]:
    """Run `crawltool fetch` on all cases; gives the outcomes by number."""
    made = {"type": "target", "kind": "page", "address": "127.0.0.1", "typed": True, "rest_s": 1}
    lines = [json.dumps({**made, "url": f"http://127.0.0.1:{port}/case/{n}", "lease": f"1-{n}"}) for n in range(number)]
    (folder / "c").mkdir()
    types = ["--types", "all"]
    words = ["fetch", "-C", str(folder / "c"), *CONTACT, *types, "--timeout-total", "10s", "--concurrency", "40"]
    done = tool(folder, *words, input="".join(line + "\n" for line in lines), timeout_s=60)
    outcomes = {int(one["lease"][2:]): one for one in map(json.loads, done.stdout.encode().splitlines())}
    assert sorted(outcomes) == list(range(number)), "one outcome for each target"
    return [outcomes[n] for n in range(number)]


def stored(folder: Path, outcome: dict[str, Any]) -> bytes | None:
    """Give the body as archived; None when nothing was."""
    place = outcome.get("body_warc") or outcome.get("warc")
    return None if place is None else warcread.read(folder / "c" / "warc", Locator(**place)).body


def as_seen(curl: dict[str, Any]) -> tuple[int, str]:
    """Give length and hash of the body that a run of curl printed."""
    if "body_sha256" in curl:
        return curl["body_len"], curl["body_sha256"]
    body = base64.b64decode(curl["body_b64"]) if "body_b64" in curl else curl.get("body", "").encode()
    return curl["body_len"], hashlib.sha256(body).hexdigest()


def as_kept(body: bytes) -> tuple[int, str]:
    return len(body), hashlib.sha256(body).hexdigest()


def difference(case: dict[str, Any], outcome: dict[str, Any], body: bytes | None, port: int) -> str | None:
    """Say how we differ from curl; None when we agree."""
    curl = case["observed"]["curl"]
    status, truncated = outcome.get("status"), outcome.get("truncated")
    if status is None:
        assert outcome["reason"] and body is None
        return None if curl["exit"] and outcome["verdict"] in REFUSED else f"{outcome['verdict']}: {outcome['reason']}"
    assert body is not None
    if status != curl["status"]:
        return f"status {status}, curl {curl['status']}"
    if curl["exit"] in BROKE_OFF:
        if truncated is None:
            return f"whole, curl exits {curl['exit']}"
    elif curl["exit"]:
        return f"an answer, curl exits {curl['exit']}"
    elif truncated is not None:
        return f"truncated ({truncated}), curl says it is whole"
    if as_kept(body) != as_seen(curl):
        return f"{len(body)} bytes, curl {curl['body_len']}"
    return _redirect(outcome, curl, port) or _decoded(case, body, outcome)


def _redirect(outcome: dict[str, Any], curl: dict[str, Any], port: int) -> str | None:
    ours, theirs = outcome.get("redirect"), curl.get("redirect_url")
    if theirs is not None:
        own = outcome["url"].rpartition("/")[2]
        theirs = re.sub(r"/case/\d+(?=\?)", f"/case/{own}", theirs.replace("PORT", str(port)))  # its own number, there and here
    return (
        None if ours == theirs else f"redirect {str(ours).replace(str(port), 'PORT')}, curl {theirs}".replace(str(port), "PORT")
    )


def _decoded(case: dict[str, Any], body: bytes, outcome: dict[str, Any]) -> str | None:
    """Compare with `curl --compressed`, where it was tried and came to something."""
    curl = case["observed"].get("curl_compressed")
    coding = (outcome.get("headers") or {}).get("content-encoding")
    if curl is None or curl["exit"] or coding is None:
        return None
    plain, trouble = decode(body, coding, 64 << 20)
    if trouble and "not supported" in trouble:
        return None  # nothing is made up: the archive has it as it came
    return None if as_kept(plain) == as_seen(curl) else f"{len(plain)} bytes decoded, curl --compressed {curl['body_len']}"


def test_every_answer_is_archived_as_curl_reads_it_or_the_difference_is_explained(tmp_path: Path) -> None:
    found, known = cases(), json.loads(DIFFERENCES.read_text())
    with serving(found) as (port, asked):
        outcomes = fetched(tmp_path, port, len(found))
    assert sorted(asked) == sorted(f"/case/{n}" for n in range(len(found))), "each was asked once"
    said: dict[str, str] = {}
    for case, outcome in zip(found, outcomes, strict=True):
        text = difference(case, outcome, stored(tmp_path, outcome), port)
        if text is not None:
            said[case["id"]] = text
    assert said == {case: row["differs"] for case, row in known.items()}
    assert all(row["because"] for row in known.values())
    for path in sorted((tmp_path / "c" / "warc").glob("*.warc.gz")):
        assert_clean(path)
