"""RFC 9309, the Robots Exclusion Protocol: one test for each sentence that concerns a crawler, in the order of the text.

Sentences on the file are asked of core/robots, those on its availability and caching of the whole frontier core. Where the
text leaves a choice (MAY, SHOULD) the test says which one is taken. At the end the shared cases of others.
"""

from __future__ import annotations

import base64
import json
import re
import tarfile
from collections.abc import Iterator
from typing import Any

import pytest
import zstandard

from crawltool import limits, records
from crawltool.core import identity, robots, urls
from crawltool.core.frontier.bounds import Bounds
from crawltool.core.frontier.politeness import Policy
from crawltool.core.frontier.turn import Event, Frontier
from crawltool.core.robotstoken import is_token, token_of
from crawltool.core.scope import Scope, ScopeRules
from crawltool.core.verdicts import Facts, availability, classify
from tests.paths import shared_data
from tests.sim.store import DictStore

OURS = "crawltool"
HOUR_S, DAY_S = 3600.0, 86_400.0


def judge(body: str | bytes, target: str, token: str = OURS) -> bool:
    """Tell whether a file lets a crawler of that name ask for a path and query, written as in a link."""
    raw = body.encode() if isinstance(body, str) else body
    url = urls.parse(f"http://site.test{target}")
    assert url is not None
    return robots.Rules(robots.parse(raw, token)).judge(url.target)[0]


def refused(lines: str, target: str) -> bool:
    """Tell whether rules for everybody refuse a path."""
    return not judge(f"User-agent: *\n{lines}\n", target)


class Crawler:
    """The frontier core on a dict, with a clock, and a web that is played by the test."""

    def __init__(self, **policy: Any) -> None:
        self.policy = Policy(**({"delay_s": 0.0, "delay_factor": 0.0, "backoff_s": 1.0, "retries": 0} | policy))
        self.store = DictStore()
        self.now = 1_000_000.0
        self.events: list[Event] = []
        self.out: list[records.Target] = []
        self.run = 0
        self.start()

    def start(self) -> None:
        self.run += 1
        self.core = Frontier(self.store, self.policy, Bounds(), Scope(ScopeRules("host")))
        self.store.commit(self.core.start(self.run, self.now, void_leases=True))

    def seed(self, *hrefs: str) -> Crawler:
        self.events += [Event(records.Candidate(url=href, source="seed"), b"", channel="inbox") for href in hrefs]
        return self

    def turn(self) -> list[str]:
        """Let the frontier act; gives what it asks for now, as `kind url`."""
        events, self.events = self.events, []
        turn = self.core.turn(events, self.now, 100)
        self.store.commit(turn.save)
        made = [records.decode(line) for line in turn.targets]
        self.out += [target for target in made if isinstance(target, records.Target)]
        self.wakeup = turn.wakeup
        return [f"{target.kind} {target.url}" for target in made if isinstance(target, records.Target)]

    def answer(self, verdict: str, **facts: Any) -> list[str]:
        """Answer the oldest target that is out, and let the frontier act."""
        target = self.out.pop(0)
        facts = {"fetched_at": self.now, "elapsed_s": 0.0} | facts
        outcome = records.Outcome(url=target.url, lease=target.lease, kind=target.kind, verdict=verdict, **facts)  # type: ignore[arg-type]
        self.events.append(Event(outcome, records.encode(outcome)))
        return self.turn()

    def file(self, body: str, **facts: Any) -> list[str]:
        """Answer with a robots.txt."""
        found = robots.parse(body.encode(), OURS)
        for name, value in facts.items():
            setattr(found, name, value)
        return self.answer("ok", status=200, robots=found)

    def later(self, seconds: float) -> list[str]:
        self.now += seconds
        return self.turn()

    @property
    def refused(self) -> dict[str, int]:
        return self.core.book.ledger.refused


ONE, TWO = "http://192.0.2.1/", "http://192.0.2.2/"
ALL_CLOSED = "User-agent: *\nDisallow: /"


# --- 2.1 Protocol definition ---


