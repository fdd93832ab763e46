"""Rules of sites for programs, as RFC 9309 reads them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as some

from batos.agency.look_ups.robots import MOST_DELAY, NOTHING, RobotRules, parse_rules

RFC = """
User-Agent: *
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


@pytest.mark.parametrize(
    ("product", "path", "allowed"),
    [
        ("batos", "/publications/x", True),
        ("batos", "/example/x", False),
        ("batos", "/a.gif", False),
        ("batos", "/a.gif?b", True),
        ("foobot", "/example/page.html", True),
        ("foobot", "/example/allowed.gif", True),
        ("foobot", "/", False),
        ("FooBot", "/x", False),
        ("barbot", "/example/page.html", False),
        ("bazbot", "/other", True),
        ("quxbot", "/example/page.html", True),
        ("foobot", "/robots.txt", True),
    ],
)
def test_the_example_of_the_rfc(product: str, path: str, allowed: bool) -> None:
    """The longest rule that fits decides."""
    assert parse_rules(RFC, product).allows(path) is allowed


@pytest.mark.parametrize(
    ("text", "path", "allowed"),
    [
        ("User-agent: *\nDisallow: /*.pdf$", "/a/b.pdf", False),
        ("User-agent: *\nDisallow: /a\nAllow: /a/b", "/a/b/c", True),
        ("User-agent: *\nDisallow: /a\nAllow: /a", "/a", True),
        ("User-agent: *\nDisallow: /ä", "/%C3%A4", False),
        ("User-agent: *\nDisallow:", "/a", True),
        ("Disallow: /\nUser-agent: *\n", "/a", True),
        ("\ufeffUSER-AGENT : *\n disallow : / # all", "/a", False),
        ("User-agent: batos\nDisallow: /a\n\nUser-agent: batos/2\nDisallow: /b", "/b", False),
        ("User-agent: batos\nDisallow: /a\n\nUser-agent: *\nDisallow: /", "/c", True),
        ("User-agent: *\nSitemap: x\nUser-agent: batos\nDisallow: /", "/a", False),
        ("<html>Not found</html>", "/a", True),
        ("User-agent: *\nDisallow: /fish*x$", "/fishx", False),
        ("User-agent: *\nDisallow: /fish*h$", "/fish", True),
    ],
)  # fmt: skip
def test_rules(text: str, path: str, allowed: bool) -> None:
    """Stars, ends, groups that are joined, percent signs, and what is no file of rules."""
    assert parse_rules(text, "batos").allows(path) is allowed


def test_the_time_between_requests_is_bounded() -> None:
    """A site may ask for some seconds, not for hours."""
    assert parse_rules("User-agent: *\nCrawl-delay: 2.5", "batos").delay == 2.5
    assert parse_rules("User-agent: *\nCrawl-delay: 99999", "batos").delay == MOST_DELAY
    assert parse_rules("User-agent: *\nCrawl-delay: soon", "batos").delay == 0
    assert not NOTHING.allows("/a")


@given(
    some.lists(some.tuples(some.text("/ab*$", min_size=1, max_size=6), some.booleans())), some.text("/ab", max_size=8)
)
def test_a_pattern_is_what_the_rfc_says_it_is(rules: list[tuple[str, bool]], path: str) -> None:
    """The same as a regular expression, of which the longest pattern decides."""

    def fits(pattern: str) -> bool:
        body = pattern.removesuffix("$")
        found = ".*".join(map(re.escape, body.split("*"))) + (r"\Z" if pattern.endswith("$") else "")
        return re.match(found, path) is not None

    fitting = [(len(pattern), allows) for pattern, allows in rules if fits(pattern)]
    expected = max(fitting)[1] if fitting else True
    assert RobotRules(tuple(rules)).allows(path) is expected


@given(some.text(max_size=300))
def test_no_text_breaks_the_reader(text: str) -> None:
    """Whatever a site sends."""
    parse_rules(text, "batos").allows("/a")
