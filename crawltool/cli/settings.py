"""What are the options, their defaults, units, names in the environment and in crawl.toml?

The one table SETTINGS is the source of --help, the manual, crawl.toml and every default of DESIGN section 7. Read by
cli/options, cli/policy, cli/crawltoml and cli/manpages.
"""

from __future__ import annotations

import dataclasses

import click

from crawltool import limits
from crawltool.cli.units import Budget, Count, Duration, Factor, Kind, Points, Share, Size, Token

RELEASE = "0.1.0"  # what `added` says of the options that came first


@dataclasses.dataclass(frozen=True)
class Setting:
    """One option. `default` is as a person writes it; None means unset or derived, and `help` says from what."""

    name: str
    group: str
    type: Kind | type[str] | None
    default: str | tuple[str, ...] | None
    help: str
    short: str | None = None
    metavar: str | None = None
    multiple: bool = False
    is_flag: bool = False
    in_policy: bool = True  # may stand in crawl.toml
    added: str = RELEASE

    @property
    def long(self) -> str:
        """Give the flag: max_body -> --max-body."""
        return "--" + self.name.replace("_", "-")

    @property
    def table(self) -> str:
        """Give its table in crawl.toml; '' for the few keys that stand before all tables."""
        return self.group if self.group in POLICY_GROUPS else ""

    @property
    def envvar(self) -> str:
        """Give the environment variable."""
        return "CRAWLTOOL_" + self.name.upper()


GROUPS: dict[str, str] = {
    "directory": "Crawl directory",
    "identity": "Identity",
    "scope": "Scope",
    "order": "Order",
    "politeness": "Politeness",
    "fetching": "Fetching",
    "parsing": "Parsing",
    "limits": "Limits",
    "io": "Input and output",
    "common": "Messages",
}
# Tables of crawl.toml, in the order in which they are written.
POLICY_GROUPS = ("identity", "scope", "order", "politeness", "fetching", "parsing", "limits")

_S, _N, _B, _F = Duration(), Count(1), Size(1), Factor()
_SCOPES = click.Choice(["host", "prefix", "domain", "all"])
_PROFILES = click.Choice(["audit", "broad", "archive"])
_AUTHORITIES = "HOST:PORT:ADDR[:PORT]"

