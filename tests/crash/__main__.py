"""Kill real crawls at many random points: what `make crash` runs.

    python -m tests.crash [--kills 100] [--seed N] [--jobs 4] [--minutes 40] [--crawl N]

Prints the seed, a line for each crawl, and a summary. Ends with 1 when a law was broken, and leaves that crawl's directory; the
same seed draws the same crawls and moments, --crawl N begins with crawl N of them.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
from pathlib import Path

from tests.crash.campaign import Campaign


def main() -> int:
    """Read the options, run, sum up."""
    ask = argparse.ArgumentParser(prog="make crash", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--kills", type=int, default=100)
    ask.add_argument("--seed", type=int, default=None)
    ask.add_argument("--jobs", type=int, default=2 * (os.cpu_count() or 1), help="crawls at a time (default: two a core)")
    ask.add_argument("--minutes", type=float, default=40.0, help="begin no crawl later than this")
    ask.add_argument("--crawl", type=int, default=0, help="begin with this crawl of the seed's")
    given = ask.parse_args()
    seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    print(f"seed {seed}: {given.kills} kills, {given.jobs} crawls at a time", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="crash-"))
    campaign = Campaign(folder, seed, given.kills, given.minutes, given.crawl)
    campaign.run(given.jobs)
    print(*campaign.tally.summary(), sep="\n")
    for failure in campaign.failures:
        print(f"seed {seed}, {failure}")
    if not campaign.failures:
        shutil.rmtree(folder)
    missing = given.kills - campaign.tally.kills.total()
    if missing > 0:
        print(f"{missing} kills are missing: {'a law was broken' if campaign.failures else 'the time was up'}")
    return 1 if campaign.failures or missing > 0 else 0


if __name__ == "__main__":
    sys.exit(main())
