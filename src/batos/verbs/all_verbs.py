"""All verbs by their names, and how the arguments of a request are read by the declaration of its verb."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, Final

from batos.protocol.errors import ProtocolError
from batos.protocol.wire_messages import SHOWN, StrictModel, read_model
from batos.verbs import (
    approval_verbs,
    correction_verbs,
    effect_verbs,
    history_verbs,
    memory_verbs,
    method_verbs,
    mission_verbs,
    motion_verbs,
    schedule_verbs,
    server_verbs,
    trial_verbs,
)
from batos.verbs.wire_verb import WireVerb

#: The files of declarations, in the order in which the pages have them.
NOUNS: Final = (
    server_verbs, mission_verbs, approval_verbs, method_verbs, history_verbs, effect_verbs, memory_verbs,
    correction_verbs, motion_verbs, trial_verbs, schedule_verbs,
)  # fmt: skip
#: Every verb that is declared.
VERBS: Final[Mapping[str, WireVerb[Any, Any]]] = {
    each.name: each for noun in NOUNS for each in vars(noun).values() if isinstance(each, WireVerb)
}


def read_args(verb: str, args: Mapping[str, object]) -> StrictModel:
    """Read the arguments of a verb. Raises: ProtocolError: there is no such verb or field; the error names it."""
    if verb not in VERBS:
        near = difflib.get_close_matches(verb[:SHOWN], VERBS, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ProtocolError(
            f"there is no verb {verb[:SHOWN]!r}{hint}", field="verb", remedy=f"There are {', '.join(VERBS)}."
        )
    shape: type[StrictModel] = VERBS[verb].args
    return read_model(shape, args, "args.")
