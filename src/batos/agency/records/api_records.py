"""Described APIs in the image: their grants, and the shapes of the replies that came, by which a change is seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypedDict

from batos.agency.apis import reply_shapes
from batos.agency.apis.api_operations import Operation
from batos.agency.apis.description import read_description
from batos.agency.apis.method_sources import describe
from batos.agency.apis.reply_shapes import Shape
from batos.image import roots
from batos.image.records import SLOT_TRUST
from batos.image.roots import Root
from batos.objects.method import Intent, Method
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.errors import BriefError, Refused
from batos.records import methods, tools

#: The kind of contribution that a reply of a new shape is: an `ApiReplyPayload`.
KIND: Final = "api_reply"
#: The slot of a made object with the shape of each operation's replies: {operation: {shape, at, digest, changes}}.
FIXTURES: Final = "fixtures"
#: The most bytes of a description.
MOST_DESCRIPTION: Final = 64 * 1024
#: The most times that a reading is made again in this time.
MOST_AGAIN, IN = 2, timedelta(days=7)


class ApiReplyPayload(TypedDict):
    """A reply of a shape that was not there before: the object, the operation, its shape and what differs."""

    object: str
    operation: str
    shape: Shape
    digest: str
    at: str
    changes: list[str]


class Fixture(TypedDict):
    """The shape of an operation's replies as an object keeps it: since when, and when its reading was made again."""

    shape: Shape
    digest: str
    at: str
    mission: str
    changes: list[str]
    made_again: list[str]


def read_file(place: str) -> str:
    """Return the description in a file. Raises: BriefError: it cannot be read, or is too long or no text."""
    try:
        with Path(place).open("rb") as file:
            data = file.read(MOST_DESCRIPTION + 1)
        text = data.decode("utf-8")
    except (OSError, ValueError) as error:
        raise BriefError(
            f"{place} cannot be read as a text", field="description", remedy="Give a text file."
        ) from error
    if len(data) > MOST_DESCRIPTION:
        what = f"{place} is longer than {MOST_DESCRIPTION:,} bytes"
        raise BriefError(what, field="description", remedy="Keep what the API is asked for.")
    return text


def describe_grant(root: Root, capability: UvmObject, description: str, secret_header: str) -> None:
    """Write the description and the header of the secret into the grant of an API, and declare its object.

    `calls` is how each operation is called: its selector, and its required arguments in capitals.

    Raises: Refused: the description names no request, or the object is declared already and `description` is given.
    """
    name = str(own_slots(capability)["name"])
    if description:
        declare(root, name, description)
    text = api_text(root, name)
    if not text:
        what = f"nothing declares {name!r}"
        raise Refused(what, field="description", remedy="Give its description: --description FILE.")
    calls = [" ".join([each.name, *map(str.upper, each.required_names)]) for each in read_description(text).operations]
    capability.declares, capability.secret_header, capability.calls = description, secret_header, calls


def api_text(root: Root, name: str) -> str:
    """Return the description of an object that is declared or made; "" where there is none."""
    intent, obj = tools.absent(root, name), tools.find_tool(root, name)
    return intent.text if intent is not None else "" if obj is None else str(own_slots(obj).get(tools.API, ""))


def declare(root: Root, name: str, description: str) -> None:
    """Declare the absent object of a granted API. Raises: Refused: the description names no request."""
    if not read_description(description).operations:
        what = "the description names no request"
        raise Refused(what, field="description", remedy="Name each as `GET /path?name=...`, in a line or in prose.")
    if tools.find_tool(root, name) is not None or tools.absent(root, name) is not None:
        what = f"{name} is declared already"
        raise Refused(what, field="name", remedy="Leave --description out, or choose another name.")
    setattr(root[roots.TOOLS], name, Intent(text=description, name=name, may_learn=True, kind="prototype"))


def withdraw(root: Root, name: str, at: str) -> None:
    """Take away what a revoked grant declared; the methods of its object are retired."""
    obj = tools.find_tool(root, name)
    for selector, value in own_slots(obj).items() if obj is not None else ():
        if obj is not None and isinstance(value, Intent | Method):
            methods.redeclare(root, obj, selector, None, at, ("a person", "its grant is revoked"))
    if obj is not None or tools.absent(root, name) is not None:
        delattr(root[roots.TOOLS], name)


