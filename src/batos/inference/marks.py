"""Breaks up the marks of chat templates and vocabularies in a prompt, so that a model reads them as plain text.

The daemon renders a whole chat to one string and reads every control token in it as one, whoever wrote it: a document
that holds `<|im_end|>` ends its message. A blank within the mark makes it plain text: to the model it means nothing,
and a person sees what stood there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

#: The token types of steering tokens: unknown and control; user-defined ones only if a template writes them.
_UNKNOWN, _CONTROL, _USER_DEFINED = 2, 3, 4
#: Most marks that are kept of one model beside the usual ones, and the longest.
MOST, LONGEST = 4_096, 64

_TAGS: Final = (
    "s|bos|eos|pad|unk|mask|sep|cls|sop|eop|eod|eot|eom|im_start|im_end|endoftext|end_of_text|begin_of_text"
    "|(?:start|end|begin)_of_[a-z_]{1,24}|think|thinking|thought|reasoning|tools?|tool_[a-z]{1,16}|function_[a-z]{1,16}"
    "|fim[_-](?:prefix|middle|suffix|pad)|(?:pre|mid|suf)_token|repo_name|reponame|file_sep|filename|gh_stars"
    "|issue_(?:start|comment|closed)|jupyter_[a-z_]{1,24}|empty_output|commit_(?:before|msg|after)|image|image_soft_token"
    "|video|audio|(?:unused|reserved|extra_id|special|SPECIAL|custom|mask|control)_?(?:token)?_?\\d{1,5}|sentinel:\\d{1,5}"
    "|[A-Z]{2,24}(?:_[A-Z]{1,24}){1,4}"
)
_NAMES: Final = (
    "INST|SYS|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_[A-Z]{1,16}|MODEL_SETTINGS|ARGS|CALL_ID|THINK|IMG|IMG_BREAK|IMG_END"
    "|BEGIN_AUDIO|AUDIO|TRANSCRIBE|PREFIX|MIDDLE|SUFFIX|gMASK|sMASK|MASK|PAD|UNK|CLS|SEP|BOS|EOS|control_\\d{1,5}|unused\\d{1,5}"
)
#: The marks of the formats that models are trained on; each is broken behind its first sign. Brackets come first: a
#: mark within them ends where a blank stands. Each pattern begins with a plain sign, by which a text is searched first.
_USUAL: Final = (
    ("[", re.compile(rf"\[(?=\|[^\s|]{{1,40}}\|\]|/?(?:{_NAMES})\])")),
    ("<", re.compile(rf"<(?=[|｜]\S|<?/?(?:{_TAGS}|SYS)>)")),
)
_BEHIND: Final = r"\g<0> "
_TAGGED: Final = re.compile(r"<[^\s<>{}]{1,62}>|(?<![\w)\]])\[[/|]?[A-Za-z_][^\s\[\]{}'\":]{0,60}\]")
_LABEL: Final = re.compile(r"#{2,}[ ]?[^\W\d_]{1,30}:|\b[A-Z][A-Za-z]{0,30}:(?=\s|$)")
_ACTION: Final = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)


def break_marks(text: str, own: Sequence[str] = ()) -> str:
    """Break every mark in a text: the usual ones and the model's `own`.

    >>> broken("Page 1. <|im_end|> [INST] a < b [1] <b>")
    'Page 1. < |im_end|> [ INST] a < b [1] <b>'
    """
    found = text
    for sign, pattern in _USUAL:
        if sign in found:
            found = pattern.sub(_BEHIND, found)
    for pattern, place in _patterns(tuple(own)):
        found = pattern.sub(place, found)
    return found


def messages(told: Iterable[Mapping[str, str]], own: Sequence[str] = ()) -> tuple[dict[str, str], ...]:
    """Break every mark in the content of these messages."""
    return tuple({**each, "content": break_marks(each["content"], own)} for each in told)


def marks_of(template: str, info: Mapping[str, object]) -> tuple[str, ...]:
    """List what a model has beside the usual marks: by its chat templates, and by the vocabulary in its metadata."""
    written = "\n".join((template, str(info.get("tokenizer.chat_template") or "")))
    found = dict.fromkeys((*_TAGGED.findall(written), *_LABEL.findall(_ACTION.sub("\n", written))))
    pieces, kinds = info.get("tokenizer.ggml.tokens"), info.get("tokenizer.ggml.token_type")
    if isinstance(pieces, list) and isinstance(kinds, list):
        for piece, kind in zip(pieces, kinds, strict=False):
            steers = kind in (_UNKNOWN, _CONTROL) or (kind == _USER_DEFINED and piece in written)
            if steers and isinstance(piece, str):
                found.setdefault(piece)
    return tuple(mark for mark in found if _is_breakable(mark))[:MOST]


def _is_breakable(mark: str) -> bool:
    """Test if a mark is one that can be broken, is no word that people write, and is not broken anyway."""
    plain = mark.isalnum() or not mark.isprintable() or any(map(str.isspace, mark.rstrip()))
    return 1 < len(mark) <= LONGEST and break_marks(mark) == mark and (mark.startswith("#") or not plain)


@lru_cache(maxsize=64)
def _patterns(own: tuple[str, ...]) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Compile what finds a model's own marks, and what is put there: labels such as `User:` break before the colon."""
    labels = [mark for mark in own if mark.endswith(":")]
    heads: dict[str, list[str]] = {}
    for mark in own:
        if not mark.endswith(":"):
            heads.setdefault(mark[0], []).append(re.escape(mark[1:]))
    found = []
    if labels:
        found.append((re.compile(":(?:" + "|".join(f"(?<={re.escape(mark)})" for mark in labels) + ")"), " :"))
    if heads:
        places = "|".join(f"(?<={re.escape(head)})(?={'|'.join(rest)})" for head, rest in heads.items())
        found.append((re.compile(f"[{re.escape(''.join(heads))}](?:{places})"), _BEHIND))
    return tuple(found)
