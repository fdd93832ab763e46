"""What a client that came in by a key of its own may do: ask, read and answer, and not govern the home."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from batos.errors import Refused
from batos.front.wire.keys import OWN

#: Verbs that change what the mind is made of: only whoever is in the home sends them.
OWNERS: Final = frozenset({"genesis", "adapters_use", "method_redefine", "method_rollback"})
#: Verbs by which somebody answers for something: a guest does so by the name of its key.
ANSWERS: Final = frozenset({"approve", "reject"})


def bounded(verb: str, args: Mapping[str, Any], came_in: str) -> Mapping[str, Any]:
    """What is asked, as this client may ask it; Refused for what only the home itself may.

    `came_in` is the client as the gate names it: "token ...", or "key NAME ...". The home's own key is no guest's.
    """
    kind, _, rest = came_in.partition(" ")
    name = rest.rpartition(" ")[0]
    if kind != "key" or name == OWN:
        return args
    if verb in OWNERS and not (verb == "genesis" and args.get("plan") is True):
        raise Refused(
            f"{verb} is for the home itself, and the key {name!r} is a guest's",
            field="verb",
            remedy="Do it where the home is: `batos` there, or `docker compose exec batos batos ...`.",
        )
    return {**args, "user": f"key {name}"} if verb in ANSWERS else args
