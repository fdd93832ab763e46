"""Names that stand for two things or hide their function, for the bench that counts them and the test of them."""

from __future__ import annotations

import ast
import builtins
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from prose_side import VERBS, Source, entries, parse, statements

#: Files whose name is given by Python.
GIVEN = frozenset({"__init__", "__main__"})
#: The heading in docs/words.md under which the table of file names stands.
HEADING = "## Files of the same name"
#: The most rows that the table may have.
ROWS = 25
#: Irregular participles and past forms. A form that is the bare verb too (read, put, set, run) is none.
IRREGULAR = frozenset(
    """
    became been began begotten begun bent bitten blown born borne bought bound broke broken brought built burnt came
    caught chose chosen clung dealt done drawn drew driven drunk dug dwelt eaten fallen fed fell felt flown
    forbidden forgiven forgot forgotten forsaken fought found froze frozen gave given gone got gotten grew grown
    handwritten heard held hid hidden hung kept knew known laid lain leant learnt led left lent lit lost made meant
    met mistaken outgrown overdrawn overridden overtaken overwritten paid proven ran rebuilt redone redrawn resent
    retold rewritten ridden risen rung said sang sat saw seen sent sewn shaken shone shorn shot shown shrunk slain
    slept slid sold sought spelt spent spilt spoilt spoke spoken spun stolen stood struck strung stuck stung sung
    sunk swept sworn swum taken taught thrown told took torn typewritten understood undone unheard unknown unmade
    unread unseen unsent unwritten went withdrawn withheld woke woken won worn wound woven written wrote
    """.split()
)
#: Words on -ed that are verbs or nouns of their own.
NO_PARTICIPLES = frozenset(
    "bed bleed breed creed deed ed embed exceed feed greed hatred heed hundred indeed need proceed red seed shed shred "
    "speed succeed weed".split()
)
#: Words after a participle that name nothing: `told_by` says no more than `told`. With `at` a name is a moment's.
SMALL = frozenset(
    "about above after again all alone already also anew as away back before below but by down else elsewhere for from "
    "here if in into it just long more now of off on once only or out over so than then there through to together too "
    "twice under until up well with within without yet".split()
)
#: Words with which a question or a clause begins, and no verb or noun.
QUESTIONS = frozenset("how of that what when where whether which who whom whose why".split())
#: First words of handlers: an event's participle follows them.
HANDLERS = frozenset({"on", "handle"})
#: Names that something outside of src/ gives, each with the giver.
GIVEN_NAMES = {
    "connection_lost": "asyncio.Protocol",
    "connection_made": "asyncio.Protocol",
    "data_received": "asyncio.Protocol",
    "eof_received": "asyncio.Protocol",
    "why": "the verb of the command line",
}

#: The module whose classes have the names of events, which are participles as well.
EVENTS = "event_payloads.py"
#: A word of a class name.
_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")

Function = ast.FunctionDef | ast.AsyncFunctionDef
Places = Mapping[str, list[str]]


def classes(files: Iterable[tuple[Path, Source]]) -> Places:
    """List where each class name of these files stands, nested classes too: two places are two things."""
    found: dict[str, list[str]] = defaultdict(list)
    for path, source in files:
        for entry in entries(path, source):
            if isinstance(entry.node, ast.ClassDef):
                found[entry.node.name].append(f"{path}:{entry.line}")
    return found