def test_2_1_a_group_is_user_agent_lines_followed_by_rules_and_ends_at_the_next_user_agent_line() -> None:
    body = "User-agent: a\nUser-agent: crawltool\nDisallow: /x\nUser-agent: b\nDisallow: /y\n"
    assert not judge(body, "/x") and judge(body, "/y")
    assert not judge(body, "/x", "a") and not judge(body, "/y", "b") and judge(body, "/x", "b")


def test_2_1_a_group_ends_at_the_end_of_the_file_also_without_a_newline() -> None:
    assert not judge("User-agent: *\nDisallow: /x", "/x")


def test_2_1_the_last_group_may_have_no_rules_which_allows_everything() -> None:
    assert judge("User-agent: *\nDisallow: /\n\nUser-agent: crawltool", "/x")


# --- 2.2 Formal syntax ---


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n"])
def test_2_2_a_line_ends_with_cr_lf_or_both(end: str) -> None:
    body = end.join(["User-agent: *", "Disallow: /x", "", "Allow: /x/y", ""])
    assert not judge(body, "/x") and judge(body, "/x/y")


@pytest.mark.parametrize("line", ["Disallow:/x", " \t Disallow\t: \t/x \t", "disallow:   /x", "DISALLOW : /x", "dIsAlLoW:/x#c"])
def test_2_2_blanks_around_names_and_values_and_the_case_of_names_mean_nothing(line: str) -> None:
    for agent in ("User-agent: *", "  user-agent  :  *  ", "USER-AGENT:*", "User-Agent:\t* # all"):
        assert not judge(f"{agent}\n{line}\n", "/x") and judge(f"{agent}\n{line}\n", "/y")


def test_2_2_empty_lines_and_comments_may_stand_anywhere_in_a_group() -> None:
    body = "# first\n\nUser-agent: crawltool\n\n# who\n\nUser-agent: other\n \n\nDisallow: /x\n\n\n#\nDisallow: /y\n"
    assert not judge(body, "/x") and not judge(body, "/y") and judge(body, "/z")


def test_2_2_an_empty_pattern_is_no_rule() -> None:
    assert judge("User-agent: *\nDisallow:\n", "/x")
    assert not judge("User-agent: *\nAllow:\nDisallow: /\n", "/x")


def test_2_2_rules_before_the_first_user_agent_line_belong_to_nobody() -> None:
    assert judge("Disallow: /\nUser-agent: other\nDisallow: /\n", "/x")


def test_2_2_a_byte_order_mark_is_no_part_of_the_first_line() -> None:
    assert not judge(b"\xef\xbb\xbfUser-agent: *\nDisallow: /x", "/x")


# --- 2.2.1 The user-agent line ---


def test_2_2_1_our_product_token_has_only_letters_underscores_and_hyphens_and_is_part_of_what_we_send() -> None:
    for product in ("crawltool/0.1.0", "Example-Bot_x/2.0", "searcher"):
        token = token_of(product)  # what --robots-token should be; fetch warns of another one
        assert is_token(token)
        assert token in dict(identity.Identity(product, "me@site.test", token).headers())["User-Agent"]

    assert not is_token("my bot") and not is_token("bot/1") and not is_token("b0t") and not is_token("")


def test_2_2_1_the_group_of_our_product_token_is_found_whatever_its_case() -> None:
    for name in ("crawltool", "CrawlTool", "CRAWLTOOL"):
        assert not judge(f"User-agent: {name}\nDisallow: /x\n", "/x")
        assert not judge("User-agent: crawltool\nDisallow: /x\n", "/x", name)


def test_2_2_1_the_whole_product_token_is_compared_and_nothing_behind_it() -> None:
    assert not judge("User-agent: crawltool/7.1 (all)\nDisallow: /x\n", "/x")
    for name in ("crawl", "crawltools", "crawltool-news", "my-crawltool", "tool"):
        assert judge(f"User-agent: {name}\nDisallow: /x\n", "/x"), name


