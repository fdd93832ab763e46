"""Cut a Go template into tokens: the texts, and the words of each action between `{{` and `}}`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

LEFT, RIGHT = "{{", "}}"
_SPACES: Final = " \t\r\n"
_KEYWORDS: Final = frozenset("block break continue define else end if nil range template with .".split())
_OPERANDS: Final = frozenset("bool char complex . field identifier number nil raw string variable (".split())
_TWO: Final = 2  # characters of a trim marker


class Malformed(Exception):
    """The error of a template that cannot be parsed, in the words of Go's parser."""


@dataclass(frozen=True, slots=True)
class TemplateToken:
    """A token of a template: its kind, its text, its line from 1, and `at`, its offset in characters.

    Kinds are text, left, right, space, error, eof, char (one sign), bool, charconst, complex, field, identifier,
    number, raw, string, variable, assign (=), declare (:=), pipe, ( and ), and every keyword by its own name.
    """

    kind: str
    at: int
    text: str
    line: int

    @property
    def operand(self) -> bool:
        """Return whether a command's argument may begin with this token."""
        return self.kind in _OPERANDS or self.kind == "charconst"

    def __str__(self) -> str:
        if self.kind == "eof":
            return "EOF"
        if self.kind == "error":
            return self.text
        if self.kind in _KEYWORDS:
            return f"<{self.text}>"
        return f"{quote(self.text[:10])}..." if len(self.text) > 10 else quote(self.text)


_NAMED: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\", '"': '\\"', "\a": "\\a", "\b": "\\b"}


