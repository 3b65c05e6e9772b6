"""Every answer of the collected bad servers is read as curl reads it, or is one flagged outcome; none hangs or crashes."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest
import trio

from crawltool.net.engine import Engine, Exchange
from tests.net.rawserver import Connection, read, serving
from tests.paths import shared_data

pytestmark = pytest.mark.real
WORDS = {"unreachable", "malformed", "timeout", "too_large"}
# What libcurl 8 refuses and the observed 7.88 let pass, and our own rule for an answer without an end of its headers.
STRICTER = (
    "closed inside the header block",
    "Carriage return found in header",
    "Unsupported HTTP/1 subversion",
    "Unsolicited Transfer-Encoding",
    "was listed after chunked",
    "Invalid Content-Length",
    "Multiple Location headers",
)
BROKE_OFF = {18, 56}  # curl's exits for a body that ended early


def answers() -> list[dict[str, Any]]:
    lines = shared_data("http/responses.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def sent(row: dict[str, Any], port: int) -> bytes:
    if "response_b64" in row:
        return base64.b64decode(row["response_b64"])
    text: str = row["response"]
    return text.replace("PORT", str(port)).encode()


def differs(row: dict[str, Any], exchange: Exchange) -> str | None:
    """Say how an exchange differs from what curl made of the same bytes; None when it agrees."""
    curl, body = row["observed"]["curl"], read(exchange)
    if exchange.error is not None:
        assert exchange.error in WORDS
        assert exchange.reason
        if any(words in exchange.reason for words in STRICTER):
            return None
        return None if curl["exit"] else f"error {exchange.error}: {exchange.reason}"
    if curl["exit"] in BROKE_OFF and exchange.truncated is None:
        return f"curl exits {curl['exit']}, we say the body is whole"
    if curl["status"] != exchange.status:
        return f"status {exchange.status} instead of {curl['status']}"
    if not curl["exit"] and (
        len(body) != curl["body_len"]
        or hashlib.sha256(body).hexdigest() != curl.get("body_sha256", hashlib.sha256(body).hexdigest())
    ):
        return f"{len(body)} bytes instead of {curl['body_len']}"
    return None


def test_bad_servers_are_read_as_curl_reads_them() -> None:
    rows = answers()
    found: dict[str, str] = {}

    async def main() -> None:
        async def handler(connection: Connection) -> None:
            head = await connection.head()
            await connection.send(sent(rows[int(head.split()[1][1:])], server.port))

        async with serving(handler) as server, Engine() as engine:

            async def ask(number: int) -> None:
                exchange = await engine.exchange(server.request(f"/{number}", timeout_total_s=3.0))
                verdict = differs(rows[number], exchange)
                if verdict:
                    found[rows[number]["id"]] = verdict

            with trio.fail_after(15):
                async with trio.open_nursery() as nursery:
                    for number in range(len(rows)):
                        nursery.start_soon(ask, number)
            assert engine.in_flight == 0

    trio.run(main)
    assert found == {}
