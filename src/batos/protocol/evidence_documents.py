"""The documents of the evidence of an answer, and of single calls: what was shown, read, or decided by a rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NotRequired, TypeAlias, TypedDict, final


class FocusSpan(TypedDict):
    """A span of a document that a call was shown, its place in characters."""

    document: int
    start: int
    length: int


class FocusDocument(TypedDict):
    """The spans that a call in lean form was shown of the evidence; `omitted` counts the other sentences."""

    path: str
    shown: list[FocusSpan]
    omitted: int


class RuleDocument(TypedDict):
    """A decision that a rule made in place of a model: `division`, `choice`, `weave`, `answer`, `reply`, `result`."""

    path: str
    decision: str
    why: str


class ToolCallDocument(TypedDict):
    """A call of a tool at `path`: so many texts came, or the failure."""

    path: str
    tool: str
    texts: int
    failure: str


class ToolTextDocument(TypedDict):
    """A text that a tool brought: its title and source, when it was read, its trust, and if it is only a hit."""

    title: str
    source: str
    at: str
    trust: str
    hit: bool


class ToolUseDocument(TypedDict):
    """A call of a tool for a question: the arguments, and those of them that a model wrote; `why` it was chosen.

    `failure` is "" where it brought texts or nothing. `again`: the result of an equal call before was taken.
    """

    path: str
    tool: str
    query: str
    arguments: dict[str, Any]
    why: str
    written: list[str]
    texts: list[ToolTextDocument]
    failure: str
    again: bool


class WantedCallDocument(TypedDict):
    """A call that a mission ends with, for who asked to make; `why` it was chosen, what a model has `written` of it."""

    tool: str
    arguments: dict[str, Any]
    why: str
    written: list[str]


class ToolProvenance(TypedDict, total=False):
    """The decisions of rules on the way to an answer, the calls of tools, and those that stand in its place.

    `about_tools` is the line before the answer where tools failed, or none was granted to who looks things up.
    """

    rules: list[RuleDocument]
    tools: list[ToolUseDocument]
    tool_calls: list[WantedCallDocument]
    about_tools: str


class SlotDocument(TypedDict):
    """A slot of a shared object that a method read."""

    oid: str
    slot: str


class WrittenSlot(SlotDocument):
    """A change of a slot: what it had before; where that is told, `value` and `trust` are what it has after it."""

    had: bool
    former: Any
    has: NotRequired[bool]
    value: NotRequired[Any]
    trust: NotRequired[str]


class CitationDocument(TypedDict):
    """A sentence of a document that carries one of an answer; `span` is its place in the file, on its `page` if it has
    pages.
    """

    document: int
    span: list[int]
    quote: str
    sentence: str
    score: float
    name: NotRequired[str]
    sha256: NotRequired[str]
    page: NotRequired[int]


class ComputedRow(TypedDict):
    """A row or sentence of a file that a result was computed from; `span` is its place in the file."""

    name: str
    sha256: str
    span: list[int]
    quote: str


class ComputedDocument(TypedDict):
    """A computation for a question: the `line` that a model was shown, the `lead` of an answer without the result.

    `of` is how many rows the result comes of, `rows` are the first of them.
    Without a `result` the names in `ambiguous` fit the question equally. Rows in `left_out` have no value.
    """

    question: str
    result: str
    line: str
    lead: str
    column: str
    ambiguous: list[str]
    of: int
    rows: list[ComputedRow]
    left_out: list[ComputedRow]


class SentenceDocument(TypedDict):
    """A sentence of an answer: its place there, whether evidence carries it, and the reason if none does."""

    span: list[int]
    state: str
    reason: NotRequired[str]


@final
class RecalledPassage(TypedDict):
    """A passage of a file that a model was shown, a memory with `why` it was found, its mark as `standing` and the path
    of its file as `source`. `left_out` has a phrase for each part of the file that could not be read.
    """

    document: int
    name: str
    sha256: str
    start: int
    length: int
    trust: str
    memory: NotRequired[str]
    chunk: NotRequired[int]
    why: NotRequired[str]
    standing: NotRequired[str]
    source: NotRequired[str]
    left_out: NotRequired[list[str]]


@final
class RecalledView(TypedDict):
    """A summary that stood for older turns: `turns` are the first and the last; at `undone` between them stood none."""

    turns: list[int]
    by_model: bool
    trust: str
    undone: NotRequired[list[int]]


@final
class RecalledTurn(TypedDict):
    """An earlier turn that a model was shown word for word."""

    mission: str
    turn: int
    trust: str


Recalled: TypeAlias = RecalledPassage | RecalledView | RecalledTurn


class PromptPart(TypedDict):
    """The keys that only some calls have: the method that is written, as RECEIVER.SELECTOR, or what is embedded.

    `outside` is a call to the world: its kind and what was asked; its response has a `value`, or an `error`.
    """

    outside: NotRequired[dict[str, Any]]
    method: NotRequired[str]
    input: NotRequired[Any]
    erased: NotRequired[bool]


class PromptDocument(PromptPart):
    """A call with its exact prompt; an embedding has an `input`, a generation's a `method`, an `erased` no words."""

    path: str
    model: str
    digest: str
    state: str
    messages: list[dict[str, Any]]
    format: Any
    options: dict[str, Any] | None
    response: Mapping[str, Any] | None
    tokens: dict[str, int]
    started: str
    ended: str | None
    key: str
