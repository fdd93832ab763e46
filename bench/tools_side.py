"""Holds the tools that `bench/coder.py` asks for: twenty that were used to choose the request, and twenty more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from batos.methods.generation.method_checks import Check

#: The calls that a wish may show; the others are never shown.
SHOWN = 2


@dataclass(frozen=True, slots=True)
class WantedTool:
    """A tool as it is wished for, and calls of it with their results."""

    signature: str
    purpose: str
    #: The types of the arguments.
    kinds: str
    cases: Sequence[tuple[list[Any], Any]]

    @property
    def selector(self) -> str:
        """Return the name of the tool."""
        return self.signature.partition("(")[0]

    @property
    def examples(self) -> list[str]:
        """Return the first calls as lines, as a person shows them."""
        return [f"{self.selector}({', '.join(map(repr, given))}) == {result!r}" for given, result in self.cases[:SHOWN]]

    @property
    def checks(self) -> list[Check]:
        """Return every call as a check."""
        return [Check(given, result=result) for given, result in self.cases]


TOOLS: Sequence[WantedTool] = (
    WantedTool(
        "count_words_(self, text)",
        "Return how many words the text has.",
        "str",
        ((["a b c"], 3), ([""], 0), (["one"], 1), (["the old  lamp"], 3)),
    ),
    WantedTool(
        "add_up_(self, numbers)",
        "Return the sum of the numbers.",
        "list",
        (([[1, 2, 3]], 6), ([[]], 0), ([[-4, 4, 9]], 9), ([[7]], 7)),
    ),
    WantedTool(
        "backwards_(self, items)",
        "Return the list of items in reverse order.",
        "list",
        (([[1, 2]], [2, 1]), ([[]], []), ([["b", "a", "c"]], ["c", "a", "b"])),
    ),
    WantedTool(
        "fahrenheit_(self, celsius)",
        "Return the degrees Fahrenheit of so many degrees Celsius.",
        "int",
        (([100], 212), ([0], 32), ([-40], -40), ([37], 98.6)),
    ),
    WantedTool(
        "shout_(self, text)",
        "Return the text in upper case.",
        "str",
        ((["ab c"], "AB C"), (["x"], "X"), (["Ab1!"], "AB1!")),
    ),
    WantedTool(
        "largest_(self, numbers)",
        "Return the largest of the numbers.",
        "list",
        (([[1, 5, 2]], 5), ([[-1, -3]], -1), ([[4, 4]], 4), ([[9, 1]], 9)),
    ),
    WantedTool(
        "mean_(self, numbers)",
        "Return the average of the numbers.",
        "list",
        (([[1, 2, 3]], 2), ([[4, 8]], 6), ([[5]], 5), ([[1, 2]], 1.5)),
    ),
    WantedTool(
        "is_even_(self, number)",
        "Return True if the number is even.",
        "int",
        (([4], True), ([3], False), ([0], True), ([-7], False)),
    ),
    WantedTool(
        "initials_(self, name)",
        "Return the initials of the name.",
        "str",
        ((["Ada Lovelace"], "AL"), (["Bob"], "B"), (["Ada King Noel"], "AKN")),
    ),
    WantedTool(
        "count_vowels_(self, text)",
        "Return how many vowels the text has.",
        "str",
        ((["banana"], 3), (["xyz"], 0), (["queue"], 4), (["hello you"], 4)),
    ),
    WantedTool(
        "unique_(self, items)",
        "Return the different items in their order.",
        "list",
        (([[1, 2, 1]], [1, 2]), ([[3]], [3]), ([["b", "a", "b"]], ["b", "a"])),
    ),
    WantedTool(
        "square_(self, number)",
        "Return the number times itself.",
        "int",
        (([3], 9), ([5], 25), ([0], 0), ([-2], 4)),
    ),
    WantedTool(
        "first_word_(self, text)",
        "Return the first word of the text.",
        "str",
        ((["hello you"], "hello"), (["one"], "one"), (["a bc d"], "a")),
    ),
    WantedTool(
        "palindrome_(self, text)",
        "Return True if the text reads the same backwards.",
        "str",
        ((["anna"], True), (["ab"], False), (["abca"], False), (["x"], True)),
    ),
    WantedTool(
        "repeat_(self, text, times)",
        "Return the text repeated so many times.",
        "str int",
        ((["ab", 2], "abab"), (["x", 3], "xxx"), (["a b", 1], "a b")),
    ),
    WantedTool(
        "longest_(self, words)",
        "Return the longest of the words.",
        "list",
        (([["a", "bbb"]], "bbb"), ([["x"]], "x"), ([["aaaa", "z", "yy"]], "aaaa")),
    ),
    WantedTool(
        "seconds_(self, minutes)",
        "Return how many seconds so many minutes have.",
        "int",
        (([2], 120), ([0], 0), ([10], 600)),
    ),
    WantedTool(
        "join_(self, words)",
        "Return the words joined by a comma.",
        "list",
        (([["a", "b"]], "a,b"), ([["x"]], "x"), ([["one", "two", "three"]], "one,two,three")),
    ),
    WantedTool(
        "factorial_(self, number)",
        "Return the factorial of the number.",
        "int",
        (([5], 120), ([1], 1), ([3], 6), ([6], 720)),
    ),
    WantedTool(
        "area_(self, width, height)",
        "Return the area of a rectangle.",
        "int int",
        (([2, 3], 6), ([4, 5], 20), ([7, 1], 7)),
    ),
    WantedTool(
        "smallest_(self, numbers)",
        "Return the smallest of the numbers.",
        "list",
        (([[4, 2, 9]], 2), ([[-1, 3]], -1), ([[7, 8]], 7), ([[5, 1]], 1)),
    ),
    WantedTool(
        "product_(self, numbers)",
        "Return all the numbers multiplied with each other.",
        "list",
        (([[2, 3, 4]], 24), ([[5]], 5), ([[1, 0, 9]], 0), ([[-2, 3]], -6)),
    ),
    WantedTool(
        "last_word_(self, text)",
        "Return the last word of the text.",
        "str",
        ((["hello you"], "you"), (["one"], "one"), (["a bc d"], "d")),
    ),
    WantedTool(
        "whisper_(self, text)",
        "Return the text in lower case.",
        "str",
        ((["AB c"], "ab c"), (["X"], "x"), (["A1! B"], "a1! b")),
    ),
    WantedTool(
        "is_odd_(self, number)",
        "Return True if the number is odd.",
        "int",
        (([4], False), ([3], True), ([0], False), ([-7], True)),
    ),
    WantedTool(
        "double_(self, number)",
        "Return the number times two.",
        "int",
        (([4], 8), ([-3], -6), ([0], 0)),
    ),
    WantedTool(
        "cube_(self, number)",
        "Return the number to the power of three.",
        "int",
        (([2], 8), ([3], 27), ([-1], -1)),
    ),
    WantedTool(
        "celsius_(self, fahrenheit)",
        "Return the degrees Celsius of so many degrees Fahrenheit.",
        "int",
        (([212], 100), ([32], 0), ([50], 10), ([-40], -40)),
    ),
    WantedTool(
        "minutes_(self, hours)",
        "Return how many minutes so many hours have.",
        "int",
        (([2], 120), ([0], 0), ([5], 300)),
    ),
    WantedTool(
        "without_spaces_(self, text)",
        "Return the text without its spaces.",
        "str",
        ((["a b c"], "abc"), (["x"], "x"), ([" a  b "], "ab")),
    ),
    WantedTool(
        "mirror_(self, text)",
        "Return the text backwards.",
        "str",
        ((["abc"], "cba"), (["x y"], "y x"), ([""], "")),
    ),
    WantedTool(
        "count_items_(self, items)",
        "Return how many items there are.",
        "list",
        (([[1, 2, 3]], 3), ([[]], 0), ([["a", "a"]], 2)),
    ),
    WantedTool(
        "in_order_(self, numbers)",
        "Return the numbers from the smallest to the largest.",
        "list",
        (([[3, 1, 2]], [1, 2, 3]), ([[]], []), ([[2, 10, 2]], [2, 2, 10])),
    ),
    WantedTool(
        "positives_(self, numbers)",
        "Return the numbers that are greater than zero.",
        "list",
        (([[1, -2, 3]], [1, 3]), ([[0]], []), ([[-1, 5, 0, 5]], [5, 5])),
    ),
    WantedTool(
        "words_(self, text)",
        "Return the list of the words of the text.",
        "str",
        ((["a b c"], ["a", "b", "c"]), (["one"], ["one"]), (["two  lamps"], ["two", "lamps"])),
    ),
    WantedTool(
        "begins_(self, text, start)",
        "Return True if the text begins with the start.",
        "str str",
        ((["hello", "he"], True), (["hello", "lo"], False), (["ab", "ab"], True), (["a", "ab"], False)),
    ),
    WantedTool(
        "difference_(self, first, second)",
        "Return the first number minus the second.",
        "int int",
        (([5, 3], 2), ([1, 4], -3), ([7, 7], 0)),
    ),
    WantedTool(
        "perimeter_(self, width, height)",
        "Return the perimeter of a rectangle.",
        "int int",
        (([2, 3], 10), ([4, 5], 18), ([1, 1], 4)),
    ),
    WantedTool(
        "digits_(self, number)",
        "Return how many digits the number has.",
        "int",
        (([123], 3), ([7], 1), ([10], 2)),
    ),
    WantedTool(
        "shortest_(self, words)",
        "Return the shortest of the words.",
        "list",
        (([["aa", "b"]], "b"), ([["x"]], "x"), ([["ccc", "dd", "eeee"]], "dd")),
    ),
)
