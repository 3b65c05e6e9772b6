"""Where does crawltool begin and end?

run() is the only place that exits. Errors become one line on stderr and the code of their class in errors.py; a signal
that stopped us is died of, so that shells and supervisors see the truth. Importing this file stays cheap: each command's
module is imported when it runs.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import NoReturn

import click

from crawltool.cli.command import Group
from crawltool.cli.voice import Voice
from crawltool.errors import Bug, CannotHold, CrawltoolError, DiskTrouble, Misuse
from crawltool.stages.drain import EndedBySignal, die_by

# Each command and its one line; tests hold these lines and the commands' own help together.
COMMANDS: dict[str, str] = {
    "crawl": "Crawl sites: start all stages, show progress, sum up.",
    "init": "Write the policy of a crawl into its directory.",
    "seed": "Turn URLs, host names and sitemaps into candidates.",
    "frontier": "Decide which URL is fetched next, and when.",
    "fetch": "Fetch targets into WARC files.",
    "parse": "Read fetched pages: links, title, text, language.",
    "dedup": "Find pages that repeat others, and keep the pages.",
    "control": "Steer a crawl, while it runs or before it does.",
    "why": "Explain what happened to a URL.",
    "dump": "Print every URL of a crawl, with its state and the reason.",
    "log": "Print the crawl log.",
    "warc": "Check archives, and print what they hold.",
}


def _print_version(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        from importlib.metadata import version

        click.echo(f"crawltool {version('crawltool')}")
        ctx.exit()


@click.group(
    "crawltool",
    cls=Group,
    package="crawltool.cli",
    summaries=COMMANDS,
    help="A web crawler as small programs that read and write lines.\n\nStart with: crawltool crawl URL --contact YOUR@MAIL",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
)
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_print_version, help="Print the version.")
@click.option("--debug", is_flag=True, envvar="CRAWLTOOL_DEBUG", help="Print a traceback with every error.")
@click.pass_context
def cli(ctx: click.Context, debug: bool) -> None:
    """Stand at the root of the tree of commands."""
    ctx.ensure_object(Voice).debug = debug


def run() -> NoReturn:
    """Run the command line and exit. The only sys.exit of the project."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # see __main__.py
        signal.signal(signal.SIGINT, signal.default_int_handler)
    voice = Voice()
    voice.is_part = os.environ.get("CRAWLTOOL_WITHIN") == "crawl"
    sys.exit(main(sys.argv[1:], voice))


def main(arguments: Sequence[str], voice: Voice) -> int:
    """Run a command; give its exit code, or die of the signal that stopped it."""
    try:
        return _invoke(arguments, voice)
    except BaseException as raised:  # the one catcher; nobody below catches what it does not know
        error = worst(raised)
        if isinstance(error, EndedBySignal):
            return die_of(error.signum)
        if isinstance(error, BrokenPipeError):
            return die_of(signal.SIGPIPE)
        if isinstance(error, (KeyboardInterrupt, click.Abort)):
            return die_of(signal.SIGINT)
        known = as_known(error)
        report(known, raised, voice)
        return known.exit_code


def _invoke(arguments: Sequence[str], voice: Voice) -> int:
    """Run click without its own endings: it would exit 1 for a reader that is gone and 2 for misuse."""
    if "_CRAWLTOOL_COMPLETE" in os.environ:
        cli.main(args=list(arguments), prog_name="crawltool")
    try:
        with cli.make_context("crawltool", list(arguments), obj=voice) as ctx:
            code = cli.invoke(ctx)
    except click.exceptions.Exit as ending:
        code = ending.exit_code
    except click.exceptions.NoArgsIsHelpError as wish:
        wish.show()
        code = Misuse.exit_code
    sys.stdout.flush()
    return code if isinstance(code, int) else 0


def leaves(error: BaseException) -> Iterator[BaseException]:
    """Give the errors inside exception groups (trio makes groups of whatever its tasks raise)."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves(inner)
    else:
        yield error


def worst(error: BaseException) -> BaseException:
    """Choose the error that speaks for a group: a bug before what we know, the disk before the rest, signals last.

    Sibling tasks that were cancelled or saw a closed pipe because of the first error must not hide it.
    """

    def rank(leaf: BaseException) -> int:
        if isinstance(leaf, (EndedBySignal, BrokenPipeError, KeyboardInterrupt)):
            return 3
        if isinstance(leaf, CrawltoolError):
            return 1 if isinstance(leaf, DiskTrouble) else 2
        return 0

    return min(leaves(error), key=rank)


def as_known(error: BaseException) -> CrawltoolError:
    """Give the error of errors.py that an exception stands for."""
    if isinstance(error, CrawltoolError):
        return error
    if isinstance(error, click.ClickException):
        ctx = getattr(error, "ctx", None)
        return Misuse(error.format_message(), remedy=f"see {ctx.command_path} --help" if ctx else None)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS):
        return DiskTrouble(f"{error.filename or 'output'}: {error.strerror}")
    if isinstance(error, PermissionError):
        return CannotHold(f"{error.filename or 'output'}: {error.strerror}", remedy="make it accessible, or use another")
    return Bug(f"{type(error).__name__}: {error}")


def report(known: CrawltoolError, raised: BaseException, voice: Voice) -> None:
    """Say one line: what ended the command, and what to do."""
    if voice.debug or isinstance(known, Bug):
        import traceback  # start-up time

        sys.stderr.write("".join(traceback.format_exception(raised)))
    message = str(known).strip().rstrip(".")
    voice.say(f"{message} ({known.remedy})" if known.remedy else message, "error", exit_code=known.exit_code)


def die_of(number: int) -> int:
    """Die of a signal. The code is for the case that it does not kill."""
    # What is still buffered for a reader that is gone must not raise again at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    die_by(number)
    return 128 + number
