"""Checks that stand in the wish itself: calls with their results among its examples and in its text.

Such checks are right whoever writes the method, because they were asked for, and no model has to write others.
"""

from __future__ import annotations

import re
from typing import Final

from batos.methods.generation.check_lines import parse_lines
from batos.methods.generation.lean_request import SPEAKS, inside
from batos.methods.generation.method_checks import Check
from batos.methods.generation.method_spec import MethodSpec

#: The most checks that are read from a wish.
MOST: Final = 8
#: A call at a prompt of Python, and its result on the next line.
_PROMPTED: Final = re.compile(r"^[ \t]*>>>[ \t]*(.+\))[ \t]*\n[ \t]*(?!>>>)(\S.*)$", re.MULTILINE)


def wish_checks(wanted: MethodSpec) -> tuple[Check, ...]:
    """Return the calls with results in the examples and the text of a wish, each on a line of its own.

    A call with two results is left out, because the wish contradicts itself there. A facet or protocol has none.
    """
    if wanted.kind in SPEAKS:
        return ()
    names = tuple(each.split(":")[0].split("=")[0].strip() for each in inside(wanted.signature).split(","))
    return parse_lines(call_lines(wanted), wanted.selector, tuple(name for name in names if name), MOST)[0]


def call_lines(wanted: MethodSpec) -> str:
    """Return the lines of a wish's text and examples that call the method or tell of a slot."""
    said = _PROMPTED.sub(r"\1 == \2", "\n".join((wanted.text, *wanted.examples)))
    call = f"{wanted.selector.strip('_')}("
    return "\n".join(line.strip() for line in said.splitlines() if call in line.replace("_(", "(") or "self." in line)
