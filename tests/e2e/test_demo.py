"""`make demo` ends soon and tells what it found and where."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from tests.e2e.crawls import environment
from tests.paths import ROOT


def test_the_demo_crawls_the_miniature_web_and_says_what_it_found(tmp_path: Path) -> None:
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "demo.py")], cwd=tmp_path, env=environment(tmp_path) | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    assert time.monotonic() - began < 45
    for word in ("shop", "library", "windows-1251", "shift_jis", "Redirects:", "robots", ".warc.gz", "crawltool why"):
        assert word in done.stdout.lower() or word in done.stdout, f"{word} is missing in:\n{done.stdout}"
    assert (tmp_path / "demo.crawl" / "pages").is_dir()
