"""Run many seeds of the simulation: python -m tests.sim --seeds 1000 [--first 0] | --seed 7."""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor

from tests.sim.crawl import Plan, SimCrawl


def one(seed: int) -> tuple[int, int, int, str]:
    """Run a seed; the result is the seed, its steps and crashes, and what went wrong."""
    crawl = SimCrawl(seed, Plan.of(seed))
    try:
        crawl.run().check_end()
    except Exception:  # a tester wants to hear of everything, with its seed
        return seed, crawl.steps, crawl.crashes, traceback.format_exc()
    return seed, crawl.steps, crawl.crashes, ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="make sim", description="simulate whole crawls")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    seeds = [given.seed] if given.seed is not None else list(range(given.first, given.first + given.seeds))
    began, steps, crashes, bad = time.monotonic(), 0, 0, 0
    with ProcessPoolExecutor(min(os.cpu_count() or 1, len(seeds))) as pool:
        for seed, some_steps, some_crashes, trouble in pool.map(one, seeds, chunksize=4 if len(seeds) > 8 else 1):
            steps, crashes = steps + some_steps, crashes + some_crashes
            if trouble:
                bad += 1
                print(f"seed {seed}: replay with make sim SEED={seed}\n{trouble}", flush=True)
    print(f"{len(seeds)} seeds, {steps} turns, {crashes} crashes, {bad} failed, {time.monotonic() - began:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
