"""Read from a prompt the parts that answers are made of: evidence, the question, sentences and words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from math import log, sqrt
from typing import Any

from ollama_emulator.remembering import short

_BLOCK = re.compile(r'<document id="(\d{1,9})"[^>\n]*?digest="([0-9A-Za-z]+)"[^>\n]*>(.*?)</document \2>', re.DOTALL)
_MARKED = re.compile(r"<(question|query|sub_query|task)\b[^>\n]*>(.*?)</\1>", re.DOTALL)
_LABELLED = re.compile(
    r"^(?:(?:the |your |this is the )?(?:message|question|query|request|task|problem|sub-?\w*|part\b)[^\n:]{0,40}"
    r"|(?:\w+, )?this is your \w+ so far):[ \t]*\n(.+?)(?:\n[ \t]*\n|\Z)",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
# parts of BAT OS' prompts that are neither question nor evidence: the form of the reply, the time, an earlier failure,
# and the fence around an answer
_FRAME = re.compile(
    r"^Reply with:[ \t]*$(?:\n`[^\n]*)*|^Asked at \d{4}-\d\d-\d\dT[\d:.]+Z\.[ \t]*$"
    r"|^An earlier attempt at this failed[^\n]*\n<failure digest=\"([0-9a-f]{8})\">\n[^\n]*\n</failure \1>$"
    r"|^<answer digest=\"[0-9a-f]{8}\">\n|\n</answer [0-9a-f]{8}>$",
    re.MULTILINE,
)
# the lean form of BAT OS' prompts: sentences one a line, then the question
_LEAN = re.compile(r"\AText:\n((?:[^\n]+\n)*)\n(Question: )?")
_CLAUSE = re.compile(r"[?;]\s+|,\s+(?:and|but|or)?\s*(?=(?:what|how|who|whom|when|where|why|which)\b)", re.IGNORECASE)
_SENTENCE = re.compile(
    r"""[^\s].*?(?:(?<!\bMr)(?<!\bDr)(?<!\bSt)(?<!\bMrs)[.!?]["'”’»)\]]*(?=\s)|[。！？][」』”’）]*|$)""", re.MULTILINE
)
# each character of a script without blanks is a word
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]|[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]+")
_ENDINGS = ("ing", "ed", "es", "s", "e")
_PICKED = 6  # first sentences, each chosen for terms that those before it lack
_COMMON = frozenset(
    "a about all an and are as at be been but by can could did do does for from had has have how i if in into is it "
    "its me my not now of on one only or our should so than that the their them then there these they this to was we "
    "were what when where which who why will with would you your".split()
)
_LAST = 3  # messages in which the question is looked for
_LONGEST = 4000  # longest sentence, in characters


def words(text: str) -> list[str]:
    """Return the words of a text in small letters, without common English ones."""
    return [word for word in map(str.lower, _WORD.findall(text)) if word not in _COMMON]


def terms(text: str) -> list[str]:
    """Return the words of a text without common ones and without endings, to compare texts by."""
    return [_stem(word) for word in words(text)]


@short(1 << 14, 1 << 12)
def _terms_of(span: str) -> frozenset[str]:
    return frozenset(terms(span))


@short(1 << 16, 256)
def _stem(word: str) -> str:
    ending = next((end for end in _ENDINGS if word.endswith(end) and len(word) - len(end) > 2), "")
    return word.removesuffix(ending)


@dataclass(frozen=True, slots=True, eq=False)
class Sentence:
    """A sentence of the prompt, verbatim; `source` is the number of its evidence block, 0 for the conversation."""

    text: str
    source: int
    terms: frozenset[str]


@short(512, 1 << 16)
def sentences(text: str, source: int) -> tuple[Sentence, ...]:
    """Return the sentences of a text in order; none spans two lines. `source` is the number of its evidence block."""
    return tuple(Sentence(span, source, found) for line in text.split("\n") for span, found in _spans(line))


@short(1 << 13, 1 << 13)
def _spans(line: str) -> tuple[tuple[str, frozenset[str]], ...]:
    """Return the sentences of a line with their terms. Cached, since prompts share most of their lines."""
    spans = [match[0].strip()[:_LONGEST] for match in _SENTENCE.finditer(line)]
    return tuple((span, _terms_of(span)) for span in spans if any(map(str.isalnum, span)))


@short(64, 1 << 16)
def _parts(content: str) -> tuple[tuple[tuple[int, str], ...], str]:
    """Split a message into its evidence blocks (number and text) and the rest."""
    content = _FRAME.sub("", content)
    lean = _LEAN.match(content)
    if lean:
        label = "Question:\n" if lean[2] else ""
        return ((1, lean[1]),), f"{label}{content[lean.end() :]}"
    if "<document " not in content:
        return (), content
    blocks = tuple((int(match[1]), match[3]) for match in _BLOCK.finditer(content))
    return blocks, _BLOCK.sub("\n", content)