def quote(text: str) -> str:
    """Return a string in quotes and with escapes, as Go's %q prints it."""
    parts = []
    for letter in text:
        if letter in _NAMED:
            parts.append(_NAMED[letter])
        elif letter.isprintable():
            parts.append(letter)
        else:
            code = ord(letter)
            parts.append(f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
    return '"' + "".join(parts) + '"'


class Lexer:
    """Cuts one template into `tokens`, the last of which is eof, or the error that stopped the lexer.

    Methods that read one token return a fault in Go's words, or "" for none.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._start = 0
        self._deep = 0
        self.tokens: list[TemplateToken] = []
        self._line, self._counted = 1, 0

    def run(self) -> list[TemplateToken]:
        """Read the whole template and return its tokens.

        Comments and the blanks that trim markers remove are left out.
        """
        while self._words():
            pass
        return self.tokens

    def _emit(self, kind: str) -> None:
        self._put(kind, self._text[self._start : self._at])
        self._start = self._at

    def _put(self, kind: str, text: str) -> None:
        self._line += self._text.count("\n", self._counted, self._start)
        self._counted = self._start
        self.tokens.append(TemplateToken(kind, self._start, text, self._line))

    def _error(self, text: str) -> bool:
        self._put("error", text)
        return False

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _words(self) -> bool:
        """Read the text up to the next action, and that action; return whether more of the template follows."""
        found = self._text.find(LEFT, self._at)
        end = len(self._text) if found < 0 else found
        stop = end
        if found >= 0 and self._opens_trimmed(found + len(LEFT)):
            stop = self._start + len(self._text[self._start : end].rstrip(_SPACES))
        self._at = stop
        if stop > self._start:
            self._emit("text")
        self._at = self._start = end
        if found < 0:
            self._emit("eof")
            return False
        return self._left()

    def _opens_trimmed(self, at: int) -> bool:
        return self._text[at : at + 1] == "-" and self._text[at + 1 : at + 2] in tuple(_SPACES)

    def _left(self) -> bool:
        """Read `{{` and the action or comment behind it; return False after an error."""
        marked = _TWO if self._opens_trimmed(self._at + len(LEFT)) else 0
        inside = self._at + len(LEFT) + marked
        if self._text.startswith("/*", inside):
            self._at = self._start = inside
            return self._comment()
        self._at += len(LEFT)
        self._emit("left")
        self._at = self._start = inside
        self._deep = 0
        return self._action()

    def _comment(self) -> bool:
        """Read a comment up to its end, which must be the end of the action; return False after an error."""
        found = self._text.find("*/", self._at + 2)
        if found < 0:
            return self._error("unclosed comment")
        self._at = found + 2
        closes, trimmed = self._closing()
        if not closes:
            return self._error("comment ends before closing delimiter")
        self._right(trimmed, spoken=False)
        return True

    def _closing(self) -> tuple[bool, bool]:
        """Return whether the action ends here, and whether with a trim marker before its `}}`."""
        at = self._at
        if self._text[at : at + 1] in tuple(_SPACES) and self._text.startswith("-" + RIGHT, at + 1):
            return True, True
        return self._text.startswith(RIGHT, at), False

    def _right(self, trimmed: bool, *, spoken: bool) -> None:
        """Go past `}}` and, if `trimmed`, past its trim marker and the blanks behind it; `spoken` adds the token."""
        if trimmed:
            self._at += _TWO
        self._start = self._at
        self._at += len(RIGHT)
        if spoken:
            self._emit("right")
        if trimmed:
            while self._peek() and self._peek() in _SPACES:
                self._at += 1
        self._start = self._at

    def _action(self) -> bool:
        """Read the tokens of an action up to its `}}`; return False after an error."""
        while True:
            closes, trimmed = self._closing()
            if closes and self._deep:
                return self._error("unclosed left paren")
            if closes:
                self._right(trimmed, spoken=True)
                return True
            letter = self._peek()
            if not letter:
                return self._error("unclosed action")
            wrong = self._blank() if letter in _SPACES else self._read_token(letter)
            if wrong:
                return self._error(wrong)

    def _blank(self) -> str:
        """Read blanks as one token, except the blank before `-}}`; return "", since that cannot fail."""
        while self._peek() and self._peek() in _SPACES and not self._closing()[1]:
            self._at += 1
        if self._at > self._start:
            self._emit("space")
        return ""

    def _read_token(self, letter: str) -> str:
        """Read one token of an action, which begins with `letter`, no blank."""
        following = self._text[self._at + 1 : self._at + 2]
        if letter == "." and not ("0" <= following <= "9"):
            return self._name("field")
        if letter in "+-." or (letter.isascii() and letter.isdigit()):
            return self._number()
        if _alphanumeric(letter):
            return self._identifier()
        quote = {'"': "string", "`": "raw", "'": "charconst"}.get(letter)
        if quote is not None:
            return self._quoted_constant(quote, letter)
        if letter == "$":
            return self._name("variable")
        return self._sign(letter, following)

    def _sign(self, letter: str, following: str) -> str:
        """Read a token of one or two signs, and count brackets."""
        self._at += 1
        if letter == ":":
            if following != "=":
                return "expected :="
            self._at += 1
            self._emit("declare")
        elif letter in "=|":
            self._emit("assign" if letter == "=" else "pipe")
        elif letter in "()":
            self._deep += 1 if letter == "(" else -1
            if self._deep < 0:
                return "unexpected right paren"
            self._emit(letter)
        elif letter.isascii() and letter.isprintable():
            self._emit("char")
        else:
            return f"unrecognized character in action: {_point(letter)}"
        return ""

    def _identifier(self) -> str:
        """Read a keyword, a constant or a name; return an error's text, "" without one."""
        while _alphanumeric(self._peek()):
            self._at += 1
        if not self._ends():
            return f"bad character {_point(self._peek())}"
        word = self._text[self._start : self._at]
        self._emit(word if word in _KEYWORDS else "bool" if word in ("true", "false") else "identifier")
        return ""

    def _name(self, kind: str) -> str:
        """Read a field or a variable; a point without a name is the dot."""
        self._at += 1
        if kind == "field" and self._ends():
            self._emit(".")
            return ""
        while _alphanumeric(self._peek()):
            self._at += 1
        if not self._ends():
            return f"bad character {_point(self._peek())}"
        self._emit(kind)
        return ""

    def _ends(self) -> bool:
        """Return whether the next character may follow a word."""
        letter = self._peek()
        return not letter or letter in _SPACES or letter in ".,|:)(" or self._text.startswith(RIGHT[0], self._at)

    def _quoted_constant(self, kind: str, quote: str) -> str:
        """Read a string or a character constant up to its closing `quote`."""
        self._at += 1
        while True:
            letter = self._peek()
            self._at += 1
            if kind != "raw" and letter == "\\":
                letter = self._peek()
                self._at += 1
                if letter and letter != "\n":
                    continue
                letter = ""
            if not letter or (kind != "raw" and letter == "\n"):
                self._at = min(self._at, len(self._text))
                named = {"raw": "raw quoted string", "string": "quoted string", "charconst": "character constant"}
                return f"unterminated {named[kind]}"
            if letter == quote:
                self._emit(kind)
                return ""

    def _number(self) -> str:
        """Read a number, which may be complex; return an error's text, "" without one."""
        good = self._scanned()
        if good and self._peek() and self._peek() in "+-":
            good = self._scanned() and self._text[self._at - 1] == "i"
            if good:
                self._emit("complex")
                return ""
        if not good:
            return f"bad number syntax: {quote(self._text[self._start : self._at])}"
        self._emit("number")
        return ""

    def _scanned(self) -> bool:
        """Go past one number; return False if a letter or digit follows it."""
        self._accept("+-")
        digits = "0123456789_"
        if self._accept("0"):
            if self._accept("xX"):
                digits = "0123456789abcdefABCDEF_"
            elif self._accept("oO"):
                digits = "01234567_"
            elif self._accept("bB"):
                digits = "01_"
        self._run(digits)
        if self._accept("."):
            self._run(digits)
        if len(digits) == 11 and self._accept("eE"):
            self._accept("+-")
            self._run("0123456789_")
        if len(digits) == 23 and self._accept("pP"):
            self._accept("+-")
            self._run("0123456789_")
        self._accept("i")
        if _alphanumeric(self._peek()):
            self._at += 1
            return False
        return True

    def _accept(self, valid: str) -> bool:
        """Take the next character if it is one of `valid`; return whether it was."""
        letter = self._peek()
        if letter and letter in valid:
            self._at += 1
            return True
        return False

    def _run(self, valid: str) -> None:
        while self._accept(valid):
            pass


def _alphanumeric(letter: str) -> bool:
    return letter == "_" or letter.isalpha() or letter.isdecimal()


def _point(letter: str) -> str:
    """Return a character as Go's %#U prints it, such as `U+003F '?'`."""
    code = ord(letter) if letter else 0
    return f"U+{code:04X} '{letter}'" if letter.isprintable() and letter else f"U+{code:04X}"
