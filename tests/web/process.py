"""Starts the test web as a process of its own and reads its log: what tests use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Ask:
    """One request, as the server logged it. `t` is its monotonic clock (that of the machine), `at` its wall clock."""

    at: float
    t: float
    peer: str
    server: str
    site: str
    host: str
    method: str
    target: str
    connection: int
    number: int
    opened: float
    agent: str
    sender: str
    if_none_match: str | None
    if_modified_since: str | None

    @property
    def url(self) -> str:
        """The URL that was asked for, by its Host header."""
        return f"http://{self.host}{self.target}"


class Web:
    """A running test web. `hosts` maps a name to a behaviour with its settings; None: the whole table."""

    def __init__(
        self,
        folder: Path | None = None,
        hosts: Mapping[str, str] | None = None,
        *,
        corner: str = "",
        port: int = 0,
        net: str = "",
    ) -> None:
        self._spare = tempfile.TemporaryDirectory() if folder is None else None
        folder = Path(self._spare.name) if folder is None and self._spare else folder
        assert folder is not None
        self.log_file = folder / "web.jsonl"
        self.command = [sys.executable, "-m", "tests.web", "--json", "--port", str(port), "--log", str(self.log_file)]
        self.command += [f"--corner={corner}"] if corner else []
        self.command += [f"--net={net}"] if net else []
        self.command += [f"--host={name}={words}" for name, words in (hosts or {}).items()]
        self._mark = 0

    def __enter__(self) -> Web:
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        # A session of its own: a signal to the test's group is none to the web. It ends when our end of its stdin closes.
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, env=environment, start_new_session=True
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the test web did not start: exit code {self.process.wait()}")
        said = json.loads(line)
        self.port: int = said["port"]
        self.origins: dict[str, str] = said["origins"]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()
        if self._spare is not None:
            self._spare.cleanup()

    def url(self, name: str, path: str = "/") -> str:
        """Give a URL on a host."""
        return self.origins[name] + path

    def address(self, name: str) -> str:
        """Give a host's loopback address."""
        return self.origins[name].split("/")[2].partition(":")[0]

    def log(self, site: str | None = None) -> list[Ask]:
        """Give every request since the last `forget`, oldest first; of one host, or of all."""
        if not self.log_file.exists():
            return []
        with self.log_file.open("rb") as file:
            file.seek(self._mark)
            asks = [Ask(**json.loads(line)) for line in file if line.endswith(b"\n")]
        return [ask for ask in asks if site is None or ask.site == site]

    def forget(self) -> None:
        """Let `log` begin here."""
        self._mark = self.log_file.stat().st_size if self.log_file.exists() else 0
