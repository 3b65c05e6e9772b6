"""Lets `python -m crawltool` do what the installed script does; crawl starts its stages this way."""

from crawltool.cli.main import run

run()
