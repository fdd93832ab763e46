"""Commands that follow from the declarations of verbs: arguments, options, help, completion, and the asking itself."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from types import ModuleType, UnionType
from typing import Annotated, Any, Final, Literal, TypeAlias, Union, cast, get_args, get_origin

import click
from pydantic import AfterValidator
from pydantic.fields import FieldInfo

from batos.cli.command_line import DefaultVerb, Subverbs, examples, given_moment, given_name
from batos.cli.completion import COMPLETIONS
from batos.cli.doors.choosing import open_door
from batos.cli.doors.door import Door, Opened
from batos.cli.typed_names import ask_of_memories, past_moment, place_of, tell_moment
from batos.cli.verb_options import VerbCall, run, with_server
from batos.client.pending import OnEvent
from batos.protocol.brief_checks import utc_moment
from batos.protocol.wire_messages import Meaning, error_of
from batos.verbs.wire_verb import Args, Noun, Reply, WireVerb

Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]
#: The fields that no person gives: who asks, and what doors and the rights of guests say.
_OURS: Final = frozenset({"user", "follow", "mine"})
#: The most characters of a name.
_NAME: Final = 256


def command_of(name: str, module: ModuleType) -> click.Command:
    """Make the command of a name from what a module declares: a verb, or a noun with verbs of its own."""
    noun = next((each for each in vars(module).values() if isinstance(each, Noun) and each.name == name), None)
    return group(noun, module) if noun is not None else command(next(_verbs(name, module)))


def group(noun: Noun, module: ModuleType, kind: type[DefaultVerb] = DefaultVerb) -> click.Group:
    """Make the command of a noun with its verbs in a module; `kind` says when its default is meant."""
    plain = Subverbs(noun.name, help=noun.help)
    made = kind(noun.name, help=noun.help, default=noun.default) if noun.default else plain
    for verb in _verbs(noun.name, module):
        made.add_command(command(verb))
    return made


def _verbs(word: str, module: ModuleType) -> Iterator[WireVerb[Any, Any]]:
    """Yield the verbs that a module declares whose command begins with a word."""
    return (each for each in vars(module).values() if isinstance(each, WireVerb) and each.words[:1] == [word])


def command(verb: WireVerb[Any, Any]) -> click.Command:
    """Make the command of a verb that asks once, and tells the reply in the words of its declaration."""

    @take(verb)
    def ask_and_tell(called: VerbCall, given: Mapping[str, object]) -> int:
        return tell(called, verb, ask_for(called, verb, given))

    return ask_and_tell


def tell(called: VerbCall, verb: WireVerb[Any, Reply], found: Reply) -> int:
    """Write the reply of a verb, and return its exit code.

    4: a part of what was asked for is refused. 1: it is not `ok`. Else that of the error which it has with it, if any.
    """
    called.answer(found, lambda told: verb.in_words(told, whole=called.verbose))
    if told := cast("Mapping[str, object] | None", found.get("error")):
        return error_of(told).exit_code
    return 4 if found.get("refused") else int(found.get("ok") is False)


def take(verb: WireVerb[Any, Any], *left: str) -> Callable[[Callable[..., int]], click.Command]:
    """Make a command of a function that gets the call, the verb's arguments, and options that it has besides.

    The fields that are `left` out are not a person's to give.
    """
    fields = {name: each for name, each in verb.args.model_fields.items() if name not in _OURS and name not in left}

    def decorate(work: Callable[..., int]) -> click.Command:
        @functools.wraps(work)
        def run_verb(called: VerbCall, **typed: object) -> int:
            given = {name: value for name in fields if _is_given(value := _pop(typed, name))}
            user = verb.args.model_fields.get("user")
            if user is not None and Meaning.ASKER in _meanings(user):
                given["user"] = called.settings.asker
            return work(called, given, **typed)

        own: list[click.Parameter] = run_verb.__dict__.pop("__click_params__", [])
        made = with_server(run_verb)
        # click reads them backwards: those of all verbs come last in its help, and before them those of the function.
        made.__dict__["__click_params__"] += own
        for each in reversed([*_parameters(verb, fields)]):
            made = each(made)
        epilog = examples(*verb.examples) if verb.examples else None
        declared = click.command(verb.words[-1], help=verb.help, short_help=verb.summary, epilog=epilog)
        return declared(made)

    return decorate


def ask_for(called: VerbCall, verb: WireVerb[Args, Reply], given: Mapping[str, object]) -> Reply:
    """Ask a verb as it was declared, and say of which moment the reply is."""

    def on_event(_event: str, keys: Mapping[str, object]) -> None:
        called.note(verb.progress.format_map(keys))

    opened, heard = open_door(called, reads=verb.reads), on_event if verb.progress else None
    if any(Meaning.MEMORY in _meanings(each) for each in verb.args.model_fields.values()):
        found = cast("Reply", run(ask_of_memories(opened, verb.name, given, heard)))
    else:
        found = run(ask_once(opened, verb, given, heard))
    tell_moment(called, found)
    return found


async def ask_once(
    opened: Opened, verb: WireVerb[Args, Reply], args: Mapping[str, object], on_event: OnEvent | None = None
) -> Reply:
    """Ask one thing at a door, close the door, and return the result."""
    async with opened as way:
        return await ask(way, verb, args, on_event)


async def ask(
    way: Door, verb: WireVerb[Args, Reply], args: Mapping[str, object], on_event: OnEvent | None = None
) -> Reply:
    """Ask one thing at an open door, and return the result with the types of its keys."""
    return cast("Reply", await way.call(verb.name, args, on_event))


# -- what a person types for the fields of a verb


def _parameters(verb: WireVerb[Any, Any], fields: Mapping[str, FieldInfo]) -> Iterator[Decorator]:
    """Yield the arguments of a command in the order of the command line, then the options in that of the fields."""
    standing = [each for each in verb.typed.split() if each.strip("[.]").isupper()]
    spelled = {name.lower(): each for each, _, name in (one.partition("=") for one in verb.typed.split()) if name}
    for word in standing:
        name = word.strip("[.]").lower()
        if name in fields:
            yield _argument(word, name, fields[name])
    named = {word.strip("[.]").lower() for word in standing}
    for name, field in fields.items():
        if name not in named:
            yield from _options(name, spelled.get(name, f"--{name.replace('_', '-')}"), field)


def _argument(word: str, name: str, field: FieldInfo) -> Decorator:
    kind, notes = _unwrap(field.annotation, field.metadata)
    many = get_origin(kind) is list
    if many:
        kind, notes = _unwrap(get_args(kind)[0], [])
    more: dict[str, Any] = {"nargs": -1, "metavar": word} if many else _default(field)
    return click.argument(
        name, type=_type(kind, notes), required=not word.startswith("["), shell_complete=COMPLETIONS.get(name), **more
    )


def _default(field: FieldInfo) -> dict[str, Any]:
    """Return the default of a field as click takes it: none at all where there is none, which is no None."""
    return {"default": field.default} if not field.is_required() and field.default else {}


def _options(name: str, spelled: str, field: FieldInfo) -> Iterator[Decorator]:
    kind, notes = _unwrap(field.annotation, field.metadata)
    told = field.description or ""
    if name == "as_of":
        yield click.option(spelled, metavar="WHEN", type=past_moment, help=_AS_OF)
    elif kind is bool:
        yield click.option(spelled, name, is_flag=True, help=told)
    elif get_origin(kind) is list:
        inner, said = _unwrap(get_args(kind)[0], [])
        if not get_args(inner):
            yield click.option(spelled, name, type=_type(inner, said), multiple=True, metavar=name.upper(), help=told)
        for choice in get_args(inner):
            which = f"{told.rstrip('.')}: {choice}."
            yield click.option(f"{spelled}-{choice}", name, flag_value=choice, multiple=True, help=which)
    else:
        read = _type(kind, notes)
        shown = None if isinstance(read, click.ParamType) else _METAVARS.get(read, name.upper())
        yield click.option(
            spelled, name, type=read, required=field.is_required(), show_default=True,
            help=told, metavar=shown, shell_complete=COMPLETIONS.get(name), **_default(field),
        )  # fmt: skip


#: The words for what is read by these.
_METAVARS: Final[Mapping[Any, str]] = {given_moment: "TIME", str: "TEXT"}
_AS_OF: Final = "As it was then: a time (9:00, yesterday 9:00, 2h ago), right after a MISSION, or a tid:0x..."


def _unwrap(annotation: object, notes: Collection[object]) -> tuple[Any, list[Any]]:
    """Return the type of a field without None, and all that is noted of it."""
    found = list(notes)
    while (origin := get_origin(annotation)) in (Annotated, Union, UnionType):
        inner = get_args(annotation)
        if origin is Annotated:
            annotation, said = inner[0], inner[1:]
            found += [note for each in said for note in (each.metadata if isinstance(each, FieldInfo) else [each])]
        else:
            annotation = next(each for each in inner if each is not type(None))
    return annotation, found


def _meanings(field: FieldInfo) -> list[Any]:
    kind, notes = _unwrap(field.annotation, field.metadata)
    return _unwrap(get_args(kind)[0], notes)[1] if get_origin(kind) is list else notes


def _type(kind: object, notes: Collection[object]) -> Any:
    """Return the type of a parameter, which refuses what the verb would refuse, and reads what people write."""
    least, most = _find_bound(notes, "ge"), _find_bound(notes, "le")
    if get_origin(kind) is Literal:
        return click.Choice(get_args(kind), case_sensitive=False)
    if kind is int:
        return click.IntRange(least, most)
    if kind is float:
        return click.FloatRange(least, most)
    if Meaning.PLACE in notes:
        return _whole_place
    if Meaning.TARGET in notes:
        return granted_target
    if Meaning.MEMORY in notes:
        return place_of
    if any(isinstance(each, AfterValidator) and each.func is utc_moment for each in notes):
        return given_moment
    longest = _find_bound(notes, "max_length")
    return given_name if longest is not None and longest <= _NAME else str


def _find_bound(notes: Collection[object], name: str) -> int | None:
    """Return a bound that is noted of a field, if there is one."""
    return next((found for each in notes if (found := getattr(each, name, None)) is not None), None)


def _whole_place(value: str) -> str:
    """Return an address as it stands, and a path from the root. Raises: click.BadParameter: it is empty."""
    given = given_name(value)
    return given if re.match(r"[a-z]+://", given) else str(Path(given).absolute())


#: Words that stand for a source: `any`, `memory`, a language, a host with or without a path.
_SOURCE: Final = re.compile(r"any|memory|[a-z]{2,3}|[\w-]+(\.[\w-]+)+(:\d+)?(/.*)?")


def granted_target(value: str) -> str:
    """Return a word for a source as it stands, where there is no such file; else as a place."""
    return value if _SOURCE.fullmatch(value) and not Path(value).exists() else _whole_place(value)


def _pop(typed: dict[str, Any], name: str) -> Any:
    value = typed.pop(name, None)
    return list(value) if isinstance(value, tuple) else value


def _is_given(value: object) -> bool:
    return value is not None and value is not False and value != []
