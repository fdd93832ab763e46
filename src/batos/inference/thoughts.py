"""Parts a model's reply into what it says and what it only thinks, by the marks that models put around thoughts.

A daemon that knows a model's template hands the thoughts over apart. Those of an imported model stand in its text:
between two marks, behind a first mark whose second never comes, before a second one whose first stood in the template,
or in a channel of their own. A mark within code or quotes, or amid a sentence, is one that the reply speaks of.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

_TAGS: Final = (
    "think thinking thought thoughts reasoning reflection scratchpad scratch_pad seed:think longcat_think".split()
)
#: The marks before a thought and behind one, in small letters.
_OPENING: Final = frozenset(
    [
        *(f"<{tag}>" for tag in _TAGS),
        "[think]",
        "◁think▷",
        "<|think|>",
        "<|begin_of_thought|>",
        "<|start_thinking|>",
        "<|inner_prefix|>",
        "<|channel>",
        "<unused94>",
    ]
)
_CLOSING: Final = frozenset(
    [
        *(f"</{tag}>" for tag in _TAGS),
        "[/think]",
        "◁/think▷",
        "<|/think|>",
        "<|end_of_thought|>",
        "<|end_thinking|>",
        "<|inner_suffix|>",
        "<channel|>",
        "<unused95>",
    ]
)
#: The marks before the name of a channel, and those that end what is said in one.
_CHANNEL: Final = frozenset({"<|channel|>", "<|start|>"})
_CHANNEL_END: Final = frozenset({"<|end|>", "<|return|>", "<|call|>"})
_SAID_ALOUD: Final = "final"
_LONGEST_HEADER: Final = 96
_HEADER: Final = re.compile(r"[^\n]{0,80}?(?:<\|message\|>|(?=\n))", re.IGNORECASE)
#: Marks around the answer behind a thought, and marks at the end of a turn, which are no part of a reply's last line.
_FRAME: Final = frozenset(
    [
        *"<answer> <response> <output> <final_answer> <|begin_of_solution|> <|start_response|> <|assistant|>".split(),
        "<|im_start|>assistant",
    ]
)
_FRAME_END: Final = frozenset("</answer> </response> </output> </final_answer>".split())
_END: Final = _CHANNEL_END | frozenset(
    [
        *"<|end_of_solution|> <|end_response|> <|im_end|> <|eot_id|> <|endoftext|> <|end_of_text|>".split(),
        "<end_of_turn>",
        *"</s> <|eom_id|>".split(),
        "<\uff5cend▁of▁sentence\uff5c>",
    ]
)
#: Marks before a turn of the model, which stand before no reply, and marks before any turn: behind the mark at the end
#: of one they begin a turn that somebody else has not said yet.
_HEADS: Final = frozenset(
    [
        *"<|assistant|> <start_of_turn>model <|start_header_id|>assistant<|end_header_id|>".split(),
        "<|im_start|>assistant",
    ]
)
_TURNS: Final = _HEADS | frozenset(
    "<|im_start|> <start_of_turn> <|start_header_id|> <|user|> <\uff5cuser\uff5c> [inst]".split()
)
_STRUCK, _STRUCK_END = "<s>", "</s>"
#: A name of the speaker before a reply, as templates have it, and the beginnings of those.
_LABEL: Final = re.compile(r"assistant(?::|\n\n)\s*", re.IGNORECASE)
_LABELS: Final = ("assistant:", "assistant\n\n")
#: Words with which a reply begins to think, and those that end it: marks that lost their signs, and plain sentences.
_WORDS: Final = (
    (re.compile(r"analysis(?=[A-Z*])"), "analysis", "assistantfinal"),
    (re.compile(r"Here is my thought process:"), "Here is my thought process:", "here is my response:"),
)
_SPOKEN_OF: Final = _OPENING | _CLOSING | _CHANNEL | _FRAME | _FRAME_END | _END | _TURNS


_UNFINISHED: Final = frozenset(mark[:end] for mark in _SPOKEN_OF for end in range(1, len(mark)))
_MARK: Final = re.compile("|".join(map(re.escape, sorted(_SPOKEN_OF, key=len, reverse=True))), re.IGNORECASE)
_SIGN: Final = re.compile(r"[<\[◁]")
#: Escaped signs of marks, as JSON may have them.
_ESCAPED: Final = re.compile(r"\\u(?:003c|25c1)|<\\/", re.IGNORECASE)
_FENCE: Final = re.compile(r"\s{0,3}(?:```|~~~)")
_QUOTES: Final = frozenset("`'\"“”‘’«»„(（「『")
_SENTENCE_END: Final = re.compile(r"[.!?…:。！？：]['\"”’»)*_]*\s*\Z")


class ReplyParts(NamedTuple):
    """The parts of a piece of a reply; `turned`: all that was taken for said before it was thought."""

    said: str = ""
    thought: str = ""
    turned: bool = False


class ThoughtFilter:
    """Hears a reply piece by piece and parts it; the same parts come out wherever the pieces begin and end.

    The possible beginning of a mark is kept back until more is heard. JSON, which a `structured` reply is, is said
    as it is: see `part_values`.
    """

    __slots__ = (
        "_before", "_closers", "_ended", "_fenced", "_framed", "_has_said", "_is_over", "_line", "_out", "_paired",
        "_rest", "_structured", "_tail", "_thinks", "_thought", "_verbatim",
    )  # fmt: skip

    def __init__(self, *, structured: bool = False) -> None:
        self._structured = structured
        self._rest, self._tail = "", ""  # not looked at yet; marks of an end, as long as nothing is said behind them
        self._closers = frozenset[str]()  # what ends the thought that is under way
        self._thinks = self._ended = self._verbatim = self._fenced = self._framed = False
        self._has_said = self._thought = self._paired = self._is_over = False
        self._line, self._before = "", ""  # the line that is being said, and the last sign that was thought
        self._out: list[str] = ["", "", ""]  # said, thought, and a sign that it turned

    def add(self, piece: str) -> ReplyParts:
        """Add a piece; return what can be told of the reply by now."""
        self._rest += piece
        return self._drain()

    def end(self) -> ReplyParts:
        """Return what was kept back, since the reply has ended."""
        self._ended = True
        return self._drain()

    def _drain(self) -> ReplyParts:
        while self._rest and not self._is_over and (self._think() if self._thinks else self._speak()):
            pass
        if self._is_over:
            self._ponder(len(self._rest))
        if self._ended and self._tail and not self._thinks:
            self._tail = ""
        said, thought, turned = self._out
        self._out = ["", "", ""]
        return ReplyParts(said, thought, bool(turned))

    def _think(self) -> bool:
        """Take a step within a thought; False: more has to be heard first."""
        mark, start = _first(self._rest, self._closers, ended=self._ended)
        if mark and (self._before + self._rest[:start])[-1:] in _QUOTES:
            self._ponder(start + len(mark))
        elif mark:
            self._ponder(start)
            is_channel = mark in _CHANNEL
            self._take(0 if is_channel else len(mark))
            self._thinks, self._paired, self._line, self._fenced = False, True, "", False
        else:
            self._ponder(start)
        return bool(mark)

    def _ponder(self, size: int) -> None:
        taken = self._take(size)
        self._out[1] += taken
        self._before = taken[-1:] or self._before

    def _take(self, size: int) -> str:
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken

    def _speak(self) -> bool:
        """Take a step in what is said; False: more has to be heard first."""
        if self._verbatim:
            return self._say(len(self._rest))
        blanks = len(self._rest) - len(self._rest.lstrip())
        if blanks and not self._has_said:
            if self._thought:
                self._ponder(blanks)
            else:
                self._out[0] += self._take(blanks)
            return True
        if blanks and self._tail:
            self._tail += self._take(blanks)
            return True
        if not self._has_said and (begun := self._begin()) is not None:
            return begun
        sign = _SIGN.search(self._rest)
        if sign is None or sign.start():
            return self._say(sign.start() if sign else len(self._rest))
        return self._weigh()

    def _begin(self) -> bool | None:
        """Take a reply's first words where they begin a thought; None where they do not, False: they may."""
        if self._structured and self._rest[0] in "{[" and not _is_begun(self._rest, _OPENING):
            self._verbatim = True
            return True
        if self._thought:
            return None
        if label := _LABEL.match(self._rest):
            if label.end() == len(self._rest) and not self._ended:
                return False
            self._take(label.end())
            return True
        if any(each.startswith(self._rest.lower()) for each in _LABELS) and not self._ended:
            return False
        for opening, plain, closing in _WORDS:
            if found := opening.match(self._rest):
                self._take(found.end())
                return self._open(frozenset({closing}))
            if plain.startswith(self._rest) and not self._ended:
                return False
        return None

    def _weigh(self) -> bool:
        """Take a mark, or the sign of one, that comes next; False: more has to be heard first."""
        found = _MARK.match(self._rest)
        if found is None:
            if _is_begun(self._rest, ()) and not self._ended:
                return False
            return self._say(1)
        if found.end() == len(self._rest) and not self._ended:
            return False
        mark, behind = found[0].lower(), self._rest[found.end() : found.end() + 1]
        act = self._act_on(mark, behind)
        return self._say(found.end()) if act is None else act(mark)

    def _act_on(self, mark: str, behind: str) -> Callable[[str], bool] | None:
        """Return what a mark does; None: it is said."""
        if self._is_code():
            return None
        alone = not self._line.strip()
        if mark in _OPENING and alone:
            return lambda mark: bool(self._take(len(mark))) and self._open(_CLOSING)
        if mark in _CHANNEL and (alone or not self._is_amid(behind)):
            return self._name_channel
        if mark in _CLOSING and not self._is_amid(behind):
            return self._turn
        if mark in _TURNS and self._tail:
            return self._end_turn
        if alone and not self._has_said and (mark in _HEADS or (mark in _FRAME and self._thought)):
            return self._drop_frame
        is_struck = mark == _STRUCK_END and _STRUCK in self._line.lower()
        is_end = mark in _END or (mark in _FRAME_END and self._framed)
        return self._keep_tail if is_end and not is_struck else None

    def _is_code(self) -> bool:
        return self._fenced or self._line.count("`") % 2 == 1 or self._line[-1:] in _QUOTES

    def _is_amid(self, behind: str) -> bool:
        """Test if a mark stands amid a sentence: a word and a blank before it, and more of the line behind it."""
        line = self._line
        follows = bool(line.strip()) and line[-1:].isspace() and not _SENTENCE_END.search(line)
        return follows and behind not in {"\n", "\r"}

    def _open(self, closers: frozenset[str]) -> bool:
        self._thinks, self._thought, self._closers, self._before = True, True, closers, ""
        return True

    def _name_channel(self, mark: str) -> bool:
        """Read the name of a channel: only in the last one is anything said."""
        header = _HEADER.match(self._rest)
        if header is None and len(self._rest) < _LONGEST_HEADER and not self._ended:
            return False
        named = self._take(header.end() if header else _LONGEST_HEADER).lower()
        self._thought = True
        is_aloud = _SAID_ALOUD in named or (mark == "<|start|>" and "<|channel|>" not in named)
        return is_aloud or self._open(_CHANNEL_END | _CHANNEL)

    def _turn(self, mark: str) -> bool:
        """Make a thought of all that was said before a mark without a first one; behind a pair, drop the mark."""
        self._take(len(mark))
        if self._has_said and not self._paired:
            self._out = ["", self._out[1] + self._out[0], "turned"]
            self._has_said = False
        self._thought, self._line, self._fenced = True, "", False
        return True

    def _drop_frame(self, mark: str) -> bool:
        self._take(len(mark))
        self._framed = True
        return True

    def _end_turn(self, _mark: str) -> bool:
        """End the reply: behind its end the model went on with the turn of somebody else, and answered that."""
        self._tail, self._is_over = "", True
        return False

    def _keep_tail(self, mark: str) -> bool:
        self._tail += self._take(len(mark))
        return True

    def _say(self, size: int) -> bool:
        """Write the next characters to what is said, behind those that were taken for the end."""
        text, self._tail = self._tail + self._take(size), ""
        self._out[0] += text
        self._has_said = self._has_said or not text.isspace()
        *lines, last = (self._line + text).split("\n")
        for line in lines:
            if _FENCE.match(line):
                self._fenced = not self._fenced
        self._line = last
        return True


