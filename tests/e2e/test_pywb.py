"""pywb replays what fetch archived: status and body byte for byte, for every kind of answer that replay tools stumble over.

pywb pins other versions of half our dependencies, so it lives in a virtual environment of its own (the Makefile installs it into
.venv-pywb).
"""

from __future__ import annotations

import base64
import gzip
import http.client
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from crawltool.core import warcrecords
from crawltool.records import Outcome, Prior, Target, decode, encode
from crawltool.stores import warcread
from tests.archives import cdxj_of
from tests.paths import ROOT

BROTLI = base64.b64decode("G0kBABwJNi5yu2Qj8REqvXnc4PKkT5hYg5ClsYENOGAPNAsmlutbUznVyHJqzwqplxNdnMIp")
PAGE = b"<!doctype html><title>t</title><p>hello " + bytes(range(128, 256))
PACKED = gzip.compress(b"<p>packed " * 50)
CHUNKS = b"5\r\n<p>ch\r\n6;ext=1\r\nunked \r\n4\r\nbody\r\n0\r\nX-Trailer: t\r\n\r\n"


class Served(NamedTuple):
    """What the site answers, and what must come out of the replay."""

    fields: bytes
    body: bytes
    shown: bytes  # the body that the replay gives
    status: int = 200
    closes: bool = False


def plain(body: bytes, fields: bytes = b"Content-Type: text/html\r\n") -> Served:
    return Served(fields + b"Content-Length: %d\r\n" % len(body), body, body)


SITE: dict[str, Served] = {
    "/plain": plain(PAGE),
    "/same": plain(PAGE),  # becomes a revisit of /plain
    "/etag": plain(b"<p>unchanged", b'Content-Type: text/html\r\nETag: "one"\r\n'),
    "/moved": Served(b"Location: /plain\r\nContent-Length: 5\r\n", b"moved", b"moved", 301),
    "/missing": plain(b"<p>no such page")._replace(status=404),
    "/chunked": Served(b"Content-Type: text/html\r\nTransfer-Encoding: chunked\r\n", CHUNKS, b"<p>chunked body"),
    "/gzip": plain(PACKED, b"Content-Type: text/html\r\nContent-Encoding: gzip\r\n"),
    "/br": plain(BROTLI, b"Content-Type: text/html\r\nContent-Encoding: br\r\n"),
    "/chunked-gzip": Served(
        b"Content-Type: text/html\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
        b"%x\r\n%s\r\n0\r\n\r\n" % (len(PACKED), PACKED),
        PACKED,
    ),
    "/truncated": Served(b"Content-Type: text/html\r\nContent-Length: 5000\r\n", b"<p>half", b"<p>half", closes=True),
    "/empty": plain(b""),
    "/no-type": plain(b"\x00\x01binary", b""),
    "/latin": plain(b"<p>header", b"Content-Type: text/html\r\nX-Odd: caf\xe9 \xff\r\nLink: <\xc3\xa9>\r\n"),
    "/it's": plain(b"<p>apostrophe"),
    "/a|b": plain(b"<p>bar"),
    "/a%20b?q=c%20d&e=f+g": plain(b"<p>blank"),
    "/%C3%BC/%E6%97%A5?%C3%A9=1": plain(b"<p>unicode"),
    "/q?b=2&a=1&=x&b": plain(b"<p>query"),
    "/semi;colon,comma!bang(paren)*star~tilde": plain(b"<p>signs"),
    "/long/" + "x" * 1500: plain(b"<p>long"),
    "/bytes": plain(os.urandom(300_000), b"Content-Type: application/octet-stream\r\n"),
}
TYPES = "html,xml,text,json,feed,pdf"


def answer(connection: socket.socket) -> None:
    with connection, suppress(OSError):
        head = b""
        while b"\r\n\r\n" not in head:
            head += connection.recv(65_536)
        path = head.split(b" ", 2)[1].decode()
        served = SITE[path]
        if b"If-None-Match:" in head:
            connection.sendall(b'HTTP/1.1 304 Not Modified\r\nETag: "one"\r\nConnection: close\r\n\r\n')
            return
        line = b"HTTP/1.1 %d %s\r\nConnection: close\r\n" % (served.status, http.client.responses[served.status].encode())
        connection.sendall(line + served.fields + b"\r\n" + served.body)


