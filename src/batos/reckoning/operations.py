"""Decides what a question asks to be computed: the operation, the column of numbers, and the column of entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from batos.reckoning import record_lists
from batos.reckoning.columns import Column
from batos.reckoning.phrases import COMPARISONS, Index, NotComputed, Phrase, Unclear, choose_only
from batos.reckoning.question_words import COMPOUNDS, Word, fold, lexicon, root, signs

_SALES = frozenset(map(root, signs("sales")))
#: The operations and how a line tells each.
OPERATIONS = {"count": "count of rows", "sum": "sum", "avg": "average", "max": "highest", "min": "lowest"}
#: Concepts of columns that count pieces.
_PIECES = {"quantity", "stock"}
#: Concepts of columns whose numbers count nothing.
_NO_COUNTS = {"price", "temperature", "age", "grade"}
#: Kinds of words that mean something only beside a date, and those that have no place in a question to a table.
_BESIDE_DATES = ("before", "after", "since", "until")
_ELSEWHERE = frozenset(
    "long old notice ago weekday clock latest tomorrow next calendar workday first later deadline".split()
)
_PERIODS = ("day", "week", "month", "year", "hour", "minute")


@dataclass(frozen=True, slots=True)
class Wish:
    """The operation, its column if one is needed, and the column that is asked for, as in `which club`."""

    operation: str
    column: Column | None = None
    asked: Column | None = None
    grouped: str = ""


def has_operation(said: Sequence[Word], language: str) -> bool:
    """Test if a question has a word that asks for an operation."""
    asking, prefixes = _asking(language), tuple(COMPOUNDS)
    return any(each.word in asking or each.word.startswith(prefixes) for each in said)


@cache
def _asking(language: str) -> frozenset[str]:
    """Return the first words of the phrases that ask for an operation."""
    return frozenset(phrase[0] for phrase, kind in lexicon(language).items() if _operation(kind))


def _expect_places(mentions: Sequence[Phrase]) -> None:
    """Expect that each word about time stands where a table can use it."""
    extreme = any(each.kind.startswith(("max", "min")) for each in mentions)
    for at, mention in enumerate(mentions):
        before = mentions[at - 1].kind if at else ""
        behind = mentions[at + 1].kind if at + 1 < len(mentions) else ""
        wrong = mention.kind in _ELSEWHERE and not mention.columns
        wrong = wrong or (mention.kind in _BESIDE_DATES and not {before, behind} & {"date", "quarter", "today"})
        wrong = wrong or (mention.kind == "last" and behind not in ("month", "year"))
        wrong = wrong or (mention.kind in ("date", "quarter") and not (mention.readings or mention.columns or extreme))
        wrong = wrong or (mention.kind == "per" and behind not in ("value", "about", "date"))
        timed = mention.kind in _PERIODS and not mention.columns
        if wrong or (timed and before not in ("this", "last", "count", "much", "number")):
            raise NotComputed(mention.text)


def read_wish(mentions: Sequence[Phrase], columns: Sequence[Column], index: Index) -> Wish:
    """Return what is to be computed.

    Raises: NotComputed: there is no operation, several do not go together, or a word is left over. Unclear: several
    columns or operations fit.
    """
    _expect_places(mentions)
    if _asks_cost(mentions) and not any(each.is_money for each in columns):
        raise NotComputed("cost")
    wish = _choose(mentions, columns, index)
    for named in _measures(mentions, columns):  # each is computed, or compared with a number
        if wish.column is None or (wish.operation != "distinct" and wish.column not in named):
            raise NotComputed(named[0].name)
    _expect_trade(wish, mentions, columns, index)
    return wish


def _asks_cost(mentions: Sequence[Phrase]) -> bool:
    return any(each.kind == "cost" and not each.columns for each in mentions)


def _expect_trade(wish: Wish, mentions: Sequence[Phrase], columns: Sequence[Column], index: Index) -> None:
    """Expect a table of sales for what was sold, and money for what something costs."""
    concepts = frozenset().union(*(each.concepts for each in columns))
    if any(each.kind == "sold" for each in mentions):
        sells = bool(concepts & {"quantity", "revenue"} or index.about & _SALES)
        if not sells or (wish.column is not None and "stock" in wish.column.concepts):
            raise NotComputed("sold")
    compares = any(each.kind in (*COMPARISONS, "between") for each in mentions)
    if not compares and any(each.kind == "took" and not each.columns for each in mentions):
        raise NotComputed("took")
    compared = [columns[place] for each in mentions for place in each.columns] if wish.operation == "count" else []
    if _asks_cost(mentions) and not any(each.is_money for each in (*compared, *filter(None, (wish.column,)))):
        raise NotComputed("cost")


def _choose(mentions: Sequence[Phrase], columns: Sequence[Column], index: Index) -> Wish:
    said = [verb for each in mentions if (verb := _operation(each.kind))]
    if any(said.count(each) > 1 for each in said if each != "sum"):
        raise NotComputed  # two computations in one question
    operations = _operations(set(said))
    ends = operations & {"max", "min"}
    if len(ends) == 1:
        return _extreme(next(iter(ends)), operations - ends, mentions, columns)
    if operations == {"count"} and any(each.kind == "distinct" for each in mentions):
        return Wish("distinct", _find_counted(mentions, columns, index) or _fail())
    match sorted(operations):
        case ["avg"] | ["avg", "count"]:
            return Wish("avg", _target(mentions, columns, "avg"))
        case ["spent"] | ["spent", "sum"]:
            return Wish("sum", _money(mentions, columns))
        case ["sum"]:
            return Wish("sum", _target(mentions, columns, "sum"))
        case ["count"] | ["count", "sum"]:
            return _counting("sum" in operations, mentions, columns, index)
    raise NotComputed


def _operations(operations: set[str]) -> set[str]:
    """Return the operations that are asked for; `how much` counts and `spent` adds up where nothing else is said."""
    if "much" in operations:
        operations = operations - {"much"} or {"count"}
    return operations - {"spent"} if operations - {"sum", "spent"} else operations


def _counting(adds: bool, mentions: Sequence[Phrase], columns: Sequence[Column], index: Index) -> Wish:
    """Return the wish for a count of rows, or for the sum of the column that `how many` names."""
    # In Chinese and Japanese one word behind the thing asks for its number and for its amount.
    both = any(each.kind.startswith("count") and each.text > "\u3000" for each in mentions)
    if both and _measures(mentions, columns):
        return Wish("sum", _target(mentions, columns, "sum") if adds else _fail())
    column = _find_counted(mentions, columns, index)
    return Wish("sum", column) if column is not None and column.is_measure else Wish("count")


def _operation(kind: str) -> str:
    """Return the operation that a kind of phrase asks for, without its concept; "" if it asks for none."""
    verb = kind.partition(":")[0]
    return verb if verb in (*OPERATIONS, "spent", "much") else ""


def _fail() -> Column:
    raise NotComputed


def _measures(mentions: Sequence[Phrase], columns: Sequence[Column]) -> list[list[Column]]:
    """Return, for each mention of columns of numbers that no comparison is about, those columns."""
    found = []
    for at, mention in enumerate(mentions):
        measured = [columns[each] for each in sorted(mention.columns) if columns[each].is_measure]
        if measured and mention.kind != "value" and not _is_compared(mentions, at):
            found.append(measured)
    return found


def _is_compared(mentions: Sequence[Phrase], at: int) -> bool:
    """Test if the column of a mention stands behind the number of a comparison, or right before the comparison."""
    around = [each.kind for each in mentions[max(0, at - 2) : at]]
    behind = next((each.kind for each in mentions[at + 1 :] if each.kind != "stop"), "")
    return "number" in around or behind in ("gt", "ge", "lt", "le", "number")


def _target(mentions: Sequence[Phrase], columns: Sequence[Column], operation: str) -> Column:
    """Return the column of numbers that is named, else the only one."""
    named = _measures([each for each in mentions if not _operation(each.kind)], columns)
    named = named or _measures(mentions, columns)
    if not named and any(_is_unread(mentions, at, columns) for at in range(1, len(mentions))):
        raise NotComputed
    common = [each for each in columns if named and all(each in some for some in named)]
    if len(common) == 1:
        return _addable(common[0], columns, operation)
    if named:
        raise Unclear(each.name for some in named for each in some)
    measures = [each for each in columns if each.is_measure]
    others = [each.columns for each in mentions if each.kind == "column"]
    if len(measures) == 1 and any(all(columns[each].days for each in some) for some in others):
        raise NotComputed  # a column of dates has no entries to choose or label rows by
    return _addable(choose_only(measures), columns, operation)


def _is_unread(mentions: Sequence[Phrase], at: int, columns: Sequence[Column]) -> bool:
    """Test if a word right behind an operation names only columns that have no numbers: `the average time`."""
    named = mentions[at].columns if mentions[at].kind != "value" else frozenset()
    return (
        mentions[at - 1].kind in ("sum", "avg", "max", "min")
        and bool(named)
        and not any(columns[each].numbers for each in named)
    )


def _addable(column: Column, columns: Sequence[Column], operation: str) -> Column:
    """Return the column, unless prices of pieces would be added up where another column has the number of pieces."""
    if column.is_mixed:
        raise NotComputed
    pieces = [each for each in columns if each.is_measure and each.concepts & _PIECES]
    piece_price = "price" in column.concepts or (record_lists.is_currency(column.name) and not column.concepts)
    if operation == "sum" and pieces and piece_price and column not in pieces:
        raise Unclear((f"sum of {column.name}", f"sum of {pieces[0].name} x {column.name}"))
    return column


def _money(mentions: Sequence[Phrase], columns: Sequence[Column]) -> Column:
    """Return the only column of money, for a question of what was spent."""
    if _measures(mentions, columns):
        return _target(mentions, columns, "sum")
    measures = [each for each in columns if each.is_measure and "revenue" not in each.concepts]
    bare = [each for each in measures if not each.unit and not each.concepts]
    measures = [each for each in measures if each.is_money] or bare
    return _addable(choose_only(measures), columns, "sum")


def _find_counted(mentions: Sequence[Phrase], columns: Sequence[Column], index: Index) -> Column | None:
    """Return the column that the words behind `how many` name; None if rows are counted."""
    at = next(at for at, each in enumerate(mentions) if each.kind.startswith(("count", "much")))
    behind = next((each for each in mentions[at + 1 :] if each.kind not in ("stop", "sum", "distinct", "which")), None)
    distinct = any(each.kind == "distinct" for each in mentions)
    counts_rows = behind is not None and behind.kind in ("about", "row")
    if behind is None or (counts_rows and not any(columns[each].is_measure for each in behind.columns)):
        return None
    if behind.kind in _PERIODS and not behind.columns:
        days = [each.days for each in columns if each.days]
        return None if behind.kind == "day" and len(days) == 1 and len(set(days[0])) == len(days[0]) else _fail()
    pieces = [each for each in columns if each.is_measure and each.concepts & _PIECES]
    if behind.kind == "value" and not distinct:
        return choose_only(pieces) if pieces else None
    named = [columns[each] for each in sorted(behind.columns)]
    measures = [each for each in named if each.is_measure]
    if measures and not distinct:
        return _counted_measure(measures, mentions, columns)
    return _find_counted_entries(named, behind, mentions, pieces, distinct, index)


def _counted_measure(measures: Sequence[Column], mentions: Sequence[Phrase], columns: Sequence[Column]) -> Column:
    """Return the only one of columns of numbers that the other words of the question name too."""
    common = [each for each in measures if all(each in some for some in _measures(mentions, columns))]
    if len(common) != 1:
        raise Unclear(each.name for each in measures)
    if common[0].concepts & _NO_COUNTS:
        raise Unclear((f"count of {common[0].name}", f"sum of {common[0].name}"))
    return _addable(common[0], columns, "sum")


def _find_counted_entries(
    named: Sequence[Column],
    behind: Phrase,
    mentions: Sequence[Phrase],
    pieces: Sequence[Column],
    distinct: bool,
    index: Index,
) -> Column | None:
    """Return the column whose different entries are counted; None if each row has its own, so that rows are counted."""
    if not named:
        if behind.kind in ("date", "number", "not", *OPERATIONS):
            raise NotComputed
        return None
    column = choose_only(named)
    if distinct:
        return column
    if column.is_key or column.flags:
        return None
    different = len(set(map(fold, column.texts))) < len(column.texts)
    if any(fold(behind.text).startswith(each) for each in index.about if len(each) > 2):
        return None  # the rows of `loans.csv` are loans, also where a column has the name
    compared = any(each.columns and _is_compared(mentions, at) for at, each in enumerate(mentions))
    if different or (pieces and not compared):
        more = [f"sum of {each.name}" for each in pieces]
        raise Unclear((f"count of rows by {column.name}", f"count of different entries of {column.name}", *more))
    return None


def _extreme(operation: str, others: set[str], mentions: Sequence[Phrase], columns: Sequence[Column]) -> Wish:
    """Return the wish for the highest or lowest value, or for the group that has it."""
    asked = _find_asked(mentions, columns)
    ends = [each.kind.partition(":")[2] for each in mentions if each.kind.startswith(operation)]
    concept = next(filter(None, ends), "")
    which = any(each.kind == "which" for each in mentions)
    repeated = asked is not None and which and len(set(asked.texts)) < len(asked.texts)
    measures = _measures(mentions, columns)
    if asked is not None and repeated and (others or not measures) and not concept:
        grouped = next(iter(others), "count") if len(others) < 2 else ""
        if grouped == "count" and not measures and any(each.kind in ("about", "row", "column") for each in mentions):
            return Wish(operation, None, asked, "count")
        if grouped in ("sum", "avg", "count") and measures:
            return Wish(operation, _target(mentions, columns, grouped), asked, "sum" if grouped == "count" else grouped)
        raise NotComputed
    if others - {"count"}:
        raise NotComputed
    column = _by_concept(concept, columns) if concept and not measures else _target(mentions, columns, operation)
    if asked is not None and repeated and not concept:
        raise Unclear(
            (f"{OPERATIONS[operation]} {column.name}", f"{OPERATIONS[operation]} sum of {column.name} by {asked.name}")
        )
    return Wish(operation, column, asked)


def _find_asked(mentions: Sequence[Phrase], columns: Sequence[Column]) -> Column | None:
    """Return the column behind `which` whose entry is asked for, if the question begins with it."""
    for at, mention in enumerate(mentions):
        if mention.kind == "which":
            behind = next((each for each in mentions[at + 1 :] if each.kind != "stop"), None)
            if behind is None:
                break
            named = [columns[each] for each in sorted(behind.columns) if not columns[each].is_measure]
            return named[0] if len(named) == 1 and at < 2 else None
    named = [columns[at] for each in mentions if each.kind == "column" for at in sorted(each.columns)]
    named = [each for each in named if not (each.numbers or each.days or each.flags)]
    return named[0] if len(named) == 1 and not any(each.kind == "value" for each in mentions) else None


def _by_concept(concept: str, columns: Sequence[Column]) -> Column:
    """Return the only column of numbers that has the concept of a word such as `cheapest`."""
    found = [each for each in columns if each.is_measure and concept in each.concepts]
    if concept == "price" and not found:
        found = [each for each in columns if each.is_measure and each.is_money]
    return choose_only(found)
