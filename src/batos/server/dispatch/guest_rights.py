"""The rights of a client that came in by a key of its own: to ask and read as one user, not to govern the home."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from batos.client.wire.key_names import OWN
from batos.protocol.errors import Refused
from batos.protocol.verb_shapes import ARGS

#: Verbs that change what the mind is made of: only whoever is in the home sends them.
OWNERS: Final = frozenset(
    {
        "genesis", "adapters_use", "method_redefine", "method_rollback", "grants_add", "grants_revoke",
        "effects_settle", "pack",
    }
)  # fmt: skip
#: Verbs that reach what came of something only for whoever is in the home.
CASCADES: Final = frozenset({"memories_retract", "undo", "redo", "erase"})
#: Verbs by which somebody answers for something: a guest does so by the name of its key, for its own missions.
ANSWERS: Final = frozenset({"approve", "reject"})


def guest(came_in: str) -> str | None:
    """Return the user that a client is, by the name of its key; None for the home itself, which may name any user.

    `came_in` is the client as the gate names it: "token ...", or "key NAME ...". The home's own key is no guest's.

    >>> guest("key laptop 0a1b"), guest("key home 0a1b"), guest("token 0a1b")
    ('key laptop', None, None)
    """
    kind, _, rest = came_in.partition(" ")
    name = rest.rpartition(" ")[0]
    return None if kind != "key" or name == OWN else f"key {name}"


def limit_guest(verb: str, args: Mapping[str, Any], came_in: str) -> Mapping[str, Any]:
    """Limit a request to what this client may ask: a guest asks as the user of its key, whatever user it names.

    Refused for what only the home itself may.
    """
    user = guest(came_in)
    if user is None:
        return args
    is_harmless = verb == "genesis" and args.get("plan") is True
    if (verb in OWNERS and not is_harmless) or (verb in CASCADES and args.get("cascade")):
        raise Refused(
            f"{verb} is only for the home, and the {user} is a guest's",
            field="verb",
            remedy="Run the verb where the home is: `batos` there, or `docker compose exec batos batos ...`.",
        )
    if verb not in ARGS or "user" not in ARGS[verb].model_fields:
        return args
    meant = {**args, "user": user, **({"mine": True} if verb in ANSWERS else {})}
    if verb in ("memories_restore", "erase"):
        # Methods and answers that the home has retracted stay out; words are erased wherever they stand, and so by no
        # guest.
        meant["alone"] = True
    if verb == "undo":
        meant["keep"] = ["methods", *(each for each in _list(args.get("keep")) if each != "methods")]
    if isinstance(brief := args.get("brief"), Mapping):  # what is none is the shape's to refuse
        meant["brief"] = {**brief, "user": user}
    return meant


def _list(given: object) -> list[Any]:
    """Return what is given as a list; what is none is the shape's to refuse."""
    return list(given) if isinstance(given, list | tuple) else [given] if given else []
