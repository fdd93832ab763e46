"""Export and import: what was imported says what was exported, and its export is the same byte for byte."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from BTrees.IOBTree import IOBTree
from BTrees.OOBTree import OOBTree
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from persistent.mapping import PersistentMapping
from tests.care.test_backups import said_by
from tests.care.test_verification import bridge, grown
from tests.history import lived
from tests.image.open_image import uri_of
from tests.image.servers import ask_postgres, postgres_server, zeo_server, zeo_uri
from ZODB.utils import z64

from batos.care import mind_export, verification
from batos.image import object_states, roots
from batos.image.ids import oid_text
from batos.image.image import LivingImage, Opening
from batos.image.readable import open_read_only
from batos.protocol.brief import as_file
from batos.protocol.errors import BatosError, BriefError, Refused, UsageError
from batos.testing import scripted_uvm


def exported(home: Path, folder: Path) -> dict[str, int]:
    """Export a home."""
    with open_read_only(uri_of(home), "") as pair:
        return mind_export.export_mind(pair, folder)


@asynccontextmanager
async def emptied(home: Path) -> AsyncIterator[LivingImage]:
    """An empty image in files."""
    await asyncio.to_thread(home.mkdir, exist_ok=True)
    image = await asyncio.to_thread(LivingImage, Opening(uri_of(home), ""))
    try:
        yield image
    finally:
        await asyncio.to_thread(image.close)


async def imported(folder: Path, home: Path) -> dict[str, int]:
    """Import an export."""
    async with emptied(home) as image:
        return (await mind_export.import_mind(image, folder))[0]


@pytest.mark.parametrize("seed", [1, 3])
async def test_an_imported_life_says_what_it_said_and_exports_the_same(tmp_path: Path, seed: int) -> None:
    """Missions, methods, memories, vectors, files: every byte of the lines and of the blobs."""
    home, copy = tmp_path / "home", tmp_path / "copy"
    async with scripted_uvm(home, bridge(), memory=False, method_control=0) as uvm:
        await lived.live(uvm, seed)
        await uvm.missions.ask({"text": "What is salt?"}, [as_file("salt.txt", b"Salt is white. " * 6_000)])
    counts = await asyncio.to_thread(exported, home, tmp_path / "first")
    assert await imported(tmp_path / "first", copy) == counts
    assert counts["blobs"] == 1
    await asyncio.to_thread(exported, copy, tmp_path / "second")
    for name in (mind_export.LINES, *(f"blobs/{each.name}" for each in (tmp_path / "first" / "blobs").iterdir())):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()
    one, other = await said_by(copy), await said_by(home)
    for said in (one, other):
        for key in [key for key in said if key.startswith("show ")]:
            said[key][0].pop("tid", None)  # of the commit that wrote it here
    assert one == other


async def test_trees_of_many_nodes_are_imported_beside_the_objects_that_had_the_lowest_ids(tmp_path: Path) -> None:
    """A node of a large tree has an oid that the export does not name: it is none that an object of the export has."""
    await grown(tmp_path / "home")

    def fill(root: Any) -> None:
        root["many"] = OOBTree()
        for number in range(300):
            root["many"][f"m{number:03}"] = PersistentMapping({"number": number})

    async with emptied(tmp_path / "home") as image:
        await image.writer.apply(fill)
        await image.journal_writer.apply(fill)
    counts = await asyncio.to_thread(exported, tmp_path / "home", tmp_path / "first")
    assert await imported(tmp_path / "first", tmp_path / "copy") == counts
    await asyncio.to_thread(exported, tmp_path / "copy", tmp_path / "second")
    assert (tmp_path / "first" / mind_export.LINES).read_bytes() == (
        tmp_path / "second" / mind_export.LINES
    ).read_bytes()
    async with emptied(tmp_path / "copy") as image:  # and what is written later has an id of its own too
        await image.writer.apply(fill)
        with image.snapshot() as now:
            root: Any = now
            assert [each["number"] for each in root["many"].values()] == list(range(300))


async def test_the_nodes_of_a_server_are_not_imported(tmp_path: Path) -> None:
    """Nor their notes: a record that nobody has ended would keep missions from running for ever."""
    await grown(tmp_path / "home")

    def add_nodes(root: Any) -> None:
        record: Any = PersistentMapping(name="elsewhere", ended=False, beat=PersistentMapping(count=0))
        root[roots.NODES], root[roots.PUBLISHER] = IOBTree({7: record}), PersistentMapping(fence=7, wanted=0)
        root[roots.SUSPECTED] = PersistentMapping({"7": ()})

    async with emptied(tmp_path / "home") as image:
        await image.writer.apply(add_nodes)
    await asyncio.to_thread(exported, tmp_path / "home", tmp_path / "export")
    await imported(tmp_path / "export", tmp_path / "copy")
    async with emptied(tmp_path / "copy") as image:
        with image.snapshot() as root:
            assert not {roots.NODES, roots.PUBLISHER, roots.SUSPECTED} & set(root)
        assert verification.find_faults(image.db) == []


@contextmanager
def server_places(kind: str, folder: Path) -> Iterator[tuple[str, str]]:
    """An image and a journal on a server of a kind, with a folder here for its blobs."""
    cache = folder / "cache"
    if kind == "zeo":
        folder.mkdir()
        with zeo_server(folder) as port:
            yield zeo_uri(port, f"blob_dir={cache}"), ""
    else:
        with postgres_server() as server:
            ask_postgres(server, "CREATE DATABASE image", "CREATE DATABASE journal")
            yield f"{server}image?blob_dir={cache}", f"{server}journal"


@pytest.mark.blocks_loop
@pytest.mark.parametrize("kind", ["zeo", "postgres"])
async def test_a_mind_moves_to_a_server_and_back(tmp_path: Path, kind: str) -> None:
    """With its blobs; it is asked there, and its export is made beside that node."""
    async with scripted_uvm(tmp_path / "home", bridge(), memory=False, method_control=0) as uvm:
        await uvm.missions.ask({"text": "What is salt?"}, [as_file("salt.txt", b"Salt is white. " * 6_000)])
    counts = await asyncio.to_thread(exported, tmp_path / "home", tmp_path / "first")
    with server_places(kind, tmp_path / "server") as (uri, journal):
        image = await asyncio.to_thread(LivingImage, Opening(uri, journal))
        try:
            assert (await mind_export.import_mind(image, tmp_path / "first"))[0] == counts
            with pytest.raises(Refused, match="already"):
                await mind_export.import_mind(image, tmp_path / "first")
        finally:
            await asyncio.to_thread(image.close)
        usual: dict[str, Any] = {"memory": False, "image": uri, "journal": journal}
        async with scripted_uvm(tmp_path / "node", bridge(), **usual) as uvm:
            await uvm.missions.ask({"text": "Who winds the lamp?", "effort": "reflex"})
            with open_read_only(uri, journal) as pair:
                again = await asyncio.to_thread(mind_export.export_mind, pair, tmp_path / "second")
    assert again["blobs"] == counts["blobs"] == 1
    await imported(tmp_path / "second", tmp_path / "copy")
    said = await said_by(tmp_path / "copy")
    assert {each["text"] for each in said["lines"]} == {"What is salt?", "Who winds the lamp?"}


async def test_an_export_with_blobs_is_refused_by_a_server_without_a_folder_for_them(tmp_path: Path) -> None:
    """The remedy names the folder's option."""
    async with scripted_uvm(tmp_path / "home", bridge(), memory=False, method_control=0) as uvm:
        await uvm.missions.ask({"text": "What is salt?"}, [as_file("salt.txt", b"Salt is white. " * 6_000)])
    await asyncio.to_thread(exported, tmp_path / "home", tmp_path / "export")
    with server_places("zeo", tmp_path / "server") as (uri, journal):
        image = await asyncio.to_thread(LivingImage, Opening(uri.partition("?")[0], journal))
        try:
            with pytest.raises(Refused, match="no folder") as refused:
                await mind_export.import_mind(image, tmp_path / "export")
        finally:
            await asyncio.to_thread(image.close)
    assert "blob_dir" in refused.value.remedy


