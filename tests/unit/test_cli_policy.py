"""The order of policy, the words about what is wrong with it, and crawl.toml as a file that people edit."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawltool.cli import crawltoml, policy
from crawltool.cli.command import Command
from crawltool.cli.options import use
from crawltool.cli.profiles import PROFILES
from crawltool.cli.settings import BY_NAME, SETTINGS
from crawltool.cli.voice import Voice
from crawltool.errors import BadPolicy, NoInput

Run = Callable[..., dict[str, object]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without settings, a crawl directory, and nothing in the environment."""
    for setting in SETTINGS:
        monkeypatch.delenv(setting.envvar, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config" / "crawltool").mkdir(parents=True)
    (tmp_path / "c").mkdir()
    return tmp_path


@pytest.fixture
def run(home: Path) -> Run:
    """Run a stage with all policy options and give what it got."""

    def call(*arguments: str, owns_policy: bool = False) -> dict[str, object]:
        @click.command("stage", cls=Command, owns_policy=owns_policy)
        @use("directory", "identity", "scope", "politeness", "fetching", "parsing", "limits")
        @click.pass_context
        def stage(ctx: click.Context, /, **params: object) -> dict[str, object]:
            return params | {"_given": policy.given(ctx), "_in_force": policy.in_force(ctx)}

        with stage.make_context("stage", ["-C", str(home / "c"), *arguments], obj=Voice()) as ctx:
            got: dict[str, object] = stage.invoke(ctx)
        return got

    return call


def crawl_toml(home: Path, text: str) -> None:
    (home / "c" / "crawl.toml").write_text(text)


def user_toml(home: Path, text: str) -> None:
    (home / "config" / "crawltool" / "config.toml").write_text(text)


def test_flags_win_over_environment_over_crawl_over_user_over_profile(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = [run()["delay"], run("--profile", "audit")["delay"]]
    user_toml(home, "[politeness]\ndelay = '3s'\n")
    seen.append(run("--profile", "audit")["delay"])
    crawl_toml(home, "profile = 'audit'\n[politeness]\ndelay = 4\n")
    seen.append(run()["delay"])
    monkeypatch.setenv("CRAWLTOOL_DELAY", "5")
    seen.append(run()["delay"])
    seen.append(run("--delay", "6")["delay"])
    assert seen == [1, 0.2, 3, 4, 5, 6]


def test_the_defaults_are_those_of_the_design(run: Run) -> None:
    got = run()
    expected = {
        "delay": 1,
        "delay_factor": 10,
        "adaptive_max": 600,
        "per_host": 1,
        "per_ip": None,
        "per_domain": None,
        "robots_ttl": 14_400,
        "backoff": 60,
    }
    expected |= {"max_rest": 900, "retries": 3, "concurrency": 500, "timeout_connect": 10, "timeout_first_byte": 20}
    expected |= {"timeout_total": 120, "max_body": 10 * 2**20, "types": "html,xml,text,json,feed,pdf", "lease": 600, "grace": 8}
    expected |= {"parse_bytes": 10 * 2**20, "max_depth": 16, "max_pages_host": 10_000}
    expected |= {"max_queued_host": 1_000_000, "max_url": 2048}
    expected |= {
        "scope": "host",
        "max_pages": None,
        "max_bytes": None,
        "max_time": None,
        "contact": None,
        "robots_token": "crawltool",
    }
    assert {name: got[name] for name in expected} == expected


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_holds_together(run: Run, name: str) -> None:
    got = run("--profile", name)
    assert isinstance(got["lease"], float) and isinstance(got["timeout_total"], float)
    assert got["lease"] >= 3 * got["timeout_total"]


def test_the_pace_of_audit_is_only_for_hosts_that_were_typed(run: Run) -> None:
    assert run("--profile", "audit")["per_host"] == 4
    with pytest.raises(BadPolicy, match="audit"):
        run("--profile", "audit", "--scope", "all")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[politeness]\ndelay = 'soon'\n", ("politeness.delay", "soon")),
        ("[politeness]\ndely = 1\n", ("politeness.dely", "delay")),
        ("[scope]\ndelay = 1\n", ("scope.delay", "[politeness]")),
        ("delay = 1\n", ("delay", "[politeness]")),
        ("[limits]\nmax_time = 1\n", ("limits.max_time", "--max-time")),
        ("[scope]\ninclude = 'x'\n", ("scope.include", "[")),
        ("[scope]\nscope = ['x']\n", ("scope.scope", "scope =")),
        ("scope = 'all'\n", ("scope", "[scope]")),
        ("[politeness]\nper_host = 0\n", ("politeness.per_host", "between")),
        ("profile = 'quick'\n", ("profile", "audit")),
        ("not toml", ("crawl.toml", "line 1")),
    ],
)
def test_a_wrong_file_is_named_with_key_and_remedy(home: Path, run: Run, text: str, words: tuple[str, ...]) -> None:
    crawl_toml(home, text)
    with pytest.raises(BadPolicy) as caught:
        run()
    said = f"{caught.value} ({caught.value.remedy})"
    assert "crawl.toml" in said and all(word in said for word in words), said