@dataclass(frozen=True)
class Sources:
    """The parts of a prompt that an answer may use; `salt` depends on model, messages, schema and seed."""

    evidence: tuple[Sentence, ...]
    spoken: tuple[Sentence, ...]
    question: str
    blocks: tuple[int, ...]
    salt: bytes

    def number(self, *about: object) -> int:
        """Return a number below 2**48, always the same for the same prompt and the same `about`."""
        text = "\x1f".join(map(str, about)).encode("utf-8", "surrogatepass")
        return int.from_bytes(blake2b(text, key=self.salt, digest_size=6).digest(), "big")

    @cached_property
    def ranking(self) -> tuple[Sentence, ...]:
        """Return the sentences of the evidence, or else of the conversation, nearest to the question first."""
        return _rank(self.evidence or self.spoken, self.question)

    @cached_property
    def question_line(self) -> str:
        """Return the question on one line."""
        return " ".join(self.question.split())


@short(512, 1 << 12)
def _rank(pool: tuple[Sentence, ...], question: str) -> tuple[Sentence, ...]:
    """Rank sentences by the terms that they share with a question, rare terms counting more.

    The first `_PICKED` are each chosen for terms that the ones before them lack.
    """
    wanted = frozenset(terms(question))
    spread = Counter(term for sentence in pool for term in sentence.terms)
    weights = {term: log(1 + len(pool) / spread[term]) for term in wanted if term in spread}

    def score(sentence: Sentence) -> float:
        return sum(weights[term] for term in sentence.terms & weights.keys()) / sqrt(6 + len(sentence.terms))

    left = sorted(pool, key=score, reverse=True)
    picked: list[Sentence] = []
    while left and len(picked) < _PICKED:
        best = max(left, key=score)
        picked.append(best)
        left.remove(best)
        for term in best.terms & weights.keys():
            weights[term] *= 0.1
    return (*picked, *left)


def gather(messages: Sequence[Mapping[str, Any]], salt: Iterable[object]) -> Sources:
    """Read a conversation: evidence from all messages, the question from one of the last.

    The values of `salt` vary the answer.
    """
    evidence: list[Sentence] = []
    spoken: list[Sentence] = []
    blocks: dict[int, None] = {}
    rest = ""
    for message in messages:
        found, rest = _parts(str(message.get("content") or ""))
        for number, text in found:
            blocks[number] = None
            evidence.extend(sentences(text, number))
        if message.get("role") != "system":
            spoken.extend(sentences(rest, 0))
    texts = [_parts(str(message.get("content") or ""))[1] for message in messages[-_LAST:]]
    question, at = _question(texts)
    key = blake2b(digest_size=32)
    for part in salt:
        key.update(repr(part).encode("utf-8", "surrogatepass") + b"\x1e")
    for message in messages:
        key.update(str(message.get("content")).encode("utf-8", "surrogatepass") + b"\x1e")
    before = messages[: max(len(messages) - len(texts), 0) + at]
    own = _earlier_statements(before, question) or sentences(question, 0)
    return Sources(tuple(evidence), own or tuple(spoken), question, tuple(blocks), key.digest())


def _earlier_statements(messages: Sequence[Mapping[str, Any]], question: str) -> tuple[Sentence, ...]:
    """Return the user's earlier statements that share a term with a question, the newest first."""
    if not question.rstrip().endswith("?"):
        return ()
    wanted, found = frozenset(terms(question)), list[Sentence]()
    for message in reversed(messages):
        if message.get("role") == "user":
            said = sentences(_parts(str(message.get("content") or ""))[1], 0)
            found += (one for one in said if one.terms & wanted and not one.text.endswith("?"))
    return tuple(found)


def _question(texts: Sequence[str]) -> tuple[str, int]:
    """Return the question and the index of its text: marked or labelled in one of the texts, else from the last.

    A label is a line such as "The message:" or "Your part of the look-up:"; the question follows it, up to the next
    blank line. Without a mark or label it is the last sentence that ends with a question mark, else the last paragraph
    of some words.
    """
    last = len(texts) - 1
    for at in range(last, -1, -1):
        marked = _MARKED.findall(texts[at])
        if marked:
            return str(marked[-1][1]).strip(), at
        labelled = _LABELLED.search(texts[at])
        if labelled:
            return labelled[1].strip(), at
    text = texts[-1] if texts else ""
    asking = [one.text for one in sentences(text, 0) if one.text.rstrip("\"')]").endswith("?")]
    if asking:
        return asking[-1], last
    paragraphs = [part.strip() for part in text.split("\n\n") if len(words(part)) > 2]
    return (paragraphs[-1] if paragraphs else text.strip()), last


def clauses(question: str) -> list[str]:
    """Split a question into the questions that it is made of; a simple one stays whole."""
    found = [part.strip().rstrip("?") for part in _CLAUSE.split(question) if len(words(part)) > 1]
    return [f"{part}?" if question.rstrip().endswith("?") else part for part in found]


def cut(text: str, longest: int | None) -> str:
    """Return the first words of a text that fit into `longest` characters; None sets no limit."""
    if longest is None or len(text) <= longest:
        return text
    head = text[:longest]
    if longest and not text[longest].isspace() and " " in head:
        head = head[: head.rindex(" ")]
    return head.rstrip()