async def test_a_mind_is_not_imported_over_another(tmp_path: Path) -> None:
    """Nor exported into a folder with something in it."""
    await grown(tmp_path / "home")
    await asyncio.to_thread(exported, tmp_path / "home", tmp_path / "export")
    with pytest.raises(UsageError, match="not empty"):
        exported(tmp_path / "home", tmp_path / "export")
    with pytest.raises(Refused, match="already"):
        await imported(tmp_path / "export", tmp_path / "home")


async def test_a_damaged_export_is_refused_by_its_line_and_leaves_nothing(tmp_path: Path) -> None:
    """Cut, foreign, hostile: each is named, and another import into the same home goes well."""
    await grown(tmp_path / "home")
    await asyncio.to_thread(exported, tmp_path / "home", tmp_path / "export")
    file = tmp_path / "export" / mind_export.LINES
    good = file.read_text().splitlines(keepends=True)
    at = next(number for number, line in enumerate(good) if '"db":"image"' in line and "UvmObject" in line)
    line = json.loads(good[at])
    for number, (changed, named) in enumerate(
        (
            ({0: '{"format":"other","version":1}\n'}, "another format"),
            ({0: '{"format":"batos-image","version":99}\n'}, "another format"),
            ({at: good[at][:40] + "\n"}, f"line {at + 1}"),
            ({at: json.dumps({**line, "kind": "os.system"}) + "\n"}, "no kind"),
            ({at: json.dumps({**line, "kind": "builtins.eval"}) + "\n"}, "no kind"),
            ({at: json.dumps({**line, "oid": "oid:0xzz"}) + "\n"}, "no oid"),
            ({at: json.dumps({**line, "oid": ["oid:0x1"]}) + "\n"}, "no oid"),
            ({at: json.dumps({**line, "oid": "oid:0xffffffffffffffff"}) + "\n"}, "no oid"),
            ({at: json.dumps({**line, "kind": {}}) + "\n"}, "no kind"),
            ({at: "[" * 100_000 + "\n"}, f"line {at + 1}"),
            ({at: json.dumps({**line, "slots": {"a": 1}})[:-2] + "9" * 5_000 + "}}\n"}, f"line {at + 1}"),
            ({at: "\udcff\n"}, f"line {at + 1}"),
            ({at: json.dumps({**line, "slots": {"a": {"$ref": "oid:0xffffff"}}}) + "\n"}, "not there"),
            ({at: json.dumps({**line, "slots": {"a": {"$evil": 1}}}) + "\n"}, "marks no value"),
            ({at: json.dumps({**line, "slots": 7}) + "\n"}, "no object"),
            ({at: ""}, "not there"),
        )
    ):
        whole = "".join(changed.get(n, each) for n, each in enumerate(good))
        file.write_bytes(whole.encode("utf-8", "surrogateescape"))
        with pytest.raises(BriefError, match=named):
            await imported(tmp_path / "export", tmp_path / f"into{number}")
    file.write_text("".join(good))
    await imported(tmp_path / "export", tmp_path / "into3")
    assert (await said_by(tmp_path / "into3"))["names"] == (await said_by(tmp_path / "home"))["names"]
    with pytest.raises(BriefError, match="no mind"):
        await imported(tmp_path / "absent", tmp_path / "into")


