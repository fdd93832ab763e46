"""What is found out about the intent of a slot."""

from __future__ import annotations

import pytest

from batos.objects.method import Intent, IntentKind
from batos.records.methods import is_interpretable, kind_of


@pytest.mark.parametrize("kind", ["facet", "protocol", "method", "tool", "prototype"])
def test_an_intent_says_its_kind_whatever_its_slot_is_called(kind: IntentKind) -> None:
    """A tool that a model named `cut_facet` is a tool: what it is given and answers is a tool's."""
    intent = Intent("Cut it.", kind=kind)
    assert {kind_of(intent, slot) for slot in ("cut_facet_", "cut_protocol_", "cut_")} == {kind}
    assert is_interpretable(intent) is (kind not in ("tool", "prototype"))


@pytest.mark.parametrize(
    ("slot", "kind"), [("guide_facet_", "facet"), ("doubt_protocol_", "protocol"), ("add_", "method"), ("_", "method")]
)
def test_a_method_without_an_intent_is_of_the_kind_that_its_slot_names(slot: str, kind: IntentKind) -> None:
    """Somebody wrote it by hand, and a persona's mind sends it messages all the same."""
    assert kind_of(None, slot) == kind
