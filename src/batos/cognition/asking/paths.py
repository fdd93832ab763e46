"""The sample path of a call: its place in the cycle, by which the journal finds it again."""

from __future__ import annotations


def facet(mind: str, slot: str) -> str:
    """A facet's call.

    >>> facet("council/brick", "guide_facet_")
    'council/brick/delegating/guide#0'
    """
    return f"{mind}/delegating/{slot.removesuffix('_facet_')}#0"


def protocol(mind: str, slot: str) -> str:
    """A key protocol's call.

    >>> protocol("brick", "absurd_synthesis_protocol_")
    'brick/protocol/absurd_synthesis#0'
    """
    return f"{mind}/protocol/{slot.removesuffix('_protocol_')}#0"
