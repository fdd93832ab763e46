"""What behaviour is made of."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from ZODB.Connection import Connection

from batos.objects.method import Intent, Method, Primitive
from batos.protocol.errors import ObjectError

Sessions = Callable[[], AbstractContextManager[Connection]]


def test_an_intent_is_never_changed(session: Sessions) -> None:
    """No field can be written again, added or deleted: not when new, not when stored, not when a ghost."""
    intent = Intent("be kind", signature="f_(query)", examples=("x",), kind="facet", when={"effort": "cycle"})
    with session() as connection:
        connection.root()["intent"] = intent
        connection.transaction_manager.commit()
        connection.transaction_manager.begin()
        for name in ("text", "kind", "when", "novelty", "_v_code") * 2:
            with pytest.raises(ObjectError, match="never changed"):
                setattr(intent, name, "other")
            with pytest.raises(ObjectError, match="never changed"):
                delattr(intent, name)
        assert intent._p_changed is False
        assert (
            intent.as_dict() == Intent("be kind", "f_(query)", ("x",), kind="facet", when={"effort": "cycle"}).as_dict()
        )


def test_an_intent_shares_nothing_with_its_maker() -> None:
    """What an intent was made from may change afterwards; the intent does not, nor through what it shows."""
    when: dict[str, Any] = {"effort": ["cycle"]}
    examples = [{"query": "why"}]
    intent = Intent("be kind", examples=tuple(examples), when=when)
    when["effort"].append("council")
    examples[0]["query"] = "how"
    intent.as_dict()["when"]["effort"].append("reflex")
    assert intent.when == {"effort": ["cycle"]}
    assert intent.examples == ({"query": "why"},)


def test_examples_are_a_tuple() -> None:
    """Examples given as a list, as a codex has them, are kept as a tuple."""
    listed: Any = ["a", "b"]
    assert Intent("be kind", examples=listed).examples == ("a", "b")


def test_intents_and_methods_are_records() -> None:
    """Each is one by identity, however alike: what two objects share is one record."""
    assert Intent("be kind") != Intent("be kind")
    assert Method("f_", "pass") != Method("f_", "pass")


def test_a_primitive_is_its_name() -> None:
    """Equal names are equal and hash alike; the name is all that is pickled; it cannot be changed."""
    log = Primitive("log")
    assert log == Primitive("log")
    assert log != Primitive("infer")
    assert {log} == {Primitive("log")}
    assert pickle.loads(pickle.dumps(log)) == log
    assert log.__reduce__() == (Primitive, ("log",))
    with pytest.raises(AttributeError):
        log.name = "infer"  # type: ignore[misc]  # refused by the type as well


def test_a_method_is_data(session: Sessions) -> None:
    """Every field comes back from the database; what is compiled from it does not."""
    method = Method("f_", "return 1", "one", {"mission": "m"}, {"allowed": True}, ({"in": 1},), 3)
    with session() as connection:
        connection.root()["method"] = method
        method._v_code = "compiled"  # type: ignore[attr-defined]  # volatile attributes have no declaration
        connection.transaction_manager.commit()
    with session() as connection:
        again = connection.root()["method"]
        assert again.as_dict() == method.as_dict()
        assert again.revision == 3
        assert not hasattr(again, "_v_code")


def test_records_survive_pickle_and_deepcopy() -> None:
    """A pickled or copied intent or method has equal fields, and the intent is still never changed."""
    for record in (Intent("be kind", when={"a": 1}), Method("f_", "pass")):
        for again in (pickle.loads(pickle.dumps(record)), copy.deepcopy(record)):
            assert again is not record
            assert again.as_dict() == record.as_dict()
    with pytest.raises(ObjectError):
        copy.deepcopy(Intent("be kind")).text = "other"
