"""A reply as the source of one method: what changes no meaning is corrected and told, all else is left."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.guardian.audit import Context, audit
from batos.methods.generation.written_source import read_source

SELECTOR, SIGNATURE = "size_", "size_(self, text)"
GOOD = "def size_(self, text):\n    return len(text)\n"
LEFT_OUT = "left out, because the method does not use it: "
#: Replies that become a method, each with the source and the changes.
CORRECTED = {
    "as it should be": (GOOD, GOOD, ()),
    "another name": (GOOD.replace("size_", "length"), GOOD, ("`length` was renamed to `size_`",)),
    "no receiver": (GOOD.replace("self, ", ""), GOOD, ("`self` was put first",)),
    "another parameter": (
        "def size_(self, string):\n    return len(string)\n",
        "def size_(self, text):\n    string = text\n    return len(string)\n",
        ("the parameter `string` was renamed to `text`",),
    ),
    "a docstring and another parameter": (
        'def size_(self, string):\n    """Size."""\n    return len(string)\n',
        'def size_(self, text):\n    """Size."""\n    string = text\n    return len(string)\n',
        ("the parameter `string` was renamed to `text`",),
    ),
    "await in a plain function": (
        "def size_(self, text):\n    return await self.infer_(text)\n",
        "async def size_(self, text):\n    return await self.infer_(text)\n",
        ("`def` became `async def`",),
    ),
    "examples of its use": (
        f"{GOOD}\nx = size_('a')\nprint(x)\nassert size_('a') == 1\nif __name__ == '__main__':\n    size_('a')\n",
        GOOD,
        (f"{LEFT_OUT}`x = size_('a')`, `print(x)`, `assert size_('a') == 1` and 1 more",),
    ),
    "another function and an unused import": (
        f"import os\n{GOOD}\ndef other(x):\n    return x\n",
        GOOD,
        (f"{LEFT_OUT}`import os`, `def other(x): return x`",),
    ),
    "a helper that is used": (
        "def double(x):\n    return 2 * x\n\ndef size_(self, text):\n    return double(len(text))\n",
        "def double(x):\n    return 2 * x\n\ndef size_(self, text):\n    return double(len(text))\n",
        (),
    ),
    "a module without its import": (
        "def size_(self, text):\n    return math.ceil(len(text))\n",
        "import math\n\ndef size_(self, text):\n    return math.ceil(len(text))\n",
        ("`import math` was added",),
    ),
    "a class around it": (
        "class Text:\n    def size_(self, text):\n        return len(text)\n",
        GOOD,
        ("the method was taken out of the class `Text`",),
    ),
}


@pytest.mark.parametrize("name", CORRECTED)
def test_what_changes_no_meaning_is_corrected(name: str) -> None:
    """The guardian accepts the source, and each change is told."""
    reply, source, changes = CORRECTED[name]
    read = read_source(reply, SELECTOR, SIGNATURE)
    assert (read.source, read.changes) == (source, changes)
    assert audit(read.source, Context(SELECTOR, SIGNATURE)).accepted


#: Sources of which it is not certain what is meant.
LEFT = {
    "two of other names": "def one(self, a):\n    return 1\n\ndef two(self, b):\n    return 2\n",
    "the name twice": GOOD + GOOD,
    "several other parameters": "def size_(self, one, two):\n    return one\n",
    "a return that lost its place": GOOD + "return 2\n",
    "a constant that is changed": "SIZES = []\nSIZES.append(1)\n\ndef size_(self, text):\n    return SIZES[0]\n",
    "a module of which a name is not in the dialect": "def size_(self, text):\n    return math.size(text)\n",
    "a class with more": "class A:\n    x = 1\n\n    def size_(self, text):\n        return self.x\n",
    "no Python": "def size_(self, text):\n    return (text\n",
}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_not_certain_is_left(name: str) -> None:
    """The guardian refuses it, and its author is told."""
    assert read_source(LEFT[name], SELECTOR, SIGNATURE).source == LEFT[name]


def test_a_function_that_calls_itself_sends_the_message() -> None:
    """Under its new name it is a method, which is called by its message."""
    read = read_source("def size(text):\n    return size(text[1:]) + 1 if text else 0\n", SELECTOR, SIGNATURE)
    assert "self.size_(text[1:])" in read.source


PARTS = st.sampled_from(
    [
        *(
            "def size_(self, text):\n",
            "def size(text):\n",
            "    return len(text)\n",
            "async def go(self, x):\n",
            "```\n",
        ),
        *(
            "    return await self.infer_(text)\n",
            "    x = math.pi\n",
            "print(size_('a'))\n",
            "import os\n",
            "class A:\n",
        ),
        *(
            "x = [1]\n",
            "    def inner(y):\n",
            "        return y\n",
            "for x in y:\n",
            "It works.\n",
            "import json\n",
            "@a\n",
        ),
        "\n",
    ]
)


@given(st.lists(PARTS | st.text(max_size=10), max_size=10).map("".join))
def test_it_never_raises_and_makes_nothing_up(reply: str) -> None:
    """Whatever is said, no error is raised, and without a change every line of the source stands in the reply."""
    read = read_source(reply, SELECTOR, SIGNATURE)
    again = read_source(read.source, SELECTOR, SIGNATURE)
    assert not again.changes or again.source != read.source
    if not read.changes:
        said = {line.expandtabs(4).strip() for line in reply.replace("\r", "\n").split("\n")}
        assert all(line.expandtabs(4).strip() in said for line in read.source.strip("\n").split("\n") if line)


@given(st.lists(PARTS, min_size=1, max_size=8).map("".join))
def test_calls_are_those_of_the_reply(reply: str) -> None:
    """No function is called that the reply does not call, but the method itself by its message."""
    read = read_source(reply, SELECTOR, SIGNATURE)
    try:
        tree = ast.parse(read.source)
    except SyntaxError:
        return
    called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert all(each in reply for each in called - {"self.size_"})