def test_2_2_1_the_rules_of_all_groups_that_match_are_combined_into_one() -> None:
    body = "User-agent: crawltool\nDisallow: /foo\nDisallow: /bar\n\nUser-agent: other\nDisallow: /q\n\n"
    body += "User-agent: CrawlTool\nDisallow: /baz\n"
    assert [judge(body, path) for path in ("/foo", "/bar", "/baz", "/q")] == [False, False, False, True]


def test_2_2_1_without_a_group_of_ours_the_group_of_the_star_is_obeyed() -> None:
    body = "User-agent: other\nDisallow: /x\nUser-agent: *\nDisallow: /y\nUser-agent: *\nDisallow: /z\n"
    assert judge(body, "/x") and not judge(body, "/y") and not judge(body, "/z")
    assert judge("User-agent: crawltool\nDisallow: /a\n" + body, "/y")


def test_2_2_1_without_our_group_and_without_the_star_no_rules_apply() -> None:
    assert judge("User-agent: other\nDisallow: /\n", "/x")


# --- 2.2.2 Allow and disallow lines ---


def test_2_2_2_every_allow_and_disallow_rule_is_matched_against_the_uri() -> None:
    body = "User-agent: *\n" + "".join(f"Disallow: /d{n}/\nAllow: /d{n}/open/\n" for n in range(200))
    assert all(not judge(body, f"/d{n}/x") and judge(body, f"/d{n}/open/x") for n in range(0, 200, 33))


def test_2_2_2_matching_is_case_sensitive() -> None:
    assert refused("Disallow: /Foo", "/Foo") and not refused("Disallow: /Foo", "/foo")


def test_2_2_2_matching_starts_with_the_first_octet_of_the_path() -> None:
    assert refused("Disallow: /foo", "/foo") and not refused("Disallow: /foo", "/a/foo")
    assert not refused("Disallow: foo", "/foo")  # a pattern begins with a slash, or a wildcard


def test_2_2_2_matching_covers_the_query() -> None:
    assert refused("Disallow: /a?x=", "/a?x=1") and not refused("Disallow: /a?x=", "/a?y=1")


@pytest.mark.parametrize("rules", ["Allow: /a/\nDisallow: /a/b/", "Disallow: /a/b/\nAllow: /a/"])
def test_2_2_2_the_match_with_the_most_octets_is_used_wherever_it_stands(rules: str) -> None:
    assert refused(rules, "/a/b/c") and not refused(rules, "/a/c")
    assert refused(rules + "\nAllow: /a/b/c", "/a/b/d") and not refused(rules + "\nAllow: /a/b/c", "/a/b/c")


def test_2_2_2_octets_are_counted_as_they_are_compared() -> None:
    # Nine octets when escaped, three as written.
    assert refused("Allow: /*********\nDisallow: /ツa", "/ツa")


def test_2_2_2_duplicate_rules_change_nothing() -> None:
    found = robots.parse(b"User-agent: *\nDisallow: /x\nDisallow: /x\nDisallow: /x\n", OURS)
    assert found.rules == [("disallow", "/x", 2)]  # they MAY be deduplicated: they are


@pytest.mark.parametrize("rules", ["Allow: /x\nDisallow: /x", "Disallow: /x\nAllow: /x", "Disallow: /%78\nAllow: /x"])
def test_2_2_2_of_equivalent_rules_allow_is_used(rules: str) -> None:
    assert not refused(rules, "/x")


def test_2_2_2_what_no_rule_matches_is_allowed() -> None:
    assert not refused("Disallow: /x", "/y") and not refused("", "/y") and judge("", "/y")


@pytest.mark.parametrize("target", ["/robots.txt", "/robots.txt?"])
def test_2_2_2_the_robots_txt_is_implicitly_allowed(target: str) -> None:
    assert (
        not refused("Disallow: /", target)
        and refused("Disallow: /", "/robots.txt.bak")
        and refused("Disallow: /", "/a/robots.txt")
    )


TABLE = [
    ("/foo/bar?baz=quz", "/foo/bar?baz=quz"),
    ("/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https://foo.bar"),
    ("/foo/bar/ツ", "/foo/bar/%E3%83%84"),
    ("/foo/bar/%E3%83%84", "/foo/bar/%E3%83%84"),
    ("/foo/bar/%62%61%7A", "/foo/bar/baz"),
]


