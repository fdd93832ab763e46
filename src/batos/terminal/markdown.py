"""Markdown of an answer on a terminal: headings and strong words are bold, code has a colour, and no text is lost."""

from __future__ import annotations

import re
from typing import Final

#: Signs that stand for a style until lines are laid: of no width, and none that `plain` leaves in a text.
STRONG, CODE, OFF = "\ufff9", "\ufffa", "\ufffb"
_COLOURS: Final = {STRONG: "\x1b[1m", CODE: "\x1b[36m", OFF: "\x1b[0m"}
_STYLES: Final = re.compile(f"[{STRONG}{CODE}{OFF}]")
#: Beginnings of a line that may still become a heading or a fence.
_OPEN_LINE: Final = re.compile(r"#{0,6}| {0,3}`{0,2}")
_HEADING: Final = re.compile(r"#{1,6} ")
#: Strong words and code, and the beginnings that may still become them.
_STRONG_WORDS: Final = re.compile(r"\*\*([^\s*](?:[^*]*[^\s*])?)\*\*")
_CODE_WORDS: Final = re.compile(r"`[^`]+`")
_OPEN_WORDS: Final = re.compile(r"\*\*?|\*\*[^\s*][^*]*\*?|`[^`]*")
#: Characters after which a mark that nothing ends stands as it is.
_LONGEST: Final = 200


class Markdown:
    """Markdown that is styled as it comes: whatever the pieces, the result is the same.

    Between fences and in tables nothing is changed. Marks that nothing ends on their line stand as they are.
    """

    def __init__(self) -> None:
        #: The beginning of a line, or of strong words or code, that is still in doubt.
        self._held = ""
        self._last = ""
        self._is_begun = self._is_raw = self._is_heading = self._is_fenced = False

    def feed(self, text: str) -> str:
        """Take a further piece; return what can be shown of what came so far."""
        return "".join(map(self._sign, text))

    def end(self) -> str:
        """Return what is left when nothing more comes."""
        shown = "" if self._is_begun else self._begin_line()
        shown, self._held = shown + self._held, ""
        return shown + OFF if self._is_heading else shown

    def _sign(self, letter: str) -> str:
        if letter == "\n":
            shown = f"{self.end()}{letter}"
            self._is_begun = self._is_raw = self._is_heading = False
            self._last = ""
            return shown
        if self._is_begun:
            return self._inline(letter)
        self._held += letter
        return "" if _OPEN_LINE.fullmatch(self._held) else self._begin_line()

    def _begin_line(self) -> str:
        """Return the beginning of a line, of which the kind is known now."""
        line, self._held, self._is_begun = self._held, "", True
        bare = line.lstrip(" ")
        is_fence = bare.startswith("```")
        self._is_raw = is_fence or self._is_fenced or bare.startswith("|")
        self._is_fenced ^= is_fence
        if not self._is_raw and _HEADING.fullmatch(line):
            self._is_heading = True
            return STRONG
        return "".join(map(self._inline, line))

    def _inline(self, letter: str) -> str:
        opens = letter == "`" or (letter == "*" and not self._last.isalnum())
        if not self._held and (self._is_raw or not opens):
            self._last = letter
            return letter
        self._held += letter
        if found := _STRONG_WORDS.fullmatch(self._held):
            return self._settle(found[1] if self._is_heading else f"{STRONG}{found[1]}{OFF}")
        if _CODE_WORDS.fullmatch(self._held):
            return self._settle(self._held if self._is_heading else f"{CODE}{self._held}{OFF}")
        if _OPEN_WORDS.fullmatch(self._held) and len(self._held) <= _LONGEST:
            return ""
        # The last letter may begin a mark of its own.
        return self._settle(self._held[:-1]) + self._inline(letter)

    def _settle(self, shown: str) -> str:
        self._last, self._held = shown[-1:] or self._last, ""
        return shown


def style(text: str) -> str:
    """Return a whole text with its styles."""
    markdown = Markdown()
    return markdown.feed(text) + markdown.end()


def paint(text: str) -> str:
    """Write styles as the colours of a terminal."""
    return _STYLES.sub(lambda found: _COLOURS[found[0]], text)
