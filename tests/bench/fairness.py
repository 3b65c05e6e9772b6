"""Does one host with a million URLs take anything from a thousand small ones?

    python -m tests.bench.fairness [--huge 1000000]

The simulation of tests/sim/test_shares on the real store. Prints both rates (pages a second of simulated time) and the worst
ratio of a small host's finish time beside the huge host to that without it.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from crawltool.stores.crawldb import CrawlDb
from tests.sim.test_shares import ends_beside


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--huge", default=1_000_000, type=int, help="URLs of the one host")
    huge = parser.parse_args().huge
    with tempfile.TemporaryDirectory() as folder:
        without, alone = ends_beside(0, CrawlDb(Path(folder) / "alone"))
        beside, crowded = ends_beside(huge, CrawlDb(Path(folder) / "crowded"))
    worst = max(beside[host] / without[host] for host in without)
    print(f"{alone:.0f} pages/s alone, {crowded:.0f} beside {huge:,} URLs ({crowded / alone:.3f}); latest finish {worst:.3f} x")


if __name__ == "__main__":
    main()