@pytest.mark.parametrize(("written", "compared"), TABLE)
def test_2_2_2_octets_are_escaped_and_unescaped_before_they_are_compared(written: str, compared: str) -> None:
    for rule in (written, compared):
        for path in (written, compared):
            assert refused(f"Disallow: {rule}", path) and refused(f"Disallow: {rule}$", path), (rule, path)


def test_2_2_2_escapes_of_reserved_signs_are_not_undone() -> None:
    assert refused("Disallow: /a%2Fb", "/a%2fb") and not refused("Disallow: /a%2Fb", "/a/b")
    assert not refused("Disallow: /a/b", "/a%2Fb") and not refused("Disallow: /a%3Fb", "/a?b")


def test_2_2_2_a_rule_matches_only_when_its_end_is_reached_before_a_difference() -> None:
    assert refused("Disallow: /abc", "/abcdef") and not refused("Disallow: /abc", "/ab") and not refused("Disallow: /abc", "/abd")


# --- 2.2.3 Special characters ---


def test_2_2_3_a_number_sign_begins_a_comment() -> None:
    assert refused("Disallow: /a # comment in line", "/ab") and refused("# comment on its own line\nDisallow: /a", "/a")
    assert not refused("#Disallow: /a", "/a") and refused("Disallow: /a%23b", "/a%23b")


def test_2_2_3_a_dollar_sign_designates_the_end_of_the_pattern() -> None:
    assert refused("Disallow: /this/path/exactly$", "/this/path/exactly")
    assert not refused("Disallow: /this/path/exactly$", "/this/path/exactly/x")
    assert not refused("Disallow: /this/path/exactly$", "/this/path/exactly?x")


def test_2_2_3_a_star_designates_any_number_of_any_characters() -> None:
    rule = "Disallow: /this/*/exactly"
    assert refused(rule, "/this/a/exactly") and refused(rule, "/this/a/b/exactly/x") and refused(rule, "/this//exactly")
    assert not refused(rule, "/this/exactly") and not refused(rule, "/this/a/other")
    assert refused("Disallow: *.gif$", "/a.gif") and not refused("Disallow: *.gif$", "/a.gif?x")


def test_2_2_3_special_characters_are_matched_verbatim_by_their_escapes() -> None:
    assert refused("Disallow: /path/file-with-a-%2A.html", "/path/file-with-a-*.html")
    assert not refused("Disallow: /path/file-with-a-%2A.html", "/path/file-with-a-b.html")
    assert refused("Disallow: /path/foo-%24", "/path/foo-$") and not refused("Disallow: /path/foo-%24", "/path/foo-")


# --- 2.2.4 Other records ---


def test_2_2_4_sitemaps_are_read_and_misspelled_records_are_understood() -> None:
    found = robots.parse(b"Sitemap: http://site.test/s.xml\nUser agent: *\nDissallow: /x\nCrawl-delay: 2\n", OURS)
    assert (found.sitemaps, found.rules, found.crawl_delay_s) == (["http://site.test/s.xml"], [("disallow", "/x", 3)], 2.0)


OTHERS = ["Sitemap: http://site.test/s.xml", "Crawl-delay: 1", "Host: site.test", "Clean-param: a /b", "nonsense"]


@pytest.mark.parametrize("line", OTHERS)
def test_2_2_4_other_records_end_no_group(line: str) -> None:
    assert not judge(f"User-agent: crawltool\n{line}\nDisallow: /x\n{line}\nDisallow: /y\n", "/y")
    # Nor do they stand between the user-agent lines of one group.
    assert not judge(f"User-agent: crawltool\n{line}\nUser-agent: other\nDisallow: /x\n", "/x")


# --- 2.3 Access method ---


