"""Memory of a card: the need of models in rows (weights, cache, adapter, buffers), and the largest window that fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

from batos.protocol.server_documents import BudgetDocument, BudgetRowDocument, PlannedRunnerDocument

GIB: Final = 1 << 30

#: Buffers beside weights and cache, in bytes.
COMPUTE: Final = GIB // 2
#: Bytes of a card that the runner leaves free, and that a desktop takes.
FIT_MARGIN: Final = GIB
DESKTOP: Final = GIB // 2

#: The window grows in steps of so many tokens.
STEP: Final = 256

#: Bytes of one number of the cache, by the daemon's OLLAMA_KV_CACHE_TYPE.
ELEMENT: Final[Mapping[str, Fraction]] = {"f16": Fraction(2), "q8_0": Fraction(34, 32), "q4_0": Fraction(18, 32)}

#: Architectures that the daemon serves one request at a time, by how their names begin.
_ALONE = ("mllama", "qwen3vl", "qwen35", "qwen3next", "lfm2", "nemotron_h")


@dataclass(frozen=True, slots=True)
class Cache:
    """The growth of a model's cache: `numbers` for each token, up to `trained` tokens (None: unknown).

    `bound` says why the cache may be smaller than counted, "" if the count is exact. `serves_one` means that the model
    serves one request at a time. `layers` is the number of the model's layers.
    """

    numbers: int
    trained: int | None = None
    bound: str = ""
    serves_one: bool = False
    layers: int = 0

    def window(self, num_ctx: int) -> int:
        """Return the window in tokens that is really used: rounded up to a multiple of 256, at most the
        trained length.
        """
        rounded = max(1, -(-num_ctx // STEP)) * STEP
        return rounded if self.trained is None else min(rounded, self.trained)

    @property
    def longest(self) -> int | None:
        """Return the largest useful num_ctx, a multiple of 256; None if the trained length is unknown."""
        return None if self.trained is None else -(-self.trained // STEP) * STEP

    def parallel(self, asked: int) -> int:
        """Return the number of requests that share the runner."""
        return 1 if self.serves_one else asked

    def size(self, num_ctx: int, parallel: int, kv_type: str) -> int:
        """Return the size of the cache in bytes."""
        exact = self.window(num_ctx) * self.parallel(parallel) * self.numbers * ELEMENT[kv_type]
        return -(-exact.numerator // exact.denominator)


#: More layers than any model has: who says more is not believed.
_MOST_LAYERS = 1 << 14


def cache_of(info: Mapping[str, object]) -> Cache | None:
    """Compute the cache from a model's metadata (`show`'s model_info); return None if the metadata does not tell.

    A value that is null stands for an array with a number for each layer, which only a verbose `show` contains.
    """
    architecture = info.get("general.architecture")

    def value_of(key: str) -> Any:
        return info.get(f"{architecture}.{key}")

    layers, heads = value_of("block_count"), value_of("attention.head_count")
    cached = _by_layer(heads if f"{architecture}.attention.head_count_kv" not in info else
                       value_of("attention.head_count_kv"), layers)  # fmt: skip
    row = _row(
        value_of("attention.key_length"), value_of("attention.value_length"), value_of("embedding_length"), heads
    )
    if not cached or row is None:
        return None
    trained = value_of("context_length")
    alone = value_of("pooling_type") is not None or str(architecture).startswith(_ALONE)
    bound = _bound_note(info, str(architecture), cached)
    return Cache(sum(cached) * row, trained if _is_positive(trained) else None, bound, alone, len(cached))


def lacks_arrays(info: Mapping[str, object]) -> bool:
    """Test if the metadata leaves out an array that the cache's size depends on."""
    architecture = info.get("general.architecture")
    keys = (f"{architecture}.attention.{name}" for name in ("head_count_kv", "head_count"))
    return any(key in info and info[key] is None for key in keys)


def _is_positive(value: object) -> bool:
    return type(value) is int and value > 0


def _by_layer(heads: Any, layers: Any) -> tuple[int, ...]:
    """Return the number of cached heads of each layer; empty if unknown."""
    if isinstance(heads, list):
        return tuple(heads) if heads and all(type(each) is int and each >= 0 for each in heads) else ()
    return (heads,) * layers if _is_positive(heads) and _is_positive(layers) and layers <= _MOST_LAYERS else ()


def _row(key: Any, value: Any, width: Any, heads: Any) -> int | None:
    """Return how many numbers a head keeps for a token, key and value together; None if unknown."""
    most = max(heads, default=0) if isinstance(heads, list) else heads
    side = width // most if _is_positive(width) and _is_positive(most) else None
    sides = [given if _is_positive(given) else side for given in (key, value)]
    return None if None in sides else sum(each for each in sides if each is not None)


