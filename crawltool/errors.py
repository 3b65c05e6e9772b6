"""Every way to end. A class's docstring is its message, `exit_code` its number, `remedy` one line of advice.

Codes are sysexits(3), and 1 as with diff and grep. crawltool(1) prints EXIT STATUS from this file; only cli/main.py exits.
Errors are told apart by whose fault they are: Misuse, BadRecord, NoInput and BadPolicy are the caller's, DiskTrouble and
CannotHold the machine's, NothingFetched and Unfinished the web's, Bug ours; ProblemsFound is an answer. The failure of one
URL is data, never an error.
"""

from __future__ import annotations


class CrawltoolError(Exception):
    """crawltool cannot go on"""

    exit_code = 70
    remedy = ""

    def __init__(self, what: str = "", *, remedy: str | None = None) -> None:
        super().__init__(what or self.__class__.__doc__)
        if remedy is not None:
            self.remedy = remedy


class ProblemsFound(CrawltoolError):
    """a check was made, and what was checked is not right"""

    exit_code = 1
    remedy = "crawltool warc repair FILE -o OUT writes what can be read"


class Misuse(CrawltoolError):
    """options or arguments that cannot be meant"""

    exit_code = 64
    remedy = "see --help"


class BadRecord(CrawltoolError):
    """an input line was not a record (only with --strict)"""

    exit_code = 65
    remedy = "leave out --strict to count such lines and go on"


class NoInput(CrawltoolError):
    """a named file, spool or crawl directory is missing"""

    exit_code = 66
    remedy = "check the name"


class NothingFetched(CrawltoolError):
    """no seed gave a page"""

    exit_code = 69
    remedy = "ask crawltool why URL"


class Bug(CrawltoolError):
    """an assertion or an unexpected exception: a mistake in crawltool"""

    exit_code = 70
    remedy = "please report it with the traceback; the crawl directory is safe"


class CannotHold(CrawltoolError):
    """the directory is held by another process, or not writable"""

    exit_code = 73
    remedy = "wait for the other process to end, or use another directory"


class DiskTrouble(CrawltoolError):
    """full disk or failed write; the state on disk is safe"""

    exit_code = 74
    remedy = "free space, then run the same command again"


class Unfinished(CrawltoolError):
    """a time limit, long rests, or input that ended early: something is left to do"""

    exit_code = 75
    remedy = "run the same command again"


class BadPolicy(CrawltoolError):
    """a policy file that cannot be read, or settings that contradict each other"""

    exit_code = 78
    remedy = "correct crawl.toml or the option"


ENDINGS: tuple[type[CrawltoolError], ...] = (
    ProblemsFound,
    Misuse,
    BadRecord,
    NoInput,
    NothingFetched,
    Bug,
    CannotHold,
    DiskTrouble,
    Unfinished,
    BadPolicy,
)