@pytest.mark.parametrize(
    ("page", "file"),
    [
        ("http://192.0.2.1/a/b?c", "http://192.0.2.1/robots.txt"),
        ("https://192.0.2.1/", "https://192.0.2.1/robots.txt"),
        ("http://192.0.2.1:8080/x/", "http://192.0.2.1:8080/robots.txt"),
        ("http://[2001:db8::1]/x", "http://[2001:db8::1]/robots.txt"),
    ],
)
def test_2_3_the_rules_are_asked_for_at_the_top_of_the_service(page: str, file: str) -> None:
    assert Crawler().seed(page).turn() == [f"robots {file}"]


def test_2_3_each_scheme_host_and_port_has_rules_of_its_own() -> None:
    crawler = Crawler(per_host=2, per_ip=2)
    assert crawler.seed(ONE, "http://192.0.2.1:8080/").turn() == [f"robots {ONE}robots.txt"]
    asked = crawler.file(ALL_CLOSED)
    assert asked == ["robots http://192.0.2.1:8080/robots.txt"] and crawler.refused == {"robots": 1}
    assert crawler.file("") == ["page http://192.0.2.1:8080/"]


def test_2_3_the_file_is_read_as_utf8_whatever_its_media_type_says() -> None:
    verdict, _ = classify(Facts(kind="robots", status=200, wanted=False))
    assert availability(verdict, 200) == "rules"
    assert refused("Disallow: /ü", "/%C3%BC")


# --- 2.3.1.1 Successful access ---


def test_2_3_1_1_the_rules_of_a_downloaded_file_are_followed_and_the_line_is_named() -> None:
    crawler = Crawler()
    crawler.seed(f"{ONE}x", f"{ONE}y").turn()
    assert crawler.file("User-agent: *\nDisallow: /x") == [f"page {ONE}y"]
    assert crawler.refused == {"robots": 1}
    [settled] = [crawler.core.book.settled("robots", key) for key, row in crawler.store.rows[0].items() if row[:1] == b"r"]  # type: ignore[index]
    assert settled.detail == "disallow: /x (line 2)"


def test_2_3_1_1_nothing_is_asked_before_the_rules_came() -> None:
    crawler = Crawler(per_host=4, per_ip=4)
    assert crawler.seed(*(f"{ONE}{n}" for n in range(9))).turn() == [f"robots {ONE}robots.txt"]
    assert crawler.later(60) == []


# --- 2.3.1.2 Redirects ---


def moved(crawler: Crawler, times: int) -> list[str]:
    """Let the rules move from one address to the next so many times."""
    asked = []
    for n in range(2, times + 2):
        asked = crawler.answer("redirect", status=301 + n % 2, redirect=f"http://192.0.2.{n}/robots.txt")
    return asked


@pytest.mark.parametrize("times", range(1, 6))
def test_2_3_1_2_five_redirects_are_followed_across_authorities_and_the_rules_hold_for_the_first(times: int) -> None:
    crawler = Crawler()
    crawler.seed(f"{ONE}x", f"{ONE}y").turn()
    assert moved(crawler, times) == [f"robots http://192.0.2.{times + 1}/robots.txt"]
    assert crawler.file("User-agent: *\nDisallow: /x") == [f"page {ONE}y"] and crawler.refused == {"robots": 1}


def test_2_3_1_2_rules_that_were_reached_by_a_redirect_do_not_hold_for_the_authority_they_lie_at() -> None:
    crawler = Crawler()
    crawler.seed(f"{ONE}x").turn()
    moved(crawler, 1)
    assert crawler.file(ALL_CLOSED) == [] and crawler.refused == {"robots": 1}
    assert crawler.seed(f"{TWO}x").turn() == [f"robots {TWO}robots.txt"]


def test_2_3_1_2_after_more_than_five_redirects_the_file_counts_as_unavailable() -> None:
    crawler = Crawler()
    crawler.seed(f"{ONE}x").turn()
    assert moved(crawler, 6) == [f"page {ONE}x"]


# --- 2.3.1.3 Unavailable status ---


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 418, 451, 499])
def test_2_3_1_3_a_file_that_is_unavailable_lets_everything_be_asked(status: int) -> None:
    crawler = Crawler()
    crawler.seed(f"{ONE}x").turn()
    verdict, _ = classify(Facts(kind="robots", status=status))
    assert crawler.answer(verdict, status=status) == [f"page {ONE}x"]