def stems(paths: Iterable[Path]) -> Places:
    """List where each file name stands."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        if path.stem not in GIVEN:
            found[path.stem].append(str(path))
    return found


def twice(places: Places) -> Places:
    """Return the names that stand in more than one place."""
    return {name: where for name, where in sorted(places.items()) if len(where) > 1}


def table(page: str) -> dict[str, frozenset[str]]:
    """Read the table of docs/words.md: file names that may stand twice, each with its folders under src/."""
    allowed = {}
    _, _, section = page.partition(HEADING)
    for line in section.partition("\n## ")[0].splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| `") and len(cells) == 3:
            allowed[cells[0].strip("`")] = frozenset(folder.strip().strip("`") for folder in cells[1].split(","))
    return allowed


def _folders(places: Iterable[str]) -> frozenset[str]:
    """Return the folders of these files, without src/."""
    return frozenset(Path(place).parent.relative_to("src").as_posix() for place in places)


def ambiguous(files: Iterable[tuple[Path, Source]], page: str) -> Places:
    """Return the class names and file names that stand for two things, without the pairs that the table allows."""
    files, allowed = list(files), table(page)
    found = {f"class {name}": where for name, where in twice(classes(files)).items()}
    for name, where in twice(stems(path for path, _ in files)).items():
        folders = _folders(where)
        if folders != allowed.get(name):
            found[f"file {name}"] = where
    return found


def stale(paths: Iterable[Path], page: str) -> list[str]:
    """List the rows of the table that name a file name which no longer stands twice in these folders."""
    found = twice(stems(paths))
    return [name for name, folders in table(page).items() if _folders(found.get(name, ())) != folders]


def is_participle(word: str) -> bool:
    """Test if a word is a participle or a past form, and not the bare verb."""
    return word in IRREGULAR or (word.endswith("ed") and word not in NO_PARTICIPLES)


def _is_predicate(function: Function) -> bool:
    """Test if a function is annotated to return a bool."""
    returns = ast.unparse(function.returns).strip("'\"") if function.returns is not None else ""
    return returns == "bool" or returns.startswith(("TypeGuard[", "TypeIs["))


def hides(function: Function) -> bool:
    """Test if a function's name is neither a verb nor a noun: a participle without a noun, or a clause.

    A name of several words may begin with a verb of prose_side.py (`raise_if_closed`) or be a handler's (`on_ended`),
    and a predicate may be a participle.
    """
    name = function.name
    words = [word for word in name.lower().split("_") if word]
    if not words or (name.startswith("__") and name.endswith("__")) or name in GIVEN_NAMES:
        return False
    if words[0] in QUESTIONS:
        return True
    named = list(words)
    while len(named) > 1 and named[-1] in SMALL:
        named.pop()
    begins_plainly = len(words) > 1 and words[0] in VERBS | HANDLERS
    return is_participle(named[-1]) and not begins_plainly and not _is_predicate(function)


def _exceptions(found: Iterable[ast.ClassDef]) -> set[str]:
    """Return the names of the classes that are exceptions, by their bases: a base of the files counts as well."""
    bases = {node.name: {ast.unparse(base).rsplit(".", 1)[-1] for base in node.bases} for node in found}
    names = {name for name in vars(builtins) if name.endswith(("Error", "Exception"))} | {"Exit"}
    while fresh := {name for name, own in bases.items() if own & names} - names:
        names |= fresh
    return names


def nameless_classes(files: Iterable[tuple[Path, Source]]) -> list[str]:
    """List the classes whose name ends with a participle, which leaves open what they are.

    An exception may: it says what has happened.
    """
    found = [
        (path, node)
        for path, source in files
        if isinstance(source, ast.Module) or "class " in source
        for node in statements(parse(source))
        if isinstance(node, ast.ClassDef)
    ]
    exceptions = _exceptions(node for _, node in found)
    return [
        f"{path}:{node.lineno}: {node.name} is no noun"
        for path, node in found
        if path.name != EVENTS and node.name not in exceptions and is_participle(_WORD.findall(node.name)[-1].lower())
    ]


def participles(path: Path, source: Source) -> Iterator[str]:
    """Yield each function of a file, private and inner ones too, whose name is neither a verb nor a noun."""
    for node in statements(parse(source)):
        if isinstance(node, Function) and hides(node):
            yield f"{path}:{node.lineno}: {node.name} is neither a verb nor the noun that it returns"
