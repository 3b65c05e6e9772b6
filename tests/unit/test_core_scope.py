"""core/scope: names by label, ports by name, patterns in linear time."""

from __future__ import annotations

import pytest

from crawltool.core import urls
from crawltool.core.scope import Scope, ScopeRules, matcher, registrable_domain
from crawltool.errors import BadPolicy
from tests.paths import shared_data


def url(text: str) -> urls.Url:
    found = urls.parse(text)
    assert found is not None, text
    return found


def scope(kind: str, *seeds: str, **patterns: tuple[str, ...]) -> Scope:
    made = Scope(ScopeRules(kind=kind, **patterns))  # type: ignore[arg-type]
    for seed in seeds:
        made.add(url(seed))
    return made


@pytest.mark.parametrize(
    "text",
    [
        "http://site.test/",
        "https://www.site.test/",
        "http://SITE.TEST/",
        "http://site.test./",
        "http://site.test:80/",
        "http://xn--bcher-kva.site.test/",
    ],
)
def test_a_domain_holds_its_subdomains(text: str) -> None:
    assert scope("domain", "http://site.test/").judge(url(text)) is None


@pytest.mark.parametrize(
    "text",
    [
        "http://evilsite.test/",
        "http://site.test.evil.test/",
        "http://user@evil.test/?site.test",
        "http://[::1]/",
        "http://site.test:8081/",
        "http://test/",
    ],
)
def test_a_domain_does_not_hold_names_that_only_look_alike(text: str) -> None:
    assert scope("domain", "http://site.test/").judge(url(text)) == "out_of_scope"


def test_a_public_suffix_or_an_address_stands_for_itself_only() -> None:
    github = scope("domain", "http://github.io/")
    assert github.entries() == ["=github.io"]
    assert github.judge(url("http://github.io/x")) is None
    assert github.judge(url("http://some.github.io/")) == "out_of_scope"
    address = scope("domain", "http://192.0.2.1/")
    assert address.judge(url("http://192.0.2.1/x")) is None
    assert address.judge(url("http://192.0.2.10/")) == "out_of_scope"
    assert scope("domain", "http://[::1]:8080/").entries() == ["=[::1]:8080"]


def test_a_host_is_that_name_on_both_usual_ports() -> None:
    host = scope("host", "http://site.test/deep/page?x")
    assert host.entries() == ["site.test"]
    assert host.judge(url("https://site.test/")) is None
    assert host.judge(url("http://www.site.test/")) == "out_of_scope"
    assert host.judge(url("http://site.test:8081/")) == "out_of_scope"
    assert scope("host", "http://127.0.0.1:8081/").judge(url("http://127.0.0.1:8081/a")) is None


def test_a_prefix_ends_at_the_last_slash_of_the_path() -> None:
    prefix = scope("prefix", "http://site.test/docs/v1/index.html?a=/b/")
    assert prefix.entries() == ["site.test/docs/v1/"]
    assert prefix.judge(url("https://site.test/docs/v1/x/y")) is None
    assert prefix.judge(url("http://site.test/docs/v10/")) == "out_of_scope"
    assert prefix.add(url("http://site.test/docs/v1/deeper/")) is None
    assert prefix.add(url("http://site.test/blog/")) == "site.test/blog/"
    assert prefix.judge(url("http://site.test/blog/1")) is None


def test_all_holds_everything_and_adds_nothing() -> None:
    everything = scope("all", "http://site.test/")
    assert everything.entries() == []
    assert everything.judge(url("http://elsewhere.test/")) is None


@pytest.mark.parametrize("kind", ["host", "prefix", "domain"])
def test_restored_entries_mean_the_same(kind: str) -> None:
    before = scope(kind, "http://site.test/a/", "http://localhost:8080/b/", "http://[::1]:81/", "http://x.co.uk/")
    after = Scope(ScopeRules(kind=kind))  # type: ignore[arg-type]
    after.restore(before.entries())
    assert after.entries() == before.entries()
    for text in [
        "http://site.test/a/b",
        "http://localhost:8080/b/",
        "http://[::1]:81/",
        "https://x.co.uk/",
        "http://y.test/",
        "http://localhost/",
    ]:
        assert after.judge(url(text)) == before.judge(url(text))


def test_patterns_narrow_and_name_which_one_did() -> None:
    narrowed = scope(
        "host", "http://site.test/", include=("/docs/*", "http://site.test/?only"), exclude=("*.pdf", r"re:[?&]session=")
    )
    assert narrowed.judge(url("http://site.test/docs/a")) is None
    assert narrowed.judge(url("http://site.test/?only")) is None
    assert narrowed.judge(url("http://site.test/blog/")) == "not_included"
    assert narrowed.judge(url("http://site.test/docs/a.pdf")) == "excluded"
    assert narrowed.judge(url("http://site.test/docs/?a=1&session=2")) == "excluded"
    assert narrowed.judge(url("http://other.test/docs/a.pdf")) == "out_of_scope"


def test_a_glob_with_many_stars_is_fast() -> None:
    assert not matcher("*a" * 500 + "*b")(url("http://site.test/" + "a" * 2000))


@pytest.mark.parametrize("pattern", ["re:(", "re:a{99999999999}", "*" * 5000])
def test_a_broken_pattern_is_bad_policy(pattern: str) -> None:
    with pytest.raises(BadPolicy):
        matcher(pattern)


def test_registrable_domains_follow_the_public_suffix_list() -> None:
    wrong = []
    for line in shared_data("url/psl/tests.txt").read_text("utf-8").splitlines():
        if not line or line.startswith("//"):
            continue
        host, right = line.split()
        parsed = urls.parse(f"http://{host}/")
        if parsed is None or host.startswith("."):
            continue
        expected = parsed.host if right == "null" else url(f"http://{right}/").host
        if registrable_domain(parsed.host) != expected:
            wrong.append((host, right, registrable_domain(parsed.host)))
    assert wrong == []