# --- 2.3.1.4 Unreachable status ---

NO_ANSWER = ["unreachable", "timeout", "tls_error", "malformed"]
TROUBLE = [
    *((verdict, None) for verdict in NO_ANSWER),
    ("busy", 429),
    ("busy", 503),
    *(("server_error", n) for n in (500, 502, 504, 599)),
]


@pytest.mark.parametrize(("verdict", "status"), TROUBLE)
def test_2_3_1_4_a_file_that_is_unreachable_forbids_everything_and_is_asked_for_again(verdict: str, status: int | None) -> None:
    crawler = Crawler()
    crawler.seed(f"{ONE}x").turn()
    asked, waits = 1, []
    while crawler.out:
        assert crawler.answer(verdict, status=status) == []
        if crawler.wakeup == float("inf"):
            break
        waits.append(crawler.wakeup - crawler.now)
        again = crawler.later(waits[-1] + 0.001)
        assert again == [f"robots {ONE}robots.txt"], "nothing else may be asked"
        asked += 1
    assert asked == limits.HOST_FAILURES_MAX and crawler.refused == {"robots_unreachable": 1}
    assert all(2**n <= wait <= 1.1 * 2**n + 0.01 for n, wait in enumerate(waits)), waits


def test_2_3_1_4_a_file_that_broke_off_is_unreachable() -> None:
    verdict, _ = classify(Facts(kind="robots", status=200, truncated="disconnect"))
    assert availability(verdict, 200) == "unreachable" or verdict == "unreachable"
    crawler = Crawler()
    crawler.seed(f"{ONE}x").turn()
    assert crawler.answer(verdict) == []


def test_2_3_1_4_the_next_run_asks_again_and_goes_on_when_the_file_is_there() -> None:
    crawler = Crawler()
    crawler.seed(f"{ONE}x").turn()
    for _ in range(limits.HOST_FAILURES_MAX):
        crawler.answer("server_error", status=500)
        crawler.later(100)
    assert crawler.refused == {"robots_unreachable": 1}
    crawler.start()
    assert crawler.turn() == [f"robots {ONE}robots.txt"]
    assert crawler.file("") == [f"page {ONE}x"] and crawler.refused == {}


def test_2_3_1_4_a_file_that_becomes_unreachable_forbids_what_its_old_rules_allowed() -> None:
    # A cached copy MAY be used on; the careful choice is taken.
    crawler = Crawler(robots_ttl_s=HOUR_S)
    crawler.seed(f"{ONE}x").turn()
    crawler.file("")
    crawler.answer("ok", status=200)
    crawler.seed(f"{ONE}y")
    assert crawler.later(HOUR_S + 1) == [f"robots {ONE}robots.txt"]
    assert crawler.answer("server_error", status=500) == []


# --- 2.3.1.5 Parsing errors ---


def test_2_3_1_5_each_line_is_tried_and_what_can_be_parsed_is_used() -> None:
    junk = b"\xff\xfe\x00\x01: \x80\n<html>\n:::\nDisallow\n\x00Disallow: /q\n" + b"x" * 100_000 + b"\n"
    body = junk + b"User-agent: *\n" + junk + b"Disallow: /x\n" + junk + b"Disallow: /\xff\n" + junk
    assert not judge(body, "/x") and judge(body, "/y") and not judge(body, "/%FF")


# --- 2.4 Caching ---


def asked_again_after(ttl_s: float, max_age_s: float | None) -> float:
    """Tell after how many seconds a file is asked for again."""
    crawler = Crawler(robots_ttl_s=ttl_s)
    crawler.seed(f"{ONE}0").turn()
    crawler.file("", max_age_s=max_age_s)
    crawler.answer("ok", status=200)
    began = crawler.now
    for n in range(1, 2000):
        crawler.seed(f"{ONE}{n}")
        [asked] = crawler.later(60)
        if asked.startswith("robots"):
            return crawler.now - began
        crawler.answer("ok", status=200)
    raise AssertionError("never asked again")


