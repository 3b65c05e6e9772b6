"""The test web is what its table says, answers fast, and logs every request: the ground of all end-to-end tests."""

from __future__ import annotations

import http.client
import inspect
from pathlib import Path

import pytest

from tests.web import Web, table
from tests.web.answers import BEHAVIOURS


def get(web: Web, name: str, path: str = "/", host: str | None = None) -> http.client.HTTPResponse:
    """Ask once, on a connection of its own."""
    connection = http.client.HTTPConnection(web.address(name), web.port, timeout=5)
    connection.request("GET", path, headers={"Host": host or f"{web.address(name)}:{web.port}"})
    return connection.getresponse()


def test_each_behaviour_has_a_description_and_a_row() -> None:
    rows = {words.split()[0] for corner in table.CORNERS.values() for words in corner.rows.values()} - {table.REFUSED}
    assert rows == set(BEHAVIOURS)
    assert [name for name, factory in BEHAVIOURS.items() if not inspect.getdoc(factory)] == []


def test_every_host_of_the_table_can_be_asked_and_logs_it(tmp_path: Path) -> None:
    with Web(tmp_path) as web:
        mute = {
            "silent",
            "slow",
            "drip-body",
            "drip-headers",
            "endless-headers",
            "endless-1xx",
            "endless-body",
            "endless-chunks",
            "reset",
        }
        for name in sorted(set(web.origins) - mute - {"refused"}):
            answer = get(web, name)
            assert 200 <= answer.status < 600, name
        asked = {ask.site for ask in web.log()}
        assert asked == set(web.origins) - mute - {"refused"}
        with pytest.raises(ConnectionRefusedError):
            get(web, "refused")


def test_settings_of_a_row_reach_the_behaviour(tmp_path: Path) -> None:
    with Web(tmp_path, {"small": "plain pages=3", "crowd": "many pages=2"}) as web:
        assert get(web, "small", "/p2.html").status == 200
        assert get(web, "small", "/p3.html").status == 404
        assert b"of n7.test" in get(web, "crowd", "/p1.html", host="n7.test").read()
        assert [ask.host for ask in web.log("crowd")] == ["n7.test"]
        web.forget()
        assert web.log() == []


def test_two_webs_give_the_same_bytes(tmp_path: Path) -> None:
    paths = ["/", "/p7.html", "/p299.html"]
    bodies = []
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        with Web(folder, {"plain": "plain"}) as web:
            bodies.append([get(web, "plain", path).read() for path in paths])
    assert bodies[0] == bodies[1]
