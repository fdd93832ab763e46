"""The allow-list: what the format's page says, what the database may load, and that nothing else is ever touched."""

from __future__ import annotations

import asyncio
import os
import pickletools
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from BTrees.IOBTree import IOBTree
from persistent.mapping import PersistentMapping
from tests.image.installing import install, standing
from tests.image.open_image import answer, brief, open_image, thought_in
from tests.image.questions import asking, made
from transaction import TransactionManager
from ZODB.blob import Blob
from ZODB.DB import DB
from ZODB.FileStorage import FileStorage

from batos.image import roots
from batos.image.attached_files import INLINE_BYTES
from batos.image.classes import ALLOWED, BTREES, LIBRARIES, OURS, class_factory
from batos.image.image import LivingImage
from batos.image.records import Archive, Segment
from batos.image.roots import named_objects
from batos.image.transactions import snapshot
from batos.inference.journal import Journal, Record
from batos.objects import method
from batos.objects.method import Intent, Primitive
from batos.protocol.errors import ForbiddenClass
from batos.records.approvals import ask

PAGE = Path(__file__).parents[2] / "docs" / "image-format.md"


def listed(heading: str) -> set[tuple[str, str]]:
    """The classes of one table of the page."""
    section = PAGE.read_text(encoding="utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    names = re.findall(r"^\| `([\w.]+)` \|", section, re.MULTILINE)
    return {(module, name) for module, _, name in (each.rpartition(".") for each in names)}


@pytest.mark.parametrize(("heading", "classes"), [("Our classes", OURS), ("Containers of the libraries", LIBRARIES)])
def test_the_page_and_the_code_list_the_same_classes(heading: str, classes: frozenset[tuple[str, str]]) -> None:
    """docs/image-format.md names each class that the database may load, and no other."""
    assert listed(heading) == classes


def test_the_page_and_the_code_list_the_same_btrees() -> None:
    """The page's table of families names each class that is allowed, and no other."""
    section = PAGE.read_text(encoding="utf-8").partition("## BTrees\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([\w.]+)` \| (.*) \|$", section, re.MULTILINE)
    assert {(module, name) for module, names in rows for name in re.findall(r"\w+", names)} == BTREES


def test_what_a_clone_copies_can_be_loaded() -> None:
    """Every container that belongs to an object is plain data or a class of the list."""
    kinds = {(kind.__module__, kind.__name__) for kind in method._FILL}
    assert kinds - {("builtins", "dict"), ("builtins", "list")} <= ALLOWED


@pytest.mark.parametrize(("module", "name"), sorted(ALLOWED))
def test_each_listed_class_exists(module: str, name: str) -> None:
    """A class of the list is found under its name."""
    assert class_factory(None, module, name).__name__ in {name, f"{name}Py"}


class Order:
    """A value whose pickle is a call."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> Any:
        return self.call


def written(home: Path, **root: Any) -> None:
    """A database file that was made with plain ZODB."""
    db = DB(FileStorage(str(home / "live_image.fs")))
    manager = TransactionManager()
    connection = db.open(manager)
    connection.root().update(root)
    manager.commit()
    connection.close()
    db.close()


async def test_a_call_in_the_root_is_refused(tmp_path: Path) -> None:
    """A file whose root would make a folder when it is loaded does not open, and the folder is not made."""
    trap = tmp_path / "trap"
    written(tmp_path, missions=Order(os.mkdir, str(trap)))
    with pytest.raises(ForbiddenClass, match=r"posix\.mkdir") as refused:
        async with open_image(tmp_path):
            pass
    assert (refused.value.code, refused.value.exit_code) == ("forbidden_class", 5)
    assert not trap.exists()


@pytest.mark.parametrize(
    ("module", "name"), [("batos.image.methods", "Lineage"), ("batos.image.approvals", "Approval")]
)
def test_a_class_that_moved_is_found_by_its_former_name(module: str, name: str) -> None:
    """What an earlier version wrote of methods and approvals loads as the records of today."""
    assert class_factory(None, module, name) is class_factory(None, "batos.image.records", name)


async def test_a_call_behind_a_reference_is_refused(tmp_path: Path) -> None:
    """An object of a listed class whose state would make a folder is refused when it is loaded."""
    trap = tmp_path / "trap"
    written(tmp_path, inner=PersistentMapping(evil=Order(os.mkdir, str(trap))))
    async with open_image(tmp_path) as image:
        with image.snapshot() as root, pytest.raises(ForbiddenClass, match=r"posix\.mkdir"):
            named_objects(root)["inner"].keys()
    assert not trap.exists()


async def test_an_unlisted_class_behind_a_reference_is_refused(tmp_path: Path) -> None:
    """A harmless class that is not on the list is refused all the same, before its object is made."""
    written(tmp_path, inner=PersistentMapping(ratio=Fraction(1, 2)))
    async with open_image(tmp_path) as image:
        with image.snapshot() as root, pytest.raises(ForbiddenClass, match=r"fractions\.Fraction"):
            named_objects(root)["inner"].keys()


async def test_an_unlisted_module_is_never_imported(tmp_path: Path) -> None:
    """A module that the file names is not even imported."""
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "unlisted_module.py").write_text(
        "from pathlib import Path\nPath(__file__).with_name('imported').touch()\nclass Thing:\n    pass\n"
    )
    sys.path.insert(0, str(folder))
    try:
        written(tmp_path, thing=import_module("unlisted_module").Thing())
        sys.modules.pop("unlisted_module")
        (folder / "imported").unlink()
        with pytest.raises(ForbiddenClass, match="unlisted_module"):
            async with open_image(tmp_path):
                pass
        assert not (folder / "imported").exists()
        assert "unlisted_module" not in sys.modules
    finally:
        sys.path.remove(str(folder))


def globals_in(pickle: bytes) -> Iterator[tuple[str, str]]:
    """The classes that a pickle names; a record is two pickles, one behind the other."""
    end = 0
    for _ in range(2):
        for opcode, argument, position in pickletools.genops(pickle[end:]):
            assert not opcode.name.startswith(("EXT", "STACK_GLOBAL", "INST")), "another way to name a class"
            if opcode.name == "GLOBAL":
                module, _, name = str(argument).rpartition(" ")
                yield {"__builtin__": "builtins"}.get(module, module), name
            last = position or 0
        end += last + 1


def named_in(db: DB) -> set[tuple[str, str]]:
    """Every class that any record of a database names."""
    return {each for transaction in db.storage.iterator() for record in transaction for each in globals_in(record.data)}


async def fill(image: LivingImage) -> None:
    """Write at least one of everything that the format knows, through the parts that write it."""
    long = b"x" * (INLINE_BYTES + 1)
    name = await image.accept(brief(), {sha256(long).hexdigest(): long})
    for number in range(40):
        await image.accept(brief(str(number)))
    with image.transaction(name) as transaction:
        thought = answer(thought_in(image, transaction, name))
        thought.list, thought.turns = transaction.new(IOBTree()), None
        thought.list.update(dict.fromkeys(range(100), name))
        await transaction.commit(thought)

    def define(root: Any) -> None:
        thought = image.find(root, name)[2]
        thought.wish = Intent("say hello")
        thought.say_ = Intent("say hello")
        install(root, thought, "say_", "def say_(self):\n    return 'hello'\n")
        ask(root, asking(made(thought, "say_", standing(root, thought, "say_"), "def say_(self):\n    return 'hi'\n")))
        thought.log_ = Primitive("traits.log")
        thought.segment = Segment("text", b"")
        thought.archive = Archive(b"", ())
        thought.tags = {"a", "b"}
        thought.kinds = frozenset({"c"})
        owned = {*BTREES, ("BTrees.Length", "Length"), ("persistent.list", "PersistentList")}
        thought.owned = [class_factory(None, *each)() for each in sorted(owned)]

    await image.writer.apply(define)


async def test_every_class_of_the_list_is_written_by_something(tmp_path: Path) -> None:
    """Image and journal name no class that is not listed, and between them each that is."""
    async with open_image(tmp_path) as image:
        await fill(image)

        journal = Journal(image.journal_db, image.journal_writer)
        await journal.write(Record("k", "m-1", "a#0", "robin", "d", {"messages": []}, "done", "then"))
        image_names = await asyncio.to_thread(named_in, image.db)
        found = image_names | await asyncio.to_thread(named_in, image.journal_db)
        assert found == ALLOWED
        with snapshot(image.db) as root:
            assert isinstance(next(iter(root[roots.ATTACHMENTS].values())).blob, Blob)


@pytest.mark.parametrize("value", [datetime(2026, 11, 21, tzinfo=UTC), Decimal(1), Fraction(1, 2), bytearray(b"x"), 1j])
async def test_what_could_not_be_loaded_is_not_stored(value: object) -> None:
    """A value of an unlisted class fails the commit of who wrote it, by name; the next commit goes through."""
    async with open_image(None) as image:
        name = await image.accept(brief())
        with image.transaction(name) as transaction:
            thought = answer(thought_in(image, transaction, name))
            thought.kept = [{"when": value}]
            with pytest.raises(ForbiddenClass, match=type(value).__name__) as refused:
                await transaction.commit(thought)
        assert "image-format" in refused.value.remedy
        with pytest.raises(ForbiddenClass, match=type(value).__name__):
            await image.writer.apply(lambda root: root.__setitem__("kept", value))
        await image.accept(brief("goes on"))


@pytest.mark.parametrize("text", ["cposix\nsystem\n", "cdatetime\ndatetime\n(tR.", "pass\nelse\n" * 50, "c\nc\nc\n"])
async def test_text_that_looks_like_a_class_is_text(text: str) -> None:
    """What is only written about is stored and read back."""
    async with open_image(None) as image:
        name = await image.accept(brief(text))
        with image.snapshot() as root:
            assert image.find(root, name)[0].value["text"] == text