def test_2_4_a_cached_file_is_used_and_not_asked_for_at_each_page() -> None:
    assert asked_again_after(4 * HOUR_S, None) == pytest.approx(4 * HOUR_S, abs=61)


@pytest.mark.parametrize(
    ("max_age_s", "after_s"), [(0.0, 1800), (60.0, 1800), (2 * HOUR_S, 2 * HOUR_S), (100 * DAY_S, 4 * HOUR_S)]
)
def test_2_4_standard_cache_control_is_used_between_half_an_hour_and_the_ttl(max_age_s: float, after_s: float) -> None:
    assert asked_again_after(4 * HOUR_S, max_age_s) == pytest.approx(after_s, abs=61)


def test_2_4_no_copy_is_used_for_more_than_24_hours_whatever_anybody_says() -> None:
    assert asked_again_after(30 * DAY_S, 365 * DAY_S) <= DAY_S + 61


def test_2_4_what_means_that_there_are_no_rules_is_cached_no_longer() -> None:
    crawler = Crawler(robots_ttl_s=30 * DAY_S)
    crawler.seed(f"{ONE}x").turn()
    crawler.answer("client_error", status=404)
    crawler.answer("ok", status=200)
    crawler.seed(f"{ONE}y")
    assert crawler.later(DAY_S + 1) == [f"robots {ONE}robots.txt"]


def test_2_4_a_copy_from_the_future_is_not_used() -> None:
    crawler = Crawler()
    crawler.seed(f"{ONE}x").turn()
    crawler.file("")
    crawler.answer("ok", status=200)
    crawler.now -= 2 * DAY_S  # the clock was set back, and the frontier started again
    crawler.start()
    assert crawler.seed(f"{ONE}y").turn() == [f"robots {ONE}robots.txt"]


# --- 2.5 Limits ---


def test_2_5_at_least_500_kibibytes_are_parsed() -> None:
    assert limits.ROBOTS_BYTES_MAX >= 500 * 1024
    rule = b"Disallow: /last\n"
    head = b"User-agent: *\n"
    pad = (b"#" * 99 + b"\n") * 6000
    body = head + pad[: 500 * 1024 - len(head) - len(rule) - 1] + b"\n" + rule
    assert len(body) == 500 * 1024 and not judge(body, "/last")


def test_2_5_a_longer_file_is_read_as_far_as_that_and_is_not_given_up() -> None:
    verdict, _ = classify(Facts(kind="robots", status=200, error="too_large"))
    assert availability(verdict, 200) == "rules"
    assert not judge(b"User-agent: *\nDisallow: /first\n" + b"Disallow: /x\n" * 100_000, "/first")


# --- 3 Security considerations ---


def test_3_no_file_takes_more_memory_than_its_limit() -> None:
    body = b"User-agent: *\n" + b"".join(b"Disallow: /%d\n" % n for n in range(2_000_000))
    found = robots.parse(body, OURS)
    assert found.cut and sum(len(pattern) for _, pattern, _ in found.rules) < 500 * 1024


def test_3_characters_that_no_file_may_hold_do_no_harm() -> None:
    # They SHOULD be rejected: a rule that holds one matches no URL, which never holds it raw.
    assert not refused("Disallow: /a\x01b", "/ab") and refused("Disallow: /a\x01b\nDisallow: /c", "/c")


def test_3_the_content_is_untrusted_also_its_sitemaps_and_delays() -> None:
    found = robots.parse(b"User-agent: *\nCrawl-delay: 1e999\nSitemap: javascript:alert(1)\nSitemap: \x00\n", OURS)
    assert found.crawl_delay_s is None
    crawler = Crawler()
    crawler.seed(f"{ONE}x").turn()
    assert crawler.answer("ok", status=200, robots=found) == [f"page {ONE}x"]


# --- 5 Examples ---

