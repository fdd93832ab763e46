"""The ledger of uses: in order, in short records, and its sums are what counting anew gives."""

from __future__ import annotations

from typing import Any

import transaction
from BTrees.IOBTree import IOBTree
from hypothesis import given
from hypothesis import strategies as st
from ZODB.DB import DB
from ZODB.MappingStorage import MappingStorage

from batos.protocol.method_documents import UseDocument
from batos.records import outcomes


def entry(number: int, revision: int = 1, *, control: bool = False, fault: bool = False, gate: int = 0) -> UseDocument:
    """A use as a mission tells it."""
    return UseDocument(
        mission=f"m-{number}",
        revision=revision,
        outcome="fault" if fault else "ok",
        control=control,
        seconds=number / 7,
        tokens=number,
        calls=1,
        gate_faults=gate,
    )


def test_order_and_pages() -> None:
    """Every use is there in the order in which it came, on pages that are full but for the last."""
    ledger: Any = IOBTree()
    wanted = [entry(number) for number in range(3 * outcomes.PAGE + 1)]
    for each in wanted:
        outcomes.write(ledger, each)
    assert list(outcomes.entries(ledger)) == wanted
    assert [len(page) for page in ledger.values()] == [outcomes.PAGE] * 3 + [1]
    assert list(ledger) == [1, 2, 3, 4]


def test_a_use_writes_one_page() -> None:
    """However long the ledger is, one short record is written again: pages that are full are never touched."""
    database = DB(MappingStorage())
    connection = database.open(transaction.TransactionManager())
    ledger = connection.root()["ledger"] = IOBTree()
    for number in range(5 * outcomes.PAGE + 2):
        outcomes.write(ledger, entry(number))
    connection.transaction_manager.commit()
    connection.cacheMinimize()
    outcomes.write(ledger, entry(0))
    assert connection._registered_objects == [ledger[6]]
    connection.transaction_manager.abort()
    connection.close()
    database.close()


entries = st.builds(
    entry,
    st.integers(0, 50),
    st.integers(0, 3),
    control=st.booleans(),
    fault=st.booleans(),
    gate=st.integers(0, 2),
)


@given(st.lists(entries, max_size=60))
def test_sums(found: list[UseDocument]) -> None:
    """By revision and by kind; a use is bad once, however many faults it had, and nothing else is counted."""
    totals = outcomes.totals_of(found)
    assert set(totals) == {each["revision"] for each in found}
    for revision, kinds in totals.items():
        for counts, control in ((kinds["method"], False), (kinds["control"], True)):
            mine = [each for each in found if (each["revision"], each["control"]) == (revision, control)]
            assert counts["calls"] == len(mine)
            assert counts["bad"] == sum(each["outcome"] == "fault" or each["gate_faults"] > 0 for each in mine)
            assert counts["tokens"] == sum(each["tokens"] for each in mine)
