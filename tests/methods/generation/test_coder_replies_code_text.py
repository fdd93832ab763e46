"""The code of a reply: found wherever a model puts it, and never made up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.methods.generation.coder_replies import COLON, HEADED, INDENTED, PROSE, find_code

CODE = "def f_(self, x):\n    return x + 1\n"
HEADER = "def f_(self, x):"
#: Replies with what is found in them.
REPLIES = {
    "bare": (CODE, CODE, ()),
    "a fence": (f"```python\n{CODE}```", CODE, ()),
    "a fence without its end": (f"```python\n{CODE}", CODE, ()),
    "a fence without its beginning": (f"{CODE}```\n", CODE, ()),
    "tildes": (f"~~~\n{CODE}~~~\n", CODE, ()),
    "prose around a fence": (f"Sure!\n```py\n{CODE}```\nIt adds one.", CODE, (PROSE,)),
    "prose around no fence": (f"Sure, from the text:\n\n{CODE}\nIt adds one.\nIf you like, change it.", CODE, (PROSE,)),
    "two fences": (f"```\nf_(2)\n```\n```python\n{CODE}```", CODE, (PROSE,)),
    "another function first": (f"```\ndef g(x):\n    return x\n```\n```\n{CODE}```", CODE, (PROSE,)),
    "indented": ("    " + CODE.replace("\n    ", "\n        "), CODE, ()),
    "tabs and blanks": (
        "def f_(self, x):\n\tif x:\n        return 1\n",
        "def f_(self, x):\n    if x:\n        return 1\n",
        (),
    ),
    "Windows": (CODE.replace("\n", "\r\n"), CODE, ()),
    "prompts": (">>> def f_(self, x):\n...     return x + 1\n", CODE, ()),
    "no indentation": ("def f_(self, x):\nreturn x + 1", CODE, (INDENTED,)),
    "no colon": ("def f_(self, x)\n    return x + 1", CODE, (COLON,)),
    "neither": ("def f_(self, x)\nreturn x + 1", CODE, (COLON, INDENTED)),
    "the body alone": ("    return x + 1", CODE, (HEADED,)),
    "the body in a fence": ("```\nreturn x + 1\n```", CODE, (HEADED,)),
    "nothing": ("", "", ()),
    "no code": ("I cannot do that.", "I cannot do that.\n", ()),
}


@pytest.mark.parametrize("name", REPLIES)
def test_code_is_found(name: str) -> None:
    """In each form that models use; what was changed is told."""
    reply, code, changes = REPLIES[name]
    found = find_code(reply, "f_", HEADER)
    assert (found.code, found.changes) == (code, changes)


@pytest.mark.parametrize("rest", ["else:\n    return 2", "return 2", "for y in x:\n    x = y", "x = 2", "raise x"])
def test_a_line_that_may_be_of_the_function_is_not_cut_off(rest: str) -> None:
    """What has lost its indentation is no prose: a source that cannot be read whole is refused and told."""
    code = f"def f_(self, x):\n    if x:\n        return 1\n{rest}\n and then (\n"
    assert find_code(code, "f_").code == code


PIECES = st.sampled_from(
    [
        *("```python\n", "```\n", CODE, "def f_(self, x)", "def g(x):\n", "    return x\n", "return x\n", "\t", "    "),
        *("It works.\n", "class A:\n", "else:\n", "import math\n", ">>> ", '"""', "(", "x = 1\n", "~~~\n", "\r\n", "é"),
        "\n",
    ]
)


@given(st.lists(PIECES | st.text(max_size=12), max_size=14).map("".join))
def test_no_line_is_made_up(reply: str) -> None:
    """Whatever a model says, each line of the code stands in its reply, but for the listed changes."""
    found = find_code(reply, "f_", HEADER)
    lines = reply.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    said = {each.strip() for line in lines for each in (line, line.expandtabs(4))}  # a tab's width is that of its place
    plain = {line.removeprefix(">>>").removeprefix("...").strip() for line in said} | said
    if HEADED in found.changes:
        plain.add(HEADER)
    for line in found.code.split("\n"):
        alike = {line.strip(), line.expandtabs(4).strip()}
        if COLON in found.changes:
            alike.add(line.strip().removesuffix(":").rstrip())
        assert alike & (plain | {each.expandtabs(4) for each in plain}) or not line.strip()