async def test_an_export_with_an_object_of_a_wrong_kind_is_refused(tmp_path: Path) -> None:
    """Under a key of the root stands what the image keeps there, or nothing comes of it."""
    await grown(tmp_path / "home")
    await asyncio.to_thread(exported, tmp_path / "home", tmp_path / "export")
    file = tmp_path / "export" / mind_export.LINES
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    root = next(line for line in lines if line.get("db") == "image" and line["oid"] == oid_text(z64))
    root["slots"]["data"]["missions"] = root["slots"]["data"]["queued"]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(BriefError, match="missions of the image is a OOTreeSet"):
        await imported(tmp_path / "export", tmp_path / "into")


@pytest.mark.parametrize("lacking", ["image", "journal", "both", "all"])
async def test_an_export_that_lacks_a_whole_part_is_refused(tmp_path: Path, lacking: str) -> None:
    """As one whose copy was cut off between two lines: no mind without its journal comes of it, and no empty one."""
    await grown(tmp_path / "home")
    await asyncio.to_thread(exported, tmp_path / "home", tmp_path / "export")
    file = tmp_path / "export" / mind_export.LINES
    left = "" if lacking == "all" else file.read_text()
    for each in ("image", "journal") if lacking == "both" else (lacking,):
        left = "".join(line for line in left.splitlines(keepends=True) if f'"db":"{each}"' not in line)
    file.write_text(left)
    with pytest.raises(BriefError, match="has nothing of the"):
        await imported(tmp_path / "export", tmp_path / "into")
    async with emptied(tmp_path / "into") as image:
        with image.snapshot() as root:
            assert not dict(root)


