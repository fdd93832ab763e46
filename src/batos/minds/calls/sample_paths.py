"""The sample path of a call: its place in the cycle, by which the journal finds it again."""

from __future__ import annotations

from batos.objects.method import IntentKind


def facet(mind: str, slot: str) -> str:
    """Return the path of a facet's call.

    >>> facet("council/brick", "guide_facet_")
    'council/brick/delegating/guide#0'
    """
    return f"{mind}/delegating/{slot.removesuffix('_facet_')}#0"


def protocol(mind: str, slot: str) -> str:
    """Return the path of a key protocol's call.

    >>> protocol("brick", "absurd_synthesis_protocol_")
    'brick/protocol/absurd_synthesis#0'
    """
    return f"{mind}/protocol/{slot.removesuffix('_protocol_')}#0"


def intent_path(kind: IntentKind, mind: str, slot: str) -> str:
    """Return the path of the call that interprets an intent of this kind.

    >>> of_kind("protocol", "brick", "absurd_synthesis_protocol_")
    'brick/protocol/absurd_synthesis#0'
    """
    return protocol(mind, slot) if kind == "protocol" else facet(mind, slot)


def method(kind: IntentKind, mind: str, selector: str) -> str:
    """Return the place of a method that a mind sends a message to; its calls to the model are numbered from 0 after it.

    >>> method("facet", "brick", "guide_facet_"), method("tool", "brick", "gadget_")
    ('brick/delegating/guide', 'brick/gadget')
    """
    if kind in ("facet", "protocol"):
        return intent_path(kind, mind, selector).removesuffix("#0")
    return f"{mind}/{selector.rstrip('_')}"


def within(place: str, selector: str, number: int) -> str:
    """Return the place of a message that a method at `place` sends; from the second of a selector on with its number.

    >>> within("brick/delegating/guide", "outline_", 0), within("brick/delegating/guide", "outline_", 1)
    ('brick/delegating/guide/outline', 'brick/delegating/guide/outline~1')
    """
    counted = f"~{number}" if number else ""
    return f"{place}/{selector.rstrip('_')}{counted}"


def call(place: str, number: int) -> str:
    """Return the path of a method's call to the model, by its number from 0.

    >>> call("brick/delegating/guide", 1)
    'brick/delegating/guide#1'
    """
    return f"{place}#{number}"
