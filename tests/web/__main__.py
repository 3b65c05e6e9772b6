"""python -m tests.web: serve the test web until interrupted."""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import signal
import sys
from collections import Counter

from tests.web import table
from tests.web.answers import BEHAVIOURS, Site, make
from tests.web.server import Host, Log, listen, serve


def arguments() -> argparse.Namespace:
    """Read the command line."""
    ask = argparse.ArgumentParser(prog="python -m tests.web", description=__doc__)
    ask.add_argument("--port", type=int, default=8088, help="the port of every host; 0: one that is free (default 8088)")
    ask.add_argument("--corner", choices=sorted(table.CORNERS), default="all", help="which rows of tests/web/table.py to serve")
    ask.add_argument(
        "--net", default="", metavar="A.B.C", help="the first three numbers of every address (default: the corner's own)"
    )
    ask.add_argument(
        "--host", action="append", default=[], metavar="NAME=BEHAVIOUR [KEY=VALUE]…", help="serve these hosts instead; may repeat"
    )
    ask.add_argument("--log", metavar="FILE", help="append every request as a JSON line")
    ask.add_argument("--json", action="store_true", help="say the port and the origins in one JSON line; end with stdin")
    ask.add_argument("--list", action="store_true", help="print the behaviours with their settings and end")
    return ask.parse_args()


def describe() -> None:
    """Print what each behaviour does."""
    for name, factory in sorted(BEHAVIOURS.items()):
        print(f"{name:16} {(factory.__doc__ or '').strip().splitlines()[0]}")


def main() -> None:
    """Bind, say so, serve."""
    choice = arguments()
    if choice.list:
        describe()
        return
    corner = table.CORNERS[choice.corner]
    rows = dict(row.split("=", 1) for row in choice.host) or corner.rows
    net = choice.net or corner.net
    addresses = {name: f"{net}.{number}" for number, name in enumerate(rows, 1)}
    open_hosts = {name: address for name, address in addresses.items() if rows[name] != table.REFUSED}
    sockets = listen(list(open_hosts.values()), choice.port)
    port = next(iter(sockets.values())).getsockname()[1]
    origins = {name: f"http://{address}:{port}" for name, address in addresses.items()}
    log, connections = Log(choice.log), Counter[str]()
    hosts = []
    for name, address in open_hosts.items():
        site = Site(name, address, port, origins)
        hosts.append((Host(site, make(site, rows[name]), log, connections), sockets[address]))
    print(
        json.dumps({"port": port, "origins": origins}) if choice.json else "\n".join(f"{u}/  {n}" for n, u in origins.items()),
        flush=True,
    )
    gc.freeze()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        asyncio.run(serve(hosts, end_with_stdin=choice.json))
    except KeyboardInterrupt:
        sys.exit(0)


main()