SETTINGS: tuple[Setting, ...] = (
    Setting(
        "dir",
        "directory",
        click.Path(file_okay=False),
        None,
        "The crawl directory. Everything of a crawl lies there; the same command on the same directory resumes.",
        short="-C",
        metavar="DIR",
        in_policy=False,
    ),
    Setting("profile", "directory", _PROFILES, None, "Other defaults for a purpose: audit, broad or archive."),
    Setting(
        "contact",
        "identity",
        str,
        None,
        "Who answers for this crawl: a mail address or URL, sent in User-Agent and From. Needed to fetch anything but loopback.",
        metavar="MAIL|URL",
    ),
    Setting("user_agent", "identity", str, None, "Product name sent in User-Agent (crawltool/VERSION).", metavar="PRODUCT"),
    Setting(
        "robots_token",
        "identity",
        Token(),
        "crawltool",
        "The name looked for in robots.txt: letters, - and _; it should be part of --user-agent.",
        metavar="TOKEN",
    ),
    Setting(
        "scope",
        "scope",
        _SCOPES,
        "host",
        "What belongs to the crawl: the host of a seed (and of its redirect), its path prefix, its registrable domain, or all.",
    ),
    Setting(
        "include", "scope", str, (), "Only URLs that match one of these globs (or re:REGEX).", metavar="PATTERN", multiple=True
    ),
    Setting(
        "exclude", "scope", str, (), "No URLs that match one of these globs (or re:REGEX).", metavar="PATTERN", multiple=True
    ),
    Setting(
        "scope_file",
        "scope",
        click.Path(exists=True, dir_okay=False),
        None,
        "Patterns from a file, one a line: a plain line includes, a line after '-' excludes, '#' comments.",
        metavar="FILE",
        in_policy=False,
    ),
    Setting(
        "ban_file",
        "scope",
        click.Path(exists=True, dir_okay=False, resolve_path=True),
        (),
        "Hosts, domains and URL patterns, one a line, that are never asked. ~/.config/crawltool/bans.txt is one if it exists.",
        metavar="FILE",
        multiple=True,
    ),
    Setting(
        "order",
        "order",
        click.Choice(["breadth", "opic", "inlinks"]),
        "breadth",
        "Which URLs go first: found first, most important by links (opic), or linked to by most pages.",
    ),
    Setting(
        "prefer",
        "order",
        Points(),
        (),
        "Add N points of priority to URLs that match; below zero they wait. 1 is high, 10 urgent, under -1 low.",
        metavar="PATTERN=N",
        multiple=True,
    ),
    Setting("delay", "politeness", _S, "1s", "Rest of a host, from the end of one exchange to the start of the next."),
    Setting("ip_delay", "politeness", Duration(optional=True), None, "The same for an address (default: a fifth of --delay)."),
    Setting("delay_factor", "politeness", _F, "10", "A host also rests this many times as long as its answer took."),
    Setting("adaptive_max", "politeness", _S, "10m", "The rest that --delay-factor asks for is never longer."),
    Setting("per_host", "politeness", Count(1, 1000), "1", "Exchanges with one host at a time."),
    Setting(
        "per_ip",
        "politeness",
        Count(1, 1000),
        None,
        "Exchanges with one address at a time (default: 2, or --per-host if larger).",
    ),
    Setting(
        "per_domain",
        "politeness",
        Count(1, 1000, optional=True),
        None,
        "Exchanges with all hosts of one registrable domain at a time, each followed by --delay (default: none).",
    ),
    Setting(
        "robots_ttl",
        "politeness",
        Duration(0.1, limits.ROBOTS_TTL_S_MAX),
        "4h",
        "How long a robots.txt is used before it is fetched again.",
    ),
    Setting(
        "backoff",
        "politeness",
        Duration(0.01, limits.BACKOFF_S_MAX),
        "60s",
        "Rest after a host's first 429 or 503 without Retry-After, and after its first timeout or failed connection; "
        "doubles with each more of its kind, up to a day.",
    ),
    Setting(
        "max_rest",
        "politeness",
        _S,
        "15m",
        "When only hosts remain that rest longer than this, or the disk stays full this long, stop.",
    ),
    Setting("retries", "politeness", Count(0, 100), "3", "Attempts for a URL after its first failure."),
    Setting(
        "concurrency",
        "fetching",
        Count(1, 50_000),
        "500",
        "Exchanges in flight at most, in one fetch; fewer while the machine is short of descriptors, ports or memory.",
    ),
    Setting("timeout_connect", "fetching", Duration(0.01), "10s", "Longest wait for a connection, TLS included."),
    Setting("timeout_first_byte", "fetching", Duration(0.01), "20s", "Longest wait for the first byte of the answer."),
    Setting("timeout_total", "fetching", Duration(0.01), "2m", "Longest exchange."),
    Setting(
        "max_body",
        "fetching",
        _B,
        "10MiB",
        "Longest page body; the rest is cut and flagged (sitemaps 50 MiB, robots.txt 500 KiB).",
    ),
    Setting(
        "types",
        "fetching",
        str,
        "html,xml,text,json,feed,pdf",
        "Content types wanted whole, comma separated, or all; of others the headers and 4 KiB are kept.",
        metavar="LIST",
    ),
    Setting(
        "body_memory",
        "fetching",
        Size(),
        f"{limits.BODY_MEMORY_BYTES // limits.MIB}MiB",
        "Memory that all bodies share until they are stored; what is beyond, or longer than 256 KiB, lies in temporary files.",
    ),
    Setting(
        "min_free",
        "fetching",
        Size(),
        None,
        "Space to leave free on the disk (default: 5 GB or 5 %, whichever is less). With less, fetching pauses until there is a "
        "fifth more, for --max-rest at most.",
    ),
    Setting(
        "grace", "fetching", _S, f"{limits.GRACE_S:g}s", "After the first signal, how long exchanges in flight may take to end."
    ),
    Setting(
        "lease",
        "fetching",
        Duration(0.1),
        f"{limits.LEASE_S // 60}m",
        "How long a target may be out before it is queued again; at least 3 x --timeout-total.",
    ),
    Setting(
        "room",
        "fetching",
        Count(1),
        None,
        "Targets out at most: waiting, in flight, or on the way back (default: 2 x --concurrency).",
    ),
    Setting(
        "allow_net",
        "fetching",
        str,
        (),
        "Addresses of this private net may be asked. A loopback address you typed needs none.",
        metavar="CIDR",
        multiple=True,
    ),
    Setting("resolve", "fetching", str, (), "Connect to ADDR for HOST:PORT; HOST may be *.", metavar=_AUTHORITIES, multiple=True),
    Setting(
        "from_warc",
        "fetching",
        click.Path(exists=True, resolve_path=True),
        (),
        "Answer from these archives, as if they were the network; nobody is asked. A folder means the files in it.",
        metavar="FILE",
        multiple=True,
    ),
    Setting("parse_bytes", "parsing", _B, "10MiB", "Bytes of a body that are parsed."),
    Setting(
        "text",
        "parsing",
        click.Choice(["main", "all", "none"]),
        "main",
        "Which text of a page is kept in pages/: the main text, all of it, or none.",
    ),
    Setting("max_depth", "limits", Count(0, optional=True), "16", "Links from a seed at most."),
    Setting("max_pages", "limits", Count(1, optional=True), None, "Pages of the whole directory at most."),
    Setting("max_bytes", "limits", Size(1, optional=True), None, "Bytes of the whole directory at most."),
    Setting(
        "max_time",
        "limits",
        Duration(0.1, optional=True),
        None,
        "Longest time of this run; ends with 75 when something is left.",
        in_policy=False,
    ),
    Setting("max_pages_host", "limits", Count(1, optional=True), "10000", "Pages of one host at most; none for hosts you typed."),
    Setting("max_pages_dir", "limits", Count(1, optional=True), None, "URLs of one directory at most."),
    Setting(
        "domain_budget",
        "limits",
        Budget(),
        None,
        "URLs of one registrable domain at most; auto: 1000, and 500 more for each other domain that links there.",
        metavar="COUNT|auto",
    ),
    Setting("max_segments", "limits", Count(1, optional=True), "64", "Directories in the path of a URL at most."),
    Setting("max_queued_host", "limits", Count(1), "1M", "URLs of one host that may wait."),
    Setting("max_url", "limits", Size(16, limits.URL_BYTES_MAX), "2048", "Longest URL that is queued."),
    Setting(
        "channel",
        "limits",
        str,
        (),
        "URLs that DIR/inbox.d/NAME may bring, and its trust: -1 below links, 0, or 1 above them (default: 100000,0).",
        metavar="NAME=QUOTA[,TRUST]",
        multiple=True,
    ),
    Setting(
        "shard",
        "limits",
        Share(),
        None,
        "Only the hosts of share I of N, by hash of the host name.",
        metavar="I/N",
        in_policy=False,
    ),
    Setting(
        "input",
        "io",
        str,
        "-",
        "Where records come from: - (stdin), a file, a directory or glob of *.jsonl[.zst|.gz], spool:DIR.",
        short="-i",
        metavar="WHERE",
        in_policy=False,
    ),
    Setting(
        "output", "io", str, "-", "Where records go: - (stdout), a file, spool:DIR.", short="-o", metavar="WHERE", in_policy=False
    ),
    Setting(
        "accept",
        "io",
        str,
        "candidate,outcome",
        "Record types that the frontier takes from its input, comma separated; others are counted. control never is.",
        metavar="TYPES",
        in_policy=False,
    ),
    Setting("route", "io", str, (), "Send records of one type elsewhere.", metavar="TYPE=WHERE", multiple=True, in_policy=False),
    Setting(
        "strict",
        "io",
        None,
        None,
        "End with 65 when an input line is not a record, instead of counting it.",
        is_flag=True,
        in_policy=False,
    ),
    Setting(
        "quiet", "common", None, None, "Keep only the one-line summary and errors.", short="-q", is_flag=True, in_policy=False
    ),
    Setting("log", "common", click.Choice(["text", "json"]), "text", "How messages on stderr are written.", in_policy=False),
)
BY_NAME: dict[str, Setting] = {setting.name: setting for setting in SETTINGS}