def _bound_note(info: Mapping[str, object], architecture: str, cached: Sequence[int]) -> str:
    if 0 in cached or any(key.startswith(f"{architecture}.ssm.") for key in info):
        return "at most: some of its layers keep no cache"
    if _is_positive(info.get(f"{architecture}.attention.sliding_window")):
        return "at most: some of its layers keep a sliding window only"
    return ""


@dataclass(frozen=True, slots=True)
class Terms:
    """The memory to be divided, in bytes, and how the daemon keeps its cache."""

    usable: int
    reserve: int = 0
    parallel: int = 1
    kv_type: str = "f16"
    #: The origin of `usable`, in words for people.
    found: str = ""


def usable_of(card: int) -> int:
    """Return the bytes of a card that models can use: its memory less the runner's margin and the desktop."""
    return max(0, card - FIT_MARGIN - DESKTOP)


@dataclass(frozen=True, slots=True)
class Resident:
    """A runner to be planned: a model with its window and adapter, and its users. Sizes in bytes, None if unknown.

    `blob` is the base's: runners with the same blob are never in memory together. `share` is the part that lies on the
    card. Adapters are told apart by their digest.
    """

    model: str
    uses: tuple[str, ...]
    num_ctx: int
    weights: int | None = None
    cache: Cache | None = None
    blob: str = ""
    adapter: int = 0
    adapter_digest: str = ""
    share: Fraction = Fraction(1)
    #: The reason why a size is unknown.
    unknown: str = "unknown until pulled"


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """A line of a table; `size` in bytes, None if unknown."""

    what: str
    size: int | None
    note: str = ""

    def as_dict(self) -> BudgetRowDocument:
        """Return the row as plain data."""
        return {"what": self.what, "bytes": self.size, "note": self.note}