@pytest.mark.parametrize("name", ["mind.jsonl", "blobs/stolen", "codex/stolen.md"])
async def test_an_export_with_a_link_is_refused(tmp_path: Path, name: str) -> None:
    """A link of a stranger's would bring any file of this machine into the home."""
    await grown(tmp_path / "home")
    await asyncio.to_thread(exported, tmp_path / "home", tmp_path / "export")
    (tmp_path / "secret").write_bytes((tmp_path / "export" / mind_export.LINES).read_bytes())
    link = tmp_path / "export" / name
    link.parent.mkdir(exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(tmp_path / "secret")
    with pytest.raises(BriefError, match="link"):
        await imported(tmp_path / "export", tmp_path / "into")


async def test_an_export_with_a_method_that_the_guardian_refuses_leaves_nothing(tmp_path: Path) -> None:
    """Its calls neither: a good export is imported into the same home afterwards."""
    async with scripted_uvm(tmp_path / "home", bridge(), memory=False, method_control=0) as uvm:
        await lived.live(uvm, 1)
    await asyncio.to_thread(exported, tmp_path / "home", tmp_path / "export")
    file = tmp_path / "export" / mind_export.LINES
    good = file.read_text()
    objects = [json.loads(line) for line in good.splitlines()]
    method = next(each for each in objects if str(each.get("kind")).endswith(".Method"))
    method["slots"]["source"] += "    import os\n"
    file.write_text("".join(json.dumps(each) + "\n" for each in objects))
    with pytest.raises(BatosError, match="guardian"):
        await imported(tmp_path / "export", tmp_path / "into")
    file.write_text(good)
    await imported(tmp_path / "export", tmp_path / "into")


_DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
        | st.frozensets(st.integers() | st.text(max_size=3), max_size=3)
    ),
    max_leaves=12,
)


@given(_DATA)
def test_any_value_comes_back_as_it_was(value: object) -> None:
    """Through JSON, with its types."""
    coded = json.loads(json.dumps(object_states.encode(value)))
    back = object_states.decode(coded, pytest.fail)
    assert (back, type(back)) == (value, type(value))


_MARKS = st.sampled_from(("$ref", "$tuple", "$dict", "$set", "$bytes", "$float", "$x", "a"))
_HOSTILE = st.recursive(
    st.none() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_MARKS, inner, max_size=2),
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(_HOSTILE)
def test_a_hostile_value_is_refused(value: object) -> None:
    """Nothing is called, and nothing runs for ever."""

    def find(oid: str) -> PersistentMapping[str, int]:
        if oid == "evil":
            raise BriefError("it is not there")
        return PersistentMapping()

    try:
        object_states.decode(value, find)
    except (BatosError, ValueError, TypeError):
        return
