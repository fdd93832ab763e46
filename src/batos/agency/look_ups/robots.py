"""The rules of a site for programs (RFC 9309): which of its paths they are asked not to read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

#: The most bytes of a file of rules that are looked at (the RFC asks for at least so many).
MOST: Final = 500 * 1024
#: The longest time in seconds between two requests that a site may ask for.
MOST_DELAY: Final = 10.0
_RESERVED: Final = "/%:=&?~+!$,;'@()*[]|-._"


@dataclass(frozen=True, slots=True)
class RobotRules:
    """The rules of a site for one program: patterns with whether they allow, and the seconds between requests."""

    rules: tuple[tuple[str, bool], ...] = ()
    delay: float = 0.0

    def allows(self, target: str) -> bool:
        """Test if a path with its query may be read: the longest rule that fits decides, of two equal ones `allow`."""
        if target.partition("?")[0] == "/robots.txt":
            return True
        path = quote(target, safe=_RESERVED)
        fitting = ((len(pattern), allows) for pattern, allows in self.rules if _fits(pattern, path))
        return max(fitting, default=(0, True))[1]


#: The rules of a site whose rules cannot be read for a fault of its own: nothing is allowed.
NOTHING: Final = RobotRules((("/", False),))


def parse_rules(text: str, product: str) -> RobotRules:
    """Return the rules for a program: those of all groups that name it, else of those for every program (`*`)."""
    groups = list(_groups(text[:MOST]))
    own = [lines for agents, lines in groups if any(_names(agent, product) for agent in agents)]
    chosen = own or [lines for agents, lines in groups if "*" in agents]
    lines = [line for each in chosen for line in each]
    rules = tuple((quote(value, safe=_RESERVED), name == "allow") for name, value in lines if value and name in _RULES)
    return RobotRules(rules, max((_seconds(value) for name, value in lines if name == "crawl-delay"), default=0.0))


_RULES: Final = frozenset({"allow", "disallow"})


def _groups(text: str) -> Iterator[tuple[list[str], list[tuple[str, str]]]]:
    """Yield the groups of a file: the programs that each names, and its lines."""
    agents: list[str] = []
    lines: list[tuple[str, str]] = []
    for name, value in _lines(text.removeprefix("\ufeff").splitlines()):
        if name == "user-agent":
            if lines:
                yield agents, lines
                agents, lines = [], []
            agents.append(value.lower())
        elif agents and name in {*_RULES, "crawl-delay"}:
            lines.append((name, value))
    if agents:
        yield agents, lines


def _lines(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        name, colon, value = line.partition("#")[0].partition(":")
        if colon:
            yield name.strip().lower(), value.strip()


def _names(agent: str, product: str) -> bool:
    """Test if a line names a program: by the letters that its name begins with, up to another sign."""
    found = re.match(r"[a-z_-]+", agent)
    return found is not None and found[0] == product.lower()


def _fits(pattern: str, path: str) -> bool:
    """Test if a pattern fits the begin of a path; `*` is any text, `$` at its end the end. In linear time."""
    is_whole, parts = pattern.endswith("$"), pattern.removesuffix("$").split("*")
    if not path.startswith(parts[0]):
        return False
    at = len(parts[0])
    for part in parts[1:-1] if is_whole else parts[1:]:
        found = path.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    if not is_whole:
        return True
    last = parts[-1]
    return at == len(path) if len(parts) == 1 else path.endswith(last) and len(path) - len(last) >= at


def _seconds(value: str) -> float:
    return min(float(value), MOST_DELAY) if re.fullmatch(r"\d{1,6}(\.\d{1,6})?", value) else 0.0