@dataclass(frozen=True, slots=True)
class PlannedRunner:
    """A runner's rows under some terms."""

    resident: Resident
    terms: Terms
    rows: tuple[BudgetRow, ...]

    @property
    def size(self) -> int:
        """Return the sum of the rows in bytes, without the unknown ones."""
        return sum(row.size or 0 for row in self.rows)

    @property
    def is_known(self) -> bool:
        """Test if no row is unknown."""
        return all(row.size is not None for row in self.rows)

    @property
    def fits(self) -> bool | None:
        """Test if the runner fits by itself beside other programs; None if that is unknown."""
        if self.size + self.terms.reserve > self.terms.usable:
            return not self.resident.share
        return True if self.is_known or not self.resident.share else None

    @property
    def largest(self) -> int | None:
        """Return the largest num_ctx that fits, a multiple of 256; 0 if none fits, None if that is unknown."""
        resident, cache = self.resident, self.resident.cache
        if resident.weights is None or cache is None:
            return None
        low, high = 0, -(-(cache.longest or resident.num_ctx) // STEP)
        while low < high:
            middle = (low + high + 1) // 2
            (trial,) = rows([replace(resident, num_ctx=middle * STEP)], self.terms).runners
            low, high = (middle, high) if trial.fits else (low, middle - 1)
        return low * STEP

    def as_dict(self) -> PlannedRunnerDocument:
        """Return the runner as plain data."""
        resident = self.resident
        return {
            "model": resident.model,
            "uses": list(resident.uses),
            "on_cpu": not resident.share,
            "num_ctx": resident.num_ctx,
            "window": resident.cache.window(resident.num_ctx) if resident.cache else None,
            "rows": [row.as_dict() for row in self.rows],
            "bytes": self.size,
            "fits": self.fits,
            "largest_num_ctx": self.largest,
        }


@dataclass(frozen=True, slots=True)
class BudgetTable:
    """The runners of a plan against what is usable. The largest must fit; those that do not fit together take turns."""

    runners: tuple[PlannedRunner, ...]
    terms: Terms

    @property
    def needed_bytes(self) -> int:
        """Return the bytes of the largest runner and of other programs."""
        return max((runner.size for runner in self.runners), default=0) + self.terms.reserve

    @property
    def together(self) -> int:
        """Return the bytes of all runners that can be in memory at the same time, and of other programs."""
        largest: dict[str, int] = {}
        for number, runner in enumerate(self.runners):
            key = runner.resident.blob or str(number)
            largest[key] = max(largest.get(key, 0), runner.size)
        return sum(largest.values()) + self.terms.reserve

    @property
    def fits(self) -> bool | None:
        """Test if every runner fits by itself; None if that is unknown."""
        found = [runner.fits for runner in self.runners] + [self.terms.reserve <= self.terms.usable]
        return False if False in found else None if None in found else True

    @property
    def largest(self) -> int | None:
        """Return the largest num_ctx that suits the runners that do not fit now, or all of them; 0 if none, None if
        unknown.
        """
        on_card = [runner for runner in self.runners if runner.resident.share]
        over = [runner for runner in on_card if runner.fits is False]
        known = [found for runner in over or on_card if (found := runner.largest) is not None]
        return min(known) if known and (over or len(known) == len(on_card)) else None

    def as_dict(self) -> BudgetDocument:
        """Return the table as plain data."""
        return {
            "runners": [runner.as_dict() for runner in self.runners],
            "reserve": self.terms.reserve,
            "needed": self.needed_bytes,
            "together": self.together,
            "usable": self.terms.usable,
            "left": self.terms.usable - self.needed_bytes,
            "fits": self.fits,
            "takes_turns": self.together > self.terms.usable,
            "largest_num_ctx": self.largest,
            "kv_type": self.terms.kv_type,
            "parallel": self.terms.parallel,
        }

    def lines(self) -> list[str]:
        """Render the table as lines of text."""
        shown: list[tuple[str, str, str]] = []
        for runner in self.runners:
            shown.append((f"{runner.resident.model} ({', '.join(runner.resident.uses)})", "", ""))
            shown += [(f"  {row.what}", _gib(row.size), row.note) for row in runner.rows]
            if runner.resident.share:
                shown.append(("  in all", _gib(runner.size, unknown=not runner.is_known), ""))
        shown.append(("other programs", _gib(self.terms.reserve), ""))
        unknown = any(runner.resident.share and not runner.is_known for runner in self.runners)
        largest = "the largest runner" if len(self.runners) > 1 else ""
        shown.append(("needed at once", _gib(self.needed_bytes, unknown=unknown), largest))
        shown.append(("usable", _gib(self.terms.usable), self.terms.found))
        left = self.terms.usable - self.needed_bytes
        shown.append(("left", f"< {_gib(left)}" if unknown else _gib(left), ""))
        # A model's name is a heading over its rows, and has no size beside it.
        wide, wider = (max(len(row[column]) for row in shown if row[1]) for column in (0, 1))
        lines = [f"{what.ljust(wide)}  {size.rjust(wider)}  {note}".rstrip() for what, size, note in shown]
        if self.fits and self.together > self.terms.usable:
            lines.append(f"Together they would need {_gib(self.together)}: they take turns, and every change loads.")
        return lines


def _gib(size: int | None, *, unknown: bool = False) -> str:
    if size is None:
        return "?"
    return f"{'> ' if unknown else ''}{size / GIB:.2f} GiB"


def rows(models: Sequence[Resident], terms: Terms) -> BudgetTable:
    """Return the table of some models under some terms. Models with `share` 0 run on the CPU and need no memory of the
    card.
    """
    return BudgetTable(tuple(PlannedRunner(model, terms, tuple(_rows(model, terms))) for model in models), terms)


def _rows(model: Resident, terms: Terms) -> Iterator[BudgetRow]:
    if not model.share:
        yield BudgetRow("on the CPU", 0, "num_gpu = 0: it takes nothing of the card")
        return
    yield BudgetRow(
        "weights", _share_of_size(model.weights, model.share), "" if model.weights is not None else model.unknown
    )
    yield _cache_row(model, terms)
    if model.adapter:
        yield BudgetRow("adapter", _share_of_size(model.adapter, model.share))
    yield BudgetRow("compute buffers", COMPUTE)


def _cache_row(model: Resident, terms: Terms) -> BudgetRow:
    cache = model.cache
    if cache is None:
        return BudgetRow(f"KV cache of {model.num_ctx} tokens", None, model.unknown)
    window, parallel = cache.window(model.num_ctx), cache.parallel(terms.parallel)
    what = f"KV cache of {window} tokens{f' x {parallel}' if parallel > 1 else ''}, {terms.kv_type}"
    trained = f"trained for {window}" if window < model.num_ctx else ""
    size = _share_of_size(cache.size(model.num_ctx, terms.parallel, terms.kv_type), model.share)
    return BudgetRow(what, size, "; ".join(filter(None, (trained, cache.bound))))


def _share_of_size(size: int | None, share: Fraction) -> int | None:
    return None if size is None else -(-size * share.numerator // share.denominator)
