"""Where the data sets of others lie; they are read there and never copied."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"


def shared_data(name: str) -> Path:
    """Give the path of a file under ../shared/data (or CRAWLTOOL_TEST_DATA); skip the test where it is absent."""
    path = Path(os.environ.get("CRAWLTOOL_TEST_DATA", str(SHARED / "data"))) / name
    if not path.exists():
        pytest.skip(f"no {path}: conformance data is not here")
    return path
