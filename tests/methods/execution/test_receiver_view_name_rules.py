"""Names at the kernel's side: what may be sent, read and written, whatever a guardian or a cell has let through."""

from __future__ import annotations

import pytest
from persistent.mapping import PersistentMapping

from batos.image.records import DIGESTS
from batos.methods.execution import receiver_view
from batos.methods.execution.write_buffer import DELETED, BufferedWrite, WriteBuffer
from batos.objects.method import Intent, Method, Primitive
from batos.objects.prototype import UvmObject
from batos.protocol.errors import MethodFailed

NEVER = (
    "_p_changed", "_p_jar", "__class__", "_slots", "_parents", "_private", "parent", "parents", "Parent", "re_parent",
    "guardian", "my_guardian_", "_doesNotUnderstand_", "doesNotUnderstand", "does_not_understand_", "install_method_",
    "uninstall_x", "reparent_", "become", "clone", "clone_", "eval", "exec_", "compile",
)  # fmt: skip
STRANGE = ("", "a b", "a.b", "a\0", "ａ", "x" * 129, "1a", "a-b", "parent*", 7, None, ["a"])


@pytest.mark.parametrize("name", [*NEVER, *STRANGE])
def test_what_is_never_sent_read_or_written(name: object) -> None:
    """The object model's own, what makes behaviour, what is no name, and names in another spelling."""
    for check in (
        receiver_view.check_selector,
        receiver_view.check_read,
        lambda each: receiver_view.check_write(WriteBuffer(), UvmObject(), each),
    ):
        with pytest.raises(MethodFailed):
            check(name)


@pytest.mark.parametrize(
    "name", ["total", "infer_", "compile_report_", "clone_of", "transparent", "approve_", "évalué"]
)
def test_what_is_an_ordinary_name(name: str) -> None:
    """A name that only looks a little like one of those is one like any other."""
    assert (
        receiver_view.check_selector(name)
        == receiver_view.check_read(name)
        == receiver_view.check_write(WriteBuffer(), UvmObject(), name)
        == name
    )


@pytest.mark.parametrize("behaviour", [Intent("Sing."), Method("sing_", ""), Primitive("traits.log")])
def test_behaviour_is_never_written_over(behaviour: object) -> None:
    """Neither the receiver's own nor what it inherits; what a run deleted of it in a buffer is still there."""
    parent = UvmObject({"sing_": behaviour})
    for receiver in (parent, UvmObject(parents=(parent,))):
        with pytest.raises(MethodFailed, match="is behaviour"):
            receiver_view.check_write(WriteBuffer(), receiver, "sing_")
    buffer = WriteBuffer()
    buffer.write(UvmObject(), {"sing_": BufferedWrite(DELETED, "model")})
    with pytest.raises(MethodFailed, match="is behaviour"):
        receiver_view.check_write(buffer, parent, "sing_")


def test_what_genesis_declares_of_an_object_is_its_own() -> None:
    """On the very object; a clone of it may have a model of its own, and no name and no trust."""
    persona = UvmObject(
        {"name": "A", DIGESTS: {"model": "d", "facets": "d"}, "model": "m", "idle_state_obj": UvmObject()}
    )
    for slot in ("name", "model", "facets", DIGESTS, "idle_state_obj", "core_identity", "persona_model"):
        with pytest.raises(MethodFailed, match="the codex's or the kernel's"):
            receiver_view.check_write(WriteBuffer(), persona, slot)
    clone = UvmObject({"name": "B"}, (persona,))
    assert receiver_view.check_write(WriteBuffer(), clone, "model")
    for slot in ("name", "trust", "lineage_trust", "slot_trust", "provenance", DIGESTS):
        with pytest.raises(MethodFailed, match="the codex's or the kernel's"):
            receiver_view.check_write(WriteBuffer(), clone, slot)


@pytest.mark.parametrize("slots", [{"mission": "m-1", "note": 1}, {"user": "u", "turns": {}, "view": (), "note": 1}])
def test_missions_and_conversations_are_written_by_nobody(slots: dict[str, object]) -> None:
    """Every slot that such an object has."""
    for slot in slots:
        with pytest.raises(MethodFailed):
            receiver_view.check_write(WriteBuffer(), UvmObject(slots), slot)


def test_the_kernels_containers_are_not_replaced_and_may_be_hidden() -> None:
    """An own one stays; one that is a parent's is copied when the receiver changes it."""
    parent = UvmObject({"kept": PersistentMapping()})
    with pytest.raises(MethodFailed, match="a container of the kernel's"):
        receiver_view.check_write(WriteBuffer(), parent, "kept")
    assert receiver_view.check_write(WriteBuffer(), UvmObject(parents=(parent,)), "kept")
