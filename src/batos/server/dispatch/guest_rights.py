"""The rights of a client that came in by a key of its own: to ask and read as one user, not to govern the home."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batos.client.wire.key_names import OWN
from batos.protocol.errors import Refused
from batos.verbs.all_verbs import VERBS


def guest(came_in: str) -> str | None:
    """Return the user that a client is, by the name of its key; None for the home itself, which may name any user.

    `came_in` is the client as the gate names it: "token ...", or "key NAME ...". The home's own key is no guest's.

    >>> guest("key laptop 0a1b"), guest("key home 0a1b"), guest("token 0a1b")
    ('key laptop', None, None)
    """
    kind, _, rest = came_in.partition(" ")
    name = rest.rpartition(" ")[0]
    return None if kind != "key" or name == OWN else f"key {name}"


def limit_guest(verb: str, args: Mapping[str, object], came_in: str) -> Mapping[str, Any]:
    """Limit a request to what this client may ask: a guest asks as the user of its key, whatever user it names.

    Refused for what only the home itself may.
    """
    user = guest(came_in)
    if user is None:
        return args
    declared = VERBS.get(verb)
    fields = {} if declared is None else declared.args.model_fields
    is_harmless = verb == "genesis" and args.get("plan") is True
    governs = declared is not None and declared.governs and not is_harmless
    if governs or ("cascade" in fields and args.get("cascade")):
        raise Refused(
            f"{verb} is only for the home, and the {user} is a guest's",
            field="verb",
            remedy="Run the verb where the home is: `batos` there, or `docker compose exec batos batos ...`.",
        )
    if "user" not in fields:
        return args
    # A guest answers for its own missions; methods and answers that the home has retracted stay out; words are
    # erased wherever they stand, and so by no guest.
    meant = {**args, "user": user, **{name: True for name in ("mine", "alone") if name in fields}}
    if verb == "undo":
        meant["keep"] = ["methods", *(each for each in _list(args.get("keep")) if each != "methods")]
    if isinstance(brief := args.get("brief"), Mapping):  # what is none is the shape's to refuse
        meant["brief"] = {**brief, "user": user}
    return meant


def _list(given: object) -> list[Any]:
    """Return what is given as a list; what is none is the shape's to refuse."""
    return list(given) if isinstance(given, list | tuple) else [given] if given else []