def test_a_stage_may_not_take_another_identity_than_the_crawl(home: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    crawl_toml(home, "[identity]\ncontact = 'me@x.org'\n")
    assert run()["contact"] == "me@x.org"
    assert run("--contact", "me@x.org")["contact"] == "me@x.org"
    with pytest.raises(BadPolicy, match=r"other@x\.org contradicts"):
        run("--contact", "other@x.org")
    with pytest.raises(BadPolicy, match="robots-token"):
        run("--robots-token", "other")
    assert run("--contact", "other@x.org", owns_policy=True)["contact"] == "other@x.org"
    monkeypatch.setenv("CRAWLTOOL_CONTACT", "third@x.org")
    with pytest.raises(BadPolicy, match="third"):
        run()


def test_a_directory_that_is_not_there_is_no_input(home: Path, run: Run) -> None:
    (home / "c").rmdir()
    with pytest.raises(NoInput, match="no such crawl directory"):
        run()


def test_a_scope_file_gives_patterns(home: Path, run: Run) -> None:
    (home / "patterns").write_text("# mine\nhttps://x.org/a/*\n- */private/*\n\n-re:\\.zip$\n")
    got = run("--scope-file", str(home / "patterns"), "--exclude", "*.exe")
    assert got["include"] == ("https://x.org/a/*",)
    assert got["exclude"] == ("*.exe", "*/private/*", "re:\\.zip$")
    stored = got["_given"]
    assert isinstance(stored, dict) and set(stored) == {"include", "exclude"}


def test_what_was_given_is_written_as_it_would_be_typed(run: Run) -> None:
    got = run(
        "--delay", "90", "--max-body", "20MiB", "--max-pages", "20k", "--max-depth", "none", "--include", "a*", "--retries", "0"
    )
    assert got["_given"] == {
        "delay": "90s", "max_body": "20MiB", "max_pages": "20000", "max_depth": "none", "include": ["a*"], "retries": "0",
    }  # fmt: skip
    in_force = got["_in_force"]
    assert isinstance(in_force, dict) and in_force["robots_ttl"] == "4h" and in_force["delay"] == "90s"


def test_the_identity_of_the_user_is_kept_in_the_crawl(home: Path, run: Run) -> None:
    user_toml(home, "[identity]\ncontact = 'me@x.org'\n[politeness]\ndelay = 2\n")
    assert run()["_given"] == {"contact": "me@x.org"}


def test_a_fresh_file_shows_every_option_and_reads_back(home: Path) -> None:
    assert policy.store(home / "c", {"contact": "me@x.org", "delay": "2s", "exclude": ["*\\d\x7f'\"é", "b"]}) == [
        "contact",
        "delay",
        "exclude",
    ]
    text = (home / "c" / "crawl.toml").read_text()
    assert policy.read(home / "c" / "crawl.toml") == {"contact": "me@x.org", "delay": "2s", "exclude": ["*\\d\x7f'\"é", "b"]}
    assert all(f"{setting.name} = " in text for setting in SETTINGS if setting.in_policy)


def test_a_change_leaves_what_a_person_wrote(home: Path) -> None:
    mine = "# mine\n[politeness]\ndelay = 1 # slow enough\nretries = 2\n\n[scope]\ninclude = [\n  'a', # one\n  'b',\n]\n# end\n"
    crawl_toml(home, mine)
    assert policy.store(home / "c", {"delay": "3s", "include": ["c"], "max_pages": "10", "retries": 2}) == [
        "delay",
        "include",
        "max_pages",
    ]
    text = (home / "c" / "crawl.toml").read_text()
    assert policy.read(home / "c" / "crawl.toml") == {"delay": "3s", "retries": 2, "include": ["c"], "max_pages": "10"}
    assert "# mine" in text and "# end" in text and "retries = 2" in text and "'a'" not in text


POLICY = [setting.name for setting in SETTINGS if setting.in_policy]
TYPED = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@given(st.lists(st.dictionaries(st.sampled_from(POLICY), TYPED | st.integers(0, 10**9), max_size=6), min_size=1, max_size=4))
def test_whatever_is_set_reads_back_after_any_changes(changes: list[dict[str, object]]) -> None:
    text, expected = crawltoml.fresh(changes[0]), dict(changes[0])
    for change in changes[1:]:
        text = crawltoml.changed(text, change)
        expected |= change
    document = tomllib.loads(text)
    for name, value in expected.items():
        table = BY_NAME[name].table
        assert (document[table] if table else document)[name] == value
