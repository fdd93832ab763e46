"""Installs a generated object: its declaration is replaced by the object and all its methods are installed, or none."""

from __future__ import annotations

from dataclasses import replace

from batos.image.roots import Root
from batos.objects.method import Intent, Method
from batos.protocol.errors import Refused
from batos.records import methods, tools
from batos.records.candidates import Candidate


def install(root: Root, candidate: Candidate, at: str) -> list[Method]:
    """Make the object that a candidate's `selector` names, with all its methods. Refused: as `make`."""
    make(root, candidate)
    return [methods.install(root, each, at) for each in parts(candidate)]


def parts(candidate: Candidate) -> list[Candidate]:
    """Return the candidates of the object's methods, to be installed once the object exists."""
    return [replace(each, wish=None) for each in candidate.methods]


def make(root: Root, candidate: Candidate) -> None:
    """Make the object that a candidate's `selector` names, with the intents of its methods.

    Nothing is changed where it is refused. Refused: it exists already or is declared otherwise by now, or one of its
    methods may be none.
    """
    name = candidate.selector
    intent = tools.absent(root, name)
    if intent is None or methods.digest_of(intent) != candidate.intent:
        what = "exists already" if tools.find_tool(root, name) is not None else "is declared otherwise by now"
        raise Refused(f"{name} {what}", field="intent", remedy="Send your message again.")
    for each in candidate.methods:
        methods.check(each)
    intents = {each.selector: Intent(**(each.wish or {})) for each in candidate.methods}
    other = [each.selector for each in candidate.methods if methods.digest_of(intents[each.selector]) != each.intent]
    if other or not intents:
        what = f"{other[0]!r} was made from another intent than its own" if other else f"{name} has no methods"
        raise Refused(f"{name} is not made: {what}", field="intent", remedy="Generate it again.")
    tools.make(root, name, intent.text, intents)
