"""crawltool fetch as a process: its exit codes and what it leaves behind."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawltool.stores import warcread

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"


@pytest.fixture
def port() -> Iterator[int]:
    """A server on loopback that answers everything alike, and never what begins with /slow."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    held = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            if connection.recv(65_536).startswith(b"GET /slow"):
                held.append(connection)
                continue
            connection.sendall(ANSWER)
            connection.close()

    threading.Thread(target=serve, daemon=True).start()
    yield listener.getsockname()[1]
    listener.close()


def target(port: int, path: str, lease: str) -> bytes:
    record = {
        "type": "target",
        "url": f"http://127.0.0.1:{port}{path}",
        "lease": lease,
        "kind": "page",
        "address": "127.0.0.1",
        "typed": True,
    }
    return json.dumps(record).encode() + b"\n"


def start(directory: Path, *options: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "crawltool", "fetch", "-C", str(directory), "--min-free", "0", *options]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def archived(directory: Path) -> int:
    """Count the answers in an archive that is whole to its last byte."""
    found = [one for path in (directory / "warc").glob("*.warc.gz") for one in warcread.records(path)]
    assert not [one.damage for one in found if one.damage]
    return sum(one.record is not None and one.record.type in ("response", "revisit") for one in found)


def test_end_of_input_ends_with_0_and_every_target_has_its_outcome(tmp_path: Path, port: int) -> None:
    process = start(tmp_path)
    out, err = process.communicate(b"".join(target(port, f"/{n}", f"1-{n}") for n in range(30)), timeout=20)
    assert process.returncode == 0, err
    assert len({json.loads(line)["lease"] for line in out.splitlines()}) == 30
    assert archived(tmp_path) == 30
    assert b"30 outcomes (30 ok)" in err


@pytest.mark.parametrize(
    ("signum", "code"), [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, -signal.SIGINT), (signal.SIGUSR1, 75)]
)
def test_a_signal_drains_and_tells_the_truth(tmp_path: Path, port: int, signum: int, code: int) -> None:
    process = start(tmp_path, "--grace", "0.2s")
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(target(port, "/slow", "1-1") + target(port, "/a", "1-2"))
    process.stdin.flush()
    first = json.loads(process.stdout.readline())
    process.send_signal(signum)
    out, err = process.communicate(target(port, "/late", "1-3"), timeout=20)
    found = {one["lease"]: one for one in (first, *map(json.loads, out.splitlines()))}
    assert process.returncode == code, err
    assert found["1-2"]["verdict"] == "ok"
    assert found["1-1"]["verdict"] == found["1-3"]["verdict"] == "returned"
    assert "fetched_at" in found["1-1"] and "fetched_at" not in found["1-3"]
    assert archived(tmp_path) == 1


def test_a_second_signal_stops_at_once(tmp_path: Path, port: int) -> None:
    process = start(tmp_path)
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(target(port, "/slow", "1-1") + target(port, "/a", "1-2"))
    process.stdin.flush()
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.3)
    process.send_signal(signal.SIGTERM)
    assert process.wait(2) == -signal.SIGTERM


def test_a_reader_that_goes_away_is_died_of_with_the_archive_whole(tmp_path: Path, port: int) -> None:
    process = start(tmp_path)
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    process.stdin.write(target(port, "/a", "1-1"))
    process.stdin.flush()
    process.stdout.readline()
    process.stdout.close()
    process.stdin.write(target(port, "/b", "1-2"))
    process.stdin.flush()
    assert process.wait(10) == -signal.SIGPIPE
    assert b"Traceback" not in process.stderr.read()
    assert archived(tmp_path) == 2


def test_an_address_beyond_loopback_without_a_contact_is_misuse(tmp_path: Path) -> None:
    process = start(tmp_path)
    record = {"type": "target", "url": "http://site.test/", "lease": "1-1", "kind": "page", "address": "192.0.2.1"}
    _, err = process.communicate(json.dumps(record).encode() + b"\n", timeout=20)
    assert process.returncode == 64
    assert b"--contact" in err and b"Traceback" not in err


def test_strict_ends_with_65_after_the_good_lines(tmp_path: Path, port: int) -> None:
    process = start(tmp_path, "--strict")
    out, err = process.communicate(b"nonsense\n" + target(port, "/a", "1-1"), timeout=20)
    assert process.returncode == 65
    assert json.loads(out)["verdict"] == "ok" and b"nonsense" in err


def test_two_names_of_one_crawler_are_said(tmp_path: Path) -> None:
    _, err = start(tmp_path, "--user-agent", "ExampleBot/2", "--contact", "me@site.test").communicate(b"", timeout=20)
    assert b"--robots-token ExampleBot" in err
    options = ("--user-agent", "ExampleBot/2", "--robots-token", "examplebot", "--contact", "me@site.test")
    _, err = start(tmp_path, *options).communicate(b"", timeout=20)
    assert b"robots" not in err
