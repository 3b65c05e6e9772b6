"""Which manual does the command line have? Its own words, as man pages.

`python -m crawltool.cli.manpages man` writes them, `--check man` compares and lints. Sources: the click tree with each
command's description, examples and notes; errors.py (EXIT STATUS), stages/drain (SIGNALS), limits.py (LIMITS), records.py
(section 5), stores/spool (section 5), core/frontier/hosts (the state table). Run by make man and make check-man.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from crawltool.cli import formats, roff
from crawltool.cli.command import Command
from crawltool.cli.main import COMMANDS, cli
from crawltool.cli.options import Option
from crawltool.cli.profiles import PROFILES
from crawltool.cli.settings import BY_NAME, GROUPS
from crawltool.core.frontier import hosts
from crawltool.errors import ENDINGS
from crawltool.stages.drain import SIGNALS

FILES: tuple[tuple[str, str], ...] = (
    ("CRAWL/crawl.toml", "The policy: identity, scope, politeness, limits. Made by crawltool-init(1)."),
    ("CRAWL/inbox/", "The operator's spool (crawltool-spool(5)): candidates, and lines of crawltool-control(1)."),
    ("CRAWL/inbox.d/NAME/", "Spools of other sources of candidates, each with a quota and a trust (crawltool-frontier(1))."),
    ("CRAWL/frontier.db/", "What the frontier knows: URLs, hosts, leases, the queue."),
    ("CRAWL/warc/", "The archive: WARC 1.1, one gzip member a record. NAME.open is being written."),
    ("CRAWL/pages/", "A row for each distinct page, with its text, as zstd-compressed JSON lines."),
    ("CRAWL/outcomes/", "The crawl log, as zstd-compressed JSON lines. Printed by crawltool-log(1)."),
    ("CRAWL/dedup.db/", "Digests and signatures of pages."),
    ("CRAWL/status.json", "How the crawl stands, written each second."),
    (
        "CRAWL/stats.jsonl",
        "The same every ten seconds, kept; the first line of each run is the policy in force, and each control line is here.",
    ),
    ("~/.config/crawltool/bans.txt", "Hosts and URLs that no crawl of a user asks: opt-outs. See --ban-file."),
    ("~/.config/crawltool/config.toml", "What holds for all crawls of a user; the keys are those of crawl.toml."),
)
STATE_MEANINGS = {
    hosts.State.NEW: "its address is not known, or too old",
    hosts.State.RESOLVING: "its address is being looked up",
    hosts.State.OPEN: "may be asked when its clocks say so",
    hosts.State.CLOSED: "is not asked again in this run",
}


def pages() -> dict[str, str]:
    """Give every page by its file name."""
    found = {"crawltool.1": overview()}
    root = click.Context(cli, info_name="crawltool")
    for name, summary in COMMANDS.items():
        command = cli.get_command(root, name)
        assert command is not None, name
        found[f"crawltool-{name}.1"] = command_page(name, summary, command, click.Context(command, info_name=name, parent=root))
    return found | formats.pages()


def overview() -> str:
    """Give crawltool(1)."""
    commands = [line for name, text in COMMANDS.items() for line in roff.term(f"{roff.bold(f'crawltool-{name}')}(1)", text)]
    variables = roff.prose(
        "Every option has a variable: CRAWLTOOL_ and its name in capitals with _ for -, so --max-pages is CRAWLTOOL_MAX_PAGES. "
        "CRAWLTOOL_DEBUG=1 prints a traceback with every error."
    )
    order = roff.prose(
        "Flags win over the environment, the environment over CRAWL/crawl.toml, that over ~/.config/crawltool/config.toml, "
        "and that over the defaults, which --profile may replace. One grammar of units holds everywhere: a duration is 1.5, "
        "500ms, 90s, 15m, 4h or 2d; a size is 2048, 10MiB or 1GB; a count is 500, 20k or 1M; none lifts a limit.\n\n"
        "No page is lost, no host is asked too often; after a crash a page may be fetched twice, at most as many as were out."
    )
    files = [line for name, text in FILES for line in roff.term(roff.italic(name), text)]
    body = [
        *roff.section("Synopsis", [f"{roff.bold('crawltool')} {roff.italic('COMMAND')} [{roff.italic('OPTION')}]..."]),
        *roff.section("Description", [*roff.prose(cli.help or ""), ".PP", *order]),
        *roff.section("Commands", commands),
        *roff.section("Environment", variables),
        *roff.section("Files", files),
        *roff.section("Exit status", exit_status()),
        *roff.section("Signals", signals()),
        *roff.section("Limits", formats.limit_list()),
        *roff.section("See also", roff.prose("crawltool-crawl(1), crawltool-records(5), crawltool-spool(5)")),
    ]
    return roff.page("crawltool", 1, "crawl the web with small programs that read and write lines", body)


def command_page(name: str, summary: str, command: click.Command, ctx: click.Context) -> str:
    """Give the page of one command, its subcommands included."""
    # The first line of the help is the summary, which NAME has already, unless it says more.
    text = (command.help or "").removeprefix(f"{summary}\n") or summary
    body = roff.section("Synopsis", synopses(ctx, command))
    body += roff.section("Description", roff.prose(text))
    for path, inner in tree(ctx, command):
        if inner is not command:
            body += roff.section(path.replace(" ", " "), roff.prose(inner.help or ""))
        body += roff.section("Options" if inner is command else f"Options of {path}", options(inner))
    examples = "\n".join(inner.examples for _, inner in tree(ctx, command) if isinstance(inner, Command) and inner.examples)
    notes = "\n\n".join(inner.notes for _, inner in tree(ctx, command) if isinstance(inner, Command) and inner.notes)
    body += roff.section("Examples", roff.verbatim(examples) if examples else [])
    body += roff.section("Notes", roff.prose(notes) if notes else [])
    body += roff.section("Profiles", profiles() if name == "init" else [])
    body += roff.section("Hosts", host_table() if name == "frontier" else [])
    body += roff.section("Exit status", roff.prose("0, or one of the codes in crawltool(1)."))
    body += roff.section("See also", roff.prose("crawltool(1), crawltool-records(5)"))
    return roff.page(f"crawltool-{name}", 1, summary[0].lower() + summary[1:].rstrip("."), body)


def tree(ctx: click.Context, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """Yield a command and its subcommands with what is typed."""
    yield ctx.command_path, command
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            inner = command.get_command(ctx, name)
            assert inner is not None, name
            yield from tree(click.Context(inner, info_name=name, parent=ctx), inner)


def synopses(ctx: click.Context, command: click.Command) -> list[str]:
    """Give a line for the command and for each subcommand."""
    lines: list[str] = []
    for path, inner in tree(ctx, command):
        if isinstance(inner, click.Group):
            continue
        words = [word for word in inner.collect_usage_pieces(click.Context(inner)) if word != "[OPTIONS]"]
        lines += [".br"] if lines else []
        lines.append(" ".join([roff.bold(path), f"[{roff.italic('OPTION')}]...", *(roff.italic(word) for word in words)]))
    return lines


def options(command: click.Command) -> list[str]:
    """Give the options of a command under the names of their groups."""
    own = [parameter for parameter in command.params if isinstance(parameter, click.Option) and not isinstance(parameter, Option)]
    lines = [line for option in own for line in option_term(option)]
    for group, title in GROUPS.items():
        grouped = [option for option in command.params if isinstance(option, Option) and option.setting.group == group]
        if grouped:
            lines += roff.subsection(title, [line for option in grouped for line in option_term(option)])
    return lines


def option_term(option: click.Option) -> list[str]:
    """Give an option: its names, what it does, its default, its variable."""
    names = ", ".join(roff.bold(name) for name in (*option.opts, *option.secondary_opts))
    value = "" if option.is_flag else " " + roff.italic(option.make_metavar(click.Context(click.Command("x"))))
    facts = [option.help or ""]
    default = BY_NAME[option.name].default if option.name in BY_NAME and isinstance(option, Option) else None
    if default and not option.is_flag and not option.multiple:
        facts.append(f"Default: {default}.")
    if option.multiple:
        facts.append("May be given several times.")
    variable = f"Variable: {option.envvar}." if option.envvar else ""
    return roff.term(names + value, " ".join([*facts, variable]).strip())


def exit_status() -> list[str]:
    """Give the codes from errors.py."""
    lines = roff.term(roff.bold("0"), "end of input, or the crawl is complete; bad URLs and bad lines were counted")
    for ending in sorted(ENDINGS, key=lambda ending: ending.exit_code):
        remedy = f". Remedy: {ending.remedy}" if ending.remedy else ""
        lines += roff.term(roff.bold(str(ending.exit_code)), f"{(ending.__doc__ or '').strip()}{remedy}.")
    return lines + roff.term(roff.bold("128+n"), "what a shell shows when signal n was died of: 130, 141, 143")


def signals() -> list[str]:
    """Give the signals from stages/drain."""
    return [line for name, text in SIGNALS for line in roff.term(roff.bold(name), text)]


def profiles() -> list[str]:
    """Give what each profile changes."""
    lines: list[str] = []
    for name, values in PROFILES.items():
        lines += roff.term(roff.bold(name), ", ".join(f"{BY_NAME[key].long} {value}" for key, value in values.items()))
    return lines


def host_table() -> list[str]:
    """Give the life of a host from core/frontier/hosts."""
    lines = roff.prose("A host is in one of these states; what moves it is in this table and nowhere else.")
    for state, meaning in STATE_MEANINGS.items():
        moves = [f"{fact.value}: {after.value}" for (before, fact), after in hosts.TRANSITIONS.items() if before is state]
        lines += roff.term(roff.bold(state.value), f"{meaning}. " + "; ".join(moves) + ".")
    return lines


def write(folder: Path) -> None:
    """Write all pages; a page that has no source any more goes."""
    folder.mkdir(exist_ok=True)
    found = pages()
    for old in folder.glob("crawltool*.[0-9]"):
        if old.name not in found:
            old.unlink()
    for name, text in found.items():
        (folder / name).write_text(text, encoding="utf-8")


def check(folder: Path) -> list[str]:
    """Tell what is wrong with the pages in a folder: other than the source says, or not clean for groff."""
    found = pages()
    wrong = [f"{folder / name}: not as the source says" for name, text in found.items() if _text(folder / name) != text]
    wrong += [f"{old}: no source" for old in folder.glob("crawltool*.[0-9]") if old.name not in found]
    groff = shutil.which("groff")
    for name, text in found.items() if groff else ():
        said = subprocess.run(
            [groff or "", "-man", "-Tutf8", "-Kutf8", "-ww", "-z"], input=text, capture_output=True, text=True, check=False
        )
        wrong += [f"{folder / name}: {line}" for line in said.stderr.splitlines() if not re.search("can't find|preconv", line)]
    return wrong


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def main(arguments: list[str]) -> int:
    """Write or check."""
    if arguments[:1] != ["--check"]:
        write(Path(arguments[0]))
        return 0
    wrong = check(Path(arguments[1]))
    if wrong:
        sys.stderr.write("\n".join([*wrong, "make man writes the pages anew"]) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