SIMPLE = """User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: foobot
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: barbot
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot
"""
PATHS = ("/example/page.html", "/example/allowed.gif", "/publications/x", "/a.gif", "/other")
SAID = {
    "anybot": (False, False, True, False, True),
    "foobot": (True, True, False, False, False),
    "barbot": (False, True, True, True, True),
    "bazbot": (False, True, True, True, True),
    "quxbot": (True, True, True, True, True),
}


@pytest.mark.parametrize("token", SAID)
def test_5_1_the_simple_example_is_read_as_it_is_explained(token: str) -> None:
    assert tuple(judge(SIMPLE, path, token) for path in PATHS) == SAID[token]


def test_5_2_the_longest_match_is_used() -> None:
    body = "User-Agent: foobot\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif\n"
    assert not judge(body, "/example/page/disallowed.gif", "foobot") and judge(body, "/example/page/x.gif", "foobot")


# --- the cases of others ---


def cases(name: str) -> Iterator[dict[str, Any]]:
    for line in shared_data(name).read_text("utf-8").strip().split("\n"):
        yield json.loads(line)


def allowed(row: dict[str, Any]) -> bool:
    """Judge a row. Rows pass whole User-Agent headers where RFC 9309 takes the product token, and paths where it takes URLs."""
    body = base64.b64decode(row["robots_txt_b64"]) if "robots_txt_b64" in row else row["robots_txt"].encode()
    token = row["user_agent"].partition("/")[0]
    path = row["url"].replace("ftp:", "http:")
    url = urls.parse(path)
    return robots.Rules(robots.parse(body, token)).judge(path if url is None else url.target)[0]


def is_robots_txt(row: dict[str, Any]) -> bool:
    return bool(row["url"].endswith("/robots.txt"))


def test_every_case_on_which_all_suites_agree_is_judged_so() -> None:
    # Google's matcher leaves /robots.txt to its caller; RFC 9309 section 2.2.2 allows it.
    rows = list(cases("robots/core.jsonl"))
    wrong = [row["id"] for row in rows if allowed(row) is not (row["allowed"] or is_robots_txt(row))]
    assert len(rows) > 1000
    assert wrong == []


def test_the_examples_of_the_rfc_hold() -> None:
    wrong = [row["id"] for row in cases("robots/rfc9309_examples.jsonl") if allowed(row) is not row["allowed"]]
    assert wrong == []


@pytest.mark.slow
def test_real_files_are_read_as_google_reads_them() -> None:
    archive = shared_data("robots/real_robots.tar.zst")
    probes = shared_data("robots/real_verdicts.jsonl.zst")
    bodies = {}
    with zstandard.open(archive, "rb") as raw, tarfile.open(fileobj=raw, mode="r|") as tar:
        for member in tar:
            file = tar.extractfile(member)
            if file is not None:
                bodies[member.name.rpartition("/")[2]] = file.read()
    rules: dict[tuple[str, str], robots.Rules] = {}
    right = total = 0
    with zstandard.open(probes, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            known = (row["host"], row["user_agent"])
            if known not in rules:
                rules[known] = robots.Rules(robots.parse(bodies[row["host"]], row["user_agent"]))
            url = urls.parse(row["url"])
            assert url is not None
            total += 1
            right += rules[known].judge(url.target)[0] is row["google_allowed"]
    print(f"{right} of {total} real verdicts agree ({right / total:.2%})")
    assert right / total > 0.99


def test_an_answer_means_what_the_rfc_says_by_its_status() -> None:
    meanings = {"parse": "rules", "unavailable": "allow_all", "unreachable": "unreachable"}
    for row in cases("robots/http_status_semantics.jsonl"):
        status = re.fullmatch(r"HTTP (\d+)", row["situation"])
        if status is None or "expect" not in row:
            continue
        code = int(status[1])
        expected = meanings[re.split(r"[ :]", row["expect"])[0]]
        if code == 429:
            expected = "unreachable"  # DESIGN section 7, as Google documents it: the host asks for a rest
        verdict = "ok" if code < 300 else "busy" if code in (429, 503) else "server_error" if code >= 500 else "client_error"
        assert availability(verdict, code) == expected, row["id"]
    assert availability("timeout", None) == "unreachable"
