"""What a killed fetch leaves behind is verified, repaired and verified again, by the commands a person has."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawltool.cli.main import main
from crawltool.cli.voice import Voice
from crawltool.records import Outcome, Target, decode, encode
from crawltool.stores import warcread
from tests.archives import assert_clean, files


@pytest.fixture
def port() -> Iterator[int]:
    """A server whose pages are all different, and do not pack."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)

    def answer(connection: socket.socket) -> None:
        with connection:
            connection.recv(65_536)
            body = os.urandom(20_000)
            head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
            connection.sendall(head % len(body) + body)

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    yield listener.getsockname()[1]
    listener.close()


def targets(port: int, count: int) -> Iterator[bytes]:
    for n in range(count):
        url = f"http://127.0.0.1:{port}/{n}"
        yield encode(Target(url=url, lease=f"1-{n}", kind="page", address="127.0.0.1", typed=True))


@pytest.mark.parametrize("outcomes", [1, 40])
def test_a_killed_fetch_leaves_an_archive_that_repair_makes_whole(tmp_path: Path, port: int, outcomes: int) -> None:
    command = [sys.executable, "-m", "crawltool", "fetch", "-C", str(tmp_path), "--min-free", "0", "--concurrency", "8"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"".join(targets(port, 300)))
        process.stdin.flush()
        lines = [process.stdout.readline() for _ in range(outcomes)]
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.read().splitlines(keepends=True)
    [path] = files(tmp_path / "warc")
    assert path.name.endswith(".open")
    with path.open("ab") as file:  # as if the power had gone in the middle of the next write
        file.write(path.read_bytes()[:200])
    assert main(["warc", "verify", "-C", str(tmp_path)], Voice()) == 1
    assert main(["warc", "repair", "-C", str(tmp_path)], Voice()) == 0
    [whole] = files(tmp_path / "warc")
    assert not whole.name.endswith(".open")
    assert_clean(whole)
    assert main(["warc", "verify", "-C", str(tmp_path)], Voice()) == 0
    for line in lines:
        if line.endswith(b"\n"):
            outcome = decode(line)
            assert isinstance(outcome, Outcome) and outcome.warc is not None
            assert len(warcread.read(tmp_path / "warc", outcome.warc).body) == 20_000