def operation_at(obj: UvmObject, selector: str) -> Operation | None:
    """Return the operation that a message to a made object calls."""
    return read_description(str(own_slots(obj).get(tools.API, ""))).find(selector)


def known_shape(obj: UvmObject, operation: Operation) -> Shape | None:
    """Return the shape that an operation's replies have: of the last reply that was kept, or of the description."""
    kept = (own_slots(obj).get(FIXTURES) or {}).get(operation.name)
    if kept is not None:
        shape: Shape = kept["shape"]
        return shape
    examples = [each for each in operation.replies if not isinstance(each, str)]
    return reply_shapes.merge(map(reply_shapes.shape_of, examples)) if examples else None


def list_unsound(root: Root) -> Iterator[tuple[str, str, str]]:
    """Yield the fixtures that say nothing of a reply: the object, the operation, and what is wrong."""
    made = ((name, obj) for name, obj in tools.names(root).items() if obj is not None)
    for name, obj in made:
        for operation, fixture in (own_slots(obj).get(FIXTURES) or {}).items():
            if operation_at(obj, operation) is None:
                yield name, operation, "its description has no such operation"
            elif fixture["digest"] != reply_shapes.digest_of(fixture["shape"]):
                yield name, operation, "its digest is of another shape"


def drop_fixture(name: str, operation: str, root: Root) -> None:
    """Forget the shape of an operation's replies: the next reply is compared with the description."""
    obj: Any = tools.find_tool(root, name)
    obj.fixtures = {name: each for name, each in own_slots(obj)[FIXTURES].items() if name != operation}


def fold(root: Root, mission: str, payload: ApiReplyPayload) -> None:
    """Keep the shape of a reply; a reading that it breaks is withdrawn, and wished for anew with this shape."""
    obj = tools.find_tool(root, payload["object"])
    operation = None if obj is None else operation_at(obj, payload["operation"])
    if obj is None or operation is None:
        return
    fixtures: dict[str, Fixture] = dict(own_slots(obj).get(FIXTURES) or {})
    before = fixtures.get(operation.name)
    if before is not None and before["digest"] == payload["digest"]:
        return
    again = [each for each in before["made_again"] if _within(each, payload["at"])] if before is not None else []
    selector = tools.READING + operation.name
    broken = reply_shapes.breaks(payload["changes"]) or selector not in own_slots(obj)
    if broken and len(again) < MOST_AGAIN and _wish_anew(root, obj, operation, payload):
        again.append(payload["at"])
    elif broken and selector in own_slots(obj):
        methods.redeclare(root, obj, selector, None, payload["at"], _withdrawal(payload))
    fixtures[operation.name] = Fixture(
        shape=payload["shape"], digest=payload["digest"], at=payload["at"], mission=mission,
        changes=[*payload["changes"]], made_again=again,
    )  # fmt: skip
    obj.fixtures = fixtures


def _wish_anew(root: Root, obj: UvmObject, operation: Operation, payload: ApiReplyPayload) -> bool:
    """Put an intent with the new shape in the place of the reading; False: the shape cannot be told to a coder.

    The intent derives from a reply, so that a person is asked before a method is made of it.
    """
    try:
        examples = reply_shapes.examples_of(payload["shape"])
    except ValueError:
        return False
    selector = tools.READING + operation.name
    text = describe(replace(operation, replies=tuple(examples)), selector)
    signature = f"{selector}(self, status, headers, body)"
    wish = Intent(text=text, signature=signature, may_learn=True, kind="tool")
    methods.redeclare(root, obj, selector, wish, payload["at"], _withdrawal(payload))
    setattr(obj, selector, wish)
    setattr(obj, SLOT_TRUST, {**(own_slots(obj).get(SLOT_TRUST) or {}), selector: "external"})
    return True


def _withdrawal(payload: ApiReplyPayload) -> tuple[str, str]:
    """Return who withdrew a reading, and why."""
    return "the service", f"its replies have changed: {'; '.join(payload['changes'][:3])}"


def _within(moment: str, now: str) -> bool:
    return datetime.fromisoformat(now) - datetime.fromisoformat(moment) < IN
