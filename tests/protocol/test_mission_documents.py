"""Documents of missions: the types name the keys that clients read, and a door gets a copy."""

from __future__ import annotations

from dataclasses import fields

import pytest

from batos.client.named_documents import CitedSource, MissionCost, MissionLearning, MissionRoute
from batos.inference.cost import Cost
from batos.inference.vram.placement import Placement
from batos.protocol.evidence_documents import CitationDocument
from batos.protocol.mission_documents import CostDocument, LearningDocument, PlacementDocument, RouteDocument


@pytest.mark.parametrize(
    ("document", "named"),
    [
        (CostDocument, MissionCost),
        (LearningDocument, MissionLearning),
        (RouteDocument, MissionRoute),
        (CitationDocument, CitedSource),
        (CostDocument, Cost),
        (PlacementDocument, Placement),
    ],
)
def test_a_document_has_every_field_that_is_read_of_it(document: type, named: type) -> None:
    """A client's field without a key in the document would always have its default."""
    assert {each.name for each in fields(named)} <= set(document.__annotations__)
