"""The shape that a coder answers in, compiled to what the daemon enforces: two or three checks, then the source."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BaseModel, Field

from batos.inference.decisions.schema import Decision

#: The longest source in characters: the limit of the daemon's grammars.
SOURCE: Final = 1_999
#: The longest texts of a check, in characters.
SHORT, LONG = 120, 240
LEAST_CHECKS, MOST_CHECKS = 2, 3


class CheckText(BaseModel):
    """A call of the method and its expected outcome.

    Each field is JSON in a text, because a grammar needs closed types.
    """

    arguments: Annotated[str, Field(max_length=SHORT, description="a JSON list: what the method is called with")]
    before: Annotated[str, Field(max_length=SHORT, description="a JSON object: slots as they are before the call")]
    replies: Annotated[
        str, Field(max_length=LONG, description="a JSON object: for each selector it sends, the list of its answers")
    ]
    result: Annotated[str, Field(max_length=LONG, description="JSON: what the method must return")]
    slots: Annotated[str, Field(max_length=SHORT, description="a JSON object: slots as they must be after the call")]


class CoderReply(BaseModel):
    """A method and the checks that it must pass."""

    checks: Annotated[
        list[CheckText],
        Field(
            min_length=LEAST_CHECKS,
            max_length=MOST_CHECKS,
            description="calls that tell the method from one that does nothing",
        ),
    ]
    source: Annotated[
        str, Field(max_length=SOURCE, description="the method: one Python function, its imports before it")
    ]


REPLY: Final[Decision[CoderReply]] = Decision(CoderReply)
