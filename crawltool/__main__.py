"""Lets `python -m crawltool` do what the installed script does; crawl starts its stages this way."""

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # Ctrl-C while modules are still being imported: die of it, without the traceback of a half-done import.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from crawltool.cli.main import run

run()