def _first(text: str, marks: frozenset[str], *, ended: bool) -> tuple[str, int]:
    """Return the first mark and its place; "": there is none, and what begins there may become one."""
    low = text.lower() if text.isascii() else "".join(each.lower() if each.isascii() else each for each in text)
    found = min(((at, mark) for mark in marks if (at := low.find(mark)) >= 0), default=None)
    longest = max(map(len, marks))
    unfinished = len(text)
    if not ended:
        tails = range(max(0, len(text) - longest), len(text))
        unfinished = next((at for at in tails if any(mark.startswith(low[at:]) for mark in marks)), len(text))
    if found is not None and found[0] <= unfinished:
        return found[1], found[0]
    return "", unfinished


def _is_begun(text: str, marks: Iterable[str]) -> bool:
    """Test if a text may be the beginning of a mark, or begins with one of some."""
    low = text[:_LONGEST_HEADER].lower()
    return low in _UNFINISHED or any(low.startswith(mark) for mark in marks)


def part(text: str) -> ReplyParts:
    """Return the parts of a whole reply.

    >>> part("<think>Perhaps 9.</think> There are 41 sheep.")
    ReplyParts(said='There are 41 sheep.', thought='Perhaps 9. ', turned=False)
    """
    heard = ThoughtFilter()
    first, last = heard.add(text), heard.end()
    if last.turned:
        first = ReplyParts("", first.thought + first.said)
    return ReplyParts(first.said + last.said, first.thought + last.thought)


def part_values(text: str) -> ReplyParts:
    """Return a reply that is JSON without the thoughts in its texts; another one is said whole."""
    if not (_MARK.search(text) or _ESCAPED.search(text)):
        return ReplyParts(text)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return ReplyParts(text)
    thoughts: list[str] = []
    said = _without_thoughts(value, thoughts)
    return ReplyParts(json.dumps(said, ensure_ascii=False), "\n".join(thoughts)) if thoughts else ReplyParts(text)


def _without_thoughts(value: object, thoughts: list[str]) -> Any:
    if isinstance(value, dict):
        return {key: _without_thoughts(each, thoughts) for key, each in value.items()}
    if isinstance(value, list):
        return [_without_thoughts(each, thoughts) for each in value]
    if not isinstance(value, str):
        return value
    parted = part(value)
    if parted.said == value:
        return value
    thoughts.append(parted.thought.strip())
    return parted.said