@contextmanager
def site() -> Iterator[list[str]]:
    """Serve on IPv4 and IPv6 loopback; gives the beginnings of the URLs."""
    listeners = [socket.create_server(("127.0.0.1", 0))]
    with suppress(OSError):
        listeners.append(socket.create_server(("::1", 0), family=socket.AF_INET6))

    def serve(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()

    for listener in listeners:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
    yield [
        f"http://{f'[{one.getsockname()[0]}]' if ':' in one.getsockname()[0] else one.getsockname()[0]}:{one.getsockname()[1]}"
        for one in listeners
    ]
    for listener in listeners:
        listener.close()


def fetch(directory: Path, targets: list[Target]) -> dict[str, Outcome]:
    command = [sys.executable, "-m", "crawltool", "fetch", "-C", str(directory), "--min-free", "0", "--types", TYPES]
    done = subprocess.run(command, input=b"".join(map(encode, targets)), capture_output=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    found = [decode(line) for line in done.stdout.splitlines()]
    return {one.url: one for one in found if isinstance(one, Outcome)}


def target(url: str, number: int, prior: Prior | None = None) -> Target:
    address = "::1" if "[" in url else "127.0.0.1"
    return Target(url=url, lease=f"1-{number}", kind="page", address=address, typed=True, prior=prior)


def crawl(directory: Path) -> list[tuple[str, str, Served]]:
    """Archive the site twice, the second time with what is known of the first; gives times, URLs and what they must show."""
    with site() as starts:
        expected = {start + path: served for start in starts for path, served in SITE.items()}
        outcomes = fetch(directory, [target(url, n) for n, url in enumerate(expected)])
        time.sleep(1.1)  # an index has whole seconds: the second captures must be later
        etag = outcomes[f"{starts[0]}/etag"]
        assert etag.warc is not None
        record = warcread.read(directory / "warc", etag.warc)
        prior = Prior(
            etag=etag.etag,
            digest=etag.digest,
            warc_id=record.headers["warc-record-id"].strip("<>"),
            warc_date=record.headers["warc-date"],
            warc_url=record.url,
        )
        again = fetch(directory, [target(etag.url, 1, prior), target(f"{starts[0]}/plain", 2)])
    kinds = {warcread.read(directory / "warc", one.warc).headers.get("warc-profile") for one in again.values() if one.warc}
    assert kinds == {warcrecords.NOT_MODIFIED, warcrecords.IDENTICAL_PAYLOAD}
    # pywb shows a redirect or a 304 as that, without a body; what it confirms lies under the date that it refers to.
    digits = "".join(sign for sign in record.headers["warc-date"] if sign.isdecimal())
    shown = [(digits, etag.url, expected[etag.url])]
    expected[etag.url] = Served(b"", b"", b"", 304)
    return shown + [("", url, served) for url, served in expected.items()]


@contextmanager
def wayback(program: Path, folder: Path) -> Iterator[int]:
    """Start pywb on a folder with its config; gives its port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    words = (folder / "wayback.log").open("w")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [str(program), "-b", "127.0.0.1", "-p", str(port), "-d", str(folder)]
    process = subprocess.Popen(command, stdout=words, stderr=words, env=environment)
    try:
        for _ in range(200):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert process.poll() is None, (folder / "wayback.log").read_text()
            time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.wait(10)
        words.close()


def programs() -> Path:
    """Give the folder with pywb's programs; skips where pywb is not installed."""
    named = os.environ.get("CRAWLTOOL_PYWB")
    found = Path(named) if named else ROOT / ".venv-pywb" / "bin"
    beside = shutil.which("wayback")
    if not (found / "wayback").exists() and beside:
        found = Path(beside).parent
    if not (found / "wayback").exists():
        pytest.skip("no pywb: make .venv-pywb/.done installs it")
    return found


def test_pywb_shows_every_answer_as_it_was(tmp_path: Path) -> None:
    pywb = programs()
    (tmp_path / "crawl").mkdir()
    expected = crawl(tmp_path / "crawl")
    warc = tmp_path / "crawl" / "warc"
    index = tmp_path / "index.cdxj"
    with index.open("wb") as out:
        subprocess.run([sys.executable, "-m", "crawltool", "warc", "index", warc], stdout=out, check=True, timeout=30)
    assert index.read_bytes() == cdxj_of(sorted(warc.glob("*.warc.gz")), tmp_path)
    (tmp_path / "config.yaml").write_text(f"collections:\n  all:\n    index_paths: {index}\n    archive_paths: {warc}/\n")
    wrong = []
    with wayback(pywb / "wayback", tmp_path) as port:
        for when, url, served in expected:
            # One connection each: a truncated capture announces more bytes than come.
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.putrequest("GET", f"/all/{when}id_/{url}", skip_accept_encoding=True)
            connection.putheader("Accept-Encoding", "gzip, br, identity")
            connection.putheader("Connection", "close")
            connection.endheaders()
            try:
                reply = connection.getresponse()
                body = reply.read()
            except http.client.IncompleteRead as error:
                body = error.partial
            connection.close()
            if (reply.status, body) != (served.status, served.shown):
                wrong.append((url, reply.status, reply.getheaders(), body[:200]))
    assert not wrong, "\n".join(map(str, wrong))
