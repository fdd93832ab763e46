"""Turn texts into token ids and back with the vocabulary in a model's weights."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

from ollama_emulator.library.cards import Card
from ollama_emulator.tokenizers import bytepairs, sentencepiece, wordpiece
from ollama_emulator.tokenizers.pieces import Lexicon

BYTES_A_TOKEN = 4
_HELD = 8 << 20  # characters of texts whose ids are cached, for each vocabulary
_MARKED = re.compile(r"<\|[^<>|\s]{1,40}\|>|</?s>|<(?:start|end)_of_turn>")


class Splitter(Protocol):
    """A tokenizer for texts without special tokens."""

    def ids(self, text: str, *, after_special: bool) -> Sequence[int]:
        """Return the token ids of a text; `after_special` says that it follows a special token or begins the prompt."""
        ...


class Vocabulary(Protocol):
    """A model's tokenizer, as the emulator uses it to count and to answer."""

    @property
    def adds_bos(self) -> bool:
        """Return whether a whole text is encoded with the bos token in front."""

    @property
    def adds_eos(self) -> bool:
        """Return whether a whole text is encoded with the eos token at its end."""

    @property
    def marks(self) -> tuple[int, int]:
        """Return the ids of the bos and the eos token."""
        ...

    @property
    def size(self) -> int | None:
        """Return the number of tokens; None if every number counts as an id."""
        ...

    def encode(self, text: str, *, whole: bool = False) -> Sequence[int]:
        """Return the token ids of a text; `whole` adds the bos and eos tokens that a prompt gets."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of token ids, with special tokens by their names."""
        ...


@dataclass(slots=True)
class TokenEstimate:
    """An estimate for models without weights: a token for every four bytes and for each mark of a chat format."""

    adds_bos: bool = True
    adds_eos: bool = False
    marks: tuple[int, int] = (0, 0)
    size: None = None

    def encode(self, text: str, *, whole: bool = False) -> Sequence[int]:
        """Return invented ids, as many as the text is estimated to have tokens."""
        marks = len(_MARKED.findall(text)) if "<" in text else 0
        plain = _MARKED.sub("", text) if marks else text
        size = -(-len(plain.encode("utf-8", "surrogatepass")) // BYTES_A_TOKEN)
        return range(1, 1 + marks + size + (self.adds_bos + self.adds_eos if whole else 0))

    def decode(self, ids: Sequence[int]) -> str:
        """Return four letters for each id, since the ids are invented."""
        return "text" * len(ids)


@dataclass(slots=True)
class Real:
    """The vocabulary of a GGUF file. The ids of recent texts are cached, up to `_HELD` characters of text.

    `trained` is the tokenizer that the weights were trained with, where llama.cpp has another.
    """

    lexicon: Lexicon
    splitter: Splitter
    adds_bos: bool
    adds_eos: bool
    trained: Splitter | None = None
    _known: OrderedDict[str, tuple[int, ...]] = field(default_factory=OrderedDict)
    _size: int = 0

    @property
    def marks(self) -> tuple[int, int]:
        """Return the ids of the bos and the eos token."""
        return self.lexicon.bos, self.lexicon.eos

    @property
    def size(self) -> int:
        """Return the number of tokens."""
        return len(self.lexicon.pieces)

    def encode(self, text: str, *, whole: bool = False) -> Sequence[int]:
        """Return the token ids of a text, in which names of special tokens count as such."""
        ids = self._known.get(text)
        if ids is None:
            ids = tuple(self._ids(text, self.splitter))
            self._keep(text, ids)
        else:
            self._known.move_to_end(text)
        if not whole:
            return ids
        return (*self._front, *ids, *self._end)

    def vector_ids(self, text: str, window: int) -> Sequence[int]:
        """Return the ids that a text's vector is made of, at most `window`: by the tokenizer of the training."""
        ids = self.encode(text) if self.trained is None else self._ids(text, self.trained)
        room = window - len(self._front) - len(self._end)
        return (*self._front, *ids[:room], *self._end)

    @property
    def _front(self) -> tuple[int, ...]:
        return (self.lexicon.bos,) if self.adds_bos else ()

    @property
    def _end(self) -> tuple[int, ...]:
        return (self.lexicon.eos,) if self.adds_eos else ()

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of token ids; bytes that are no UTF-8 become replacement characters."""
        return b"".join(self.lexicon.token_bytes(one) for one in ids).decode("utf-8", "replace")

    def _ids(self, text: str, splitter: Splitter) -> list[int]:
        """Return the ids of a text, with special tokens where the text names them."""
        found: list[int] = []
        special = True
        for part in self.lexicon.split(text):
            if isinstance(part, int):
                found.append(part)
                special = True
            else:
                found.extend(splitter.ids(part, after_special=special))
                special = False
        return found

    def _keep(self, text: str, ids: tuple[int, ...]) -> None:
        """Remember the ids of a text, and forget the oldest ones beyond the bound."""
        self._known[text] = ids
        self._size += len(text)
        while self._size > _HELD and len(self._known) > 1:
            old, _ = self._known.popitem(last=False)
            self._size -= len(old)


@dataclass(frozen=True, slots=True)
class _Source:
    """The metadata that a vocabulary is built from, as a key of the cache: equal for equal digests."""

    digest: str
    info: Mapping[str, Any] = field(compare=False)


def vocabulary_of(digest: str, card: Card) -> Vocabulary:
    """Return the vocabulary of the weights with a digest; `card` has their metadata. Each is built once."""
    return _build(_Source(digest, card.info))


@lru_cache(maxsize=16)
def _build(source: _Source) -> Vocabulary:
    """Build the vocabulary of some weights; one of an unknown kind is guessed."""
    info = source.info
    pieces = info.get("tokenizer.ggml.tokens")
    kind = str(info.get("tokenizer.ggml.model", ""))
    if not isinstance(pieces, list) or not pieces or kind not in ("llama", "bert", "gpt2"):
        return TokenEstimate(adds_eos=any(key.endswith(".pooling_type") for key in info))
    if kind == "bert":
        lexicon = Lexicon.read(wordpiece.frame_header(info), spaced="▁")
        trained = wordpiece.WordPiece.trained_tokenizer(lexicon)
        return Real(lexicon, wordpiece.WordPiece(lexicon), adds_bos=True, adds_eos=True, trained=trained)
    lexicon = Lexicon.read(info, spaced="▁" if kind != "gpt2" else "")
    if kind == "gpt2":
        lexicon.spell(bytepairs.bytes_of_piece)
        splitter: Splitter = bytepairs.BytePairs.read(lexicon, info)
        adds = bool(info.get("tokenizer.ggml.add_bos_token", bytepairs.starts(info)))
    else:
        splitter = sentencepiece.SentencePiece.read(lexicon, info)
        adds = bool(info.get("tokenizer.ggml.add_bos_token", True))
    return Real(lexicon, splitter, adds, bool(info.get("tokenizer.ggml.add_eos_token", False)))


def token_text(vocabulary: Vocabulary, key: str, info: Mapping[str, Any]) -> str:
    """Return the name of the token `key`, bos or eos, for a chat template; "" if the header names none."""
    if not isinstance(vocabulary, Real):
        return ""
    one = vocabulary.lexicon.bos if key == "bos" else vocabulary.lexicon.eos
    return vocabulary.lexicon.pieces[one] if f"tokenizer.ggml.{key}_token_id" in info else ""
