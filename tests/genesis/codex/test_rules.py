"""What a person may get wrong in a codex beyond a single key, and what is said of it: file, line, reason, remedy."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.genesis.conftest import Edit

from batos.genesis.codex import codex as codices

WARM = "temperature = 0.8"
SAGE = '"sage_facet_(self, query)"'
PARTS = "min_parts = 2"
QUOTES = '"' * 3

REFUSALS = [
    ("robin.toml", WARM, "temprature = 0.8", "did you mean `temperature`?"),
    ("robin.toml", WARM, "temperature = 7", "`temperature` is 7, and may be 0 to 5"),
    ("robin.toml", WARM, "min_p = 1.5", "`min_p` is 1.5, and may be 0 to 1"),
    ("robin.toml", WARM, "seed = -2", "`seed` is -2"),
    ("robin.toml", WARM, "stop = []", "`stop` has 0 texts"),
    ("robin.toml", WARM, 'stop = ["end", ""]', "an empty text"),
    ("robin.toml", WARM, f"stop = ['a{QUOTES}b']", "no Modelfile can hold"),
    ("robin.toml", WARM, "temperature = inf", "`temperature` is inf"),
    ("robin.toml", WARM, 'model = "qwen3:0.6b"', "unknown option `model` here"),
    ("robin.toml", "num_predict = 1024", "num_predict = 4096", "no room for a question"),
    ("robin.toml", "num_ctx = 4096", "num_ctx = 2097152", "`num_ctx` is 2097152, and may be"),
    ("brick.toml", "num_ctx = 4096", "num_batch = 256", "`num_batch` is 256, but left to the daemon for ROBIN"),
    ("robin.toml", 'mode = "direct"', 'mode = "reason_feild"', "did you mean 'reason_field'?"),
    ("robin.toml", "# Who speaks", 'form = "slim"\n# Who speaks', "`form` is 'slim'"),
    ("robin.toml", 'name = "The Sage"', 'name = "  "', "`name` is empty"),
    ("robin.toml", 'name = "The Sage"', "name = 5", "must be a text, and is a whole number"),
    ("robin.toml", 'name = "The Sage"', 'name = "a\\u0007b"', "the control character U+0007"),
    ("robin.toml", '"sage_facet_"', '"Sage_facet_"', "not a facet's slot"),
    ("robin.toml", SAGE, '"sage_facet_(query)"', "first parameter is `self`"),
    ("robin.toml", SAGE, '"sage_facet(self)"', "the signature is that of `sage_facet`"),
    ("robin.toml", SAGE, '"sage_facet_ self"', "not a method's signature"),
    ("robin.toml", SAGE, '"sage_facet_(self): pass\\ndef evil()"', "not a method's signature"),
    ("robin.toml", "core_method =", f"core_identity = 'a {QUOTES} b'\ncore_method =", "not TOML"),
    ("robin.toml", PARTS, "min_words = 9, max_words = 3", "no question fits both"),
    ("robin.toml", PARTS, 'without = ["Integrity  AUDIT"], words = ["integrity audit"]', "in `words` and in `without`"),
    ("mind.toml", "[profiles.default]", '[profiles.default]\nmodel = "x"', "in the profile `default`"),
    ("mind.toml", "[profiles.small]", '[profiles."a b"]', "cannot be a profile's name"),
    ("mind.toml", 'embedder = "all-minilm:latest"', 'embedder = "LLAMA3.1:8b-instruct-q4_K_M"', "model that answers"),
    ("mind.toml", 'name = "text_agent"', 'name = "robin_prototype_obj"', "an object of the image"),
    ("mind.toml", "[[objects]]", "[[objects]]\nname = 'text_agent'\napi = 'x'\n[[objects]]", "declared twice"),
    ("mind.toml", "[[objects]]", "[objects]", "must be an array of tables"),
    ("mind.toml", 'embedder = "all-minilm:latest"', 'temperature = 1\nembedder = "all-minilm:latest"', "here"),
    ("mind.toml", 'embedder = "all-minilm:latest"', f'embedder = "{"a" * 81}"', "not a model's name"),
    ("mind.toml", 'embedder = "all-minilm:latest"', 'embedder = "a:b:c"', "not a model's name"),
    ("mind.toml", 'embedder = "all-minilm:latest"', 'embedder = "-a"', "not a model's name"),
]


@pytest.mark.parametrize(("file", "old", "new", "message"), REFUSALS)
def test_refused(folder: Path, edit: Edit, file: str, old: str, new: str, message: str) -> None:
    """Each mistake is one fault with its file, its line, what is wrong and what to do."""
    line = edit(file, old, new)
    fault = next(each for each in codices.read(folder).faults if message in each.what)
    assert Path(fault.file).name == file
    lines = range(line, line + new.count("\n") + 1)
    assert fault.line in lines or "declared twice" in message
    assert fault.remedy.endswith(".")


def test_quotes_that_no_modelfile_can_hold(folder: Path, edit: Edit) -> None:
    """Three double quotes in what becomes a model's SYSTEM text are refused before anything is made of it."""
    text = (folder / "robin.toml").read_text(encoding="utf-8")
    identity = text[text.index('core_identity = """') : text.index("core_method")]
    line = edit("robin.toml", identity, f"core_identity = 'I say {QUOTES} often.'\n")
    (fault,) = codices.read(folder).faults
    assert (fault.field, fault.line) == ("core_identity", line)
    assert "single quotes" in fault.remedy


def test_a_profile_without_room(folder: Path, edit: Edit) -> None:
    """Options of a profile count with those of each persona, and the message names the profile."""
    edit("mind.toml", "[profiles.small]", "[profiles.small]\noptions = { num_predict = 8192 }")
    faults = codices.read(folder).faults
    assert {Path(each.file).name for each in faults} == {"robin.toml", "brick.toml", "babs.toml", "alfred.toml"}
    assert all("in the profile `small`" in each.what for each in faults)


def test_a_trigger_of_two_names_both_places(folder: Path, edit: Edit) -> None:
    """A phrase that speaks for two personas is told with the file and line of each."""
    line = edit("brick.toml", '    "how to"', '    "feel", "how to"')
    (fault,) = codices.read(folder).faults
    assert (Path(fault.file).name, fault.line) == ("brick.toml", line)
    text = (folder / "robin.toml").read_text(encoding="utf-8").splitlines()
    place = int(fault.what.partition("robin.toml:")[2].rstrip(")"))
    assert '"feel"' in text[place - 1]


def test_a_missing_pillar_near_another_slot(folder: Path, edit: Edit) -> None:
    """A misspelt pillar is told as missing, with the slot that was probably meant and its line."""
    line = edit("robin.toml", 'slot = "sage_facet_"', 'slot = "sagee_facet_"')
    fault = next(each for each in codices.read(folder).faults if "lacks" in each.what)
    assert f"`sagee_facet_` (line {line}) is another" in fault.what


def test_a_misspelt_key_is_one_fault(folder: Path, edit: Edit) -> None:
    """What is there under a misspelt name is not said to be missing as well, in a table of tables neither."""
    edit("robin.toml", "core_identity =", "core_identiti =")
    edit("brick.toml", 'slot = "tamland_facet_"\nname =', 'slot = "tamland_facet_"\nnaem =')
    told = [(each.file.rpartition("/")[2], each.what) for each in codices.read(folder).faults]
    assert told == [
        ("robin.toml", "unknown key `core_identiti`: did you mean `core_identity`?"),
        ("brick.toml", "unknown key `naem`: did you mean `name`?"),
    ]


def test_a_key_in_the_wrong_place_is_told_its_own(folder: Path, edit: Edit) -> None:
    """A key that stands behind a line with brackets belongs to that table: the remedy says where it should stand."""
    edit("robin.toml", "[options]", '[options]\nmodel = "qwen3:0.6b"')
    edit("brick.toml", "[prompts]", "[prompts]\ntemperature = 0.5")
    edit("mind.toml", "[profiles.small]", '[profiles.small]\ncore_identity = "x"')
    places = {each.field: each.remedy for each in codices.read(folder).faults}
    assert "top of the file" in places["options.model"]
    assert "[options]" in places["prompts.temperature"]
    assert "persona's file" in places["profiles.small.core_identity"]


def test_every_file_is_read_to_its_end(folder: Path, edit: Edit) -> None:
    """What is wrong in a file that is not TOML hides nothing of the others: all is told in one reading."""
    (folder / "babs.toml").write_text("x = [", encoding="utf-8")
    (folder / "alfred.toml").unlink()
    edit("brick.toml", '    "how to"', '    "feel", "how to"')
    edit("robin.toml", "num_ctx = 4096", "num_ctx = 4000")
    edit("mind.toml", 'embedder = "all-minilm:latest"', 'embedder = "x:local"')
    found = [(Path(each.file).name, each.field) for each in codices.read(folder).faults]
    assert found == [
        ("mind.toml", "embedder"),
        ("robin.toml", "options.num_ctx"),
        ("brick.toml", "triggers.0"),
        ("babs.toml", None),
        ("alfred.toml", None),
    ]


def test_a_persona_with_a_base_of_its_own_may_differ(folder: Path, edit: Edit) -> None:
    """Options of the runner must be equal on one base only."""
    edit("babs.toml", "num_ctx = 4096", "num_ctx = 8192")
    edit("babs.toml", "# BABS:", 'model = "qwen3:0.6b"\n# BABS:')
    assert codices.read(folder).faults == ()


def test_marks_and_line_ends_of_other_editors(folder: Path) -> None:
    """A byte order mark and CR LF are accepted; UTF-16 and a NUL byte are told by name and line."""
    path = folder / "robin.toml"
    sound = path.read_bytes()
    path.write_bytes(b"\xef\xbb\xbf" + sound.replace(b"\n", b"\r\n"))
    assert codices.read(folder).faults == ()
    path.write_bytes(sound.decode().encode("utf-16"))
    assert codices.read(folder).faults[0].what == "UTF-16"
    path.write_bytes(sound.replace(b"[options]", b"[opt\x00ions]", 1))
    (fault,) = codices.read(folder).faults
    assert fault.line == sound[: sound.index(b"[options]")].count(b"\n") + 1


def test_no_codex_at_all(tmp_path: Path) -> None:
    """Where there is no folder, that is one fault and not one for each file."""
    (fault,) = codices.read(tmp_path / "nowhere").faults
    assert "there is no codex yet" in fault.what


def _toml(value: object) -> str:
    """A value as TOML, its tables inline."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{json.dumps(key)} = {_toml(each)}' for key, each in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _places(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield (*path, key)
        yield from _places(each, (*path, key))


ANYTHING = st.recursive(
    st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=4,
)


@given(name=st.sampled_from(sorted(codices.read_shipped())), data=st.data())
def test_any_value_anywhere_is_a_codex_or_faults(name: str, data: st.DataObject) -> None:
    """Whatever stands in the place of any value, what comes is a codex, or faults with file, line and remedy."""
    values = tomllib.loads(codices.read_shipped()[name])
    *path, last = data.draw(st.sampled_from(sorted(_places(values), key=str)))
    spot: Any = values
    for part in path:
        spot = spot[part]
    spot[last] = data.draw(ANYTHING)
    text = "".join(f"{json.dumps(key)} = {_toml(each)}\n" for key, each in values.items())
    found = codices.parse({**codices.read_shipped(), name: text})
    assert (found.codex is None) == bool(found.faults)
    for fault in found.faults:
        assert fault.file.endswith(".toml")
        assert fault.line is not None
        assert fault.remedy


def test_links_that_lead_nowhere(folder: Path) -> None:
    """A link in a circle cannot be read, one to nowhere is told as such; neither stands for the shipped text."""
    (folder / "robin.toml").unlink()
    (folder / "robin.toml").symlink_to(folder / "robin.toml")
    (folder / "babs.toml").unlink()
    (folder / "babs.toml").symlink_to(folder / "nowhere.toml")
    for found in (codices.read(folder), codices.standing(folder)[0]):
        said = {Path(each.file).name: each.what for each in found.faults}
        assert said["robin.toml"].startswith("cannot be read:")
        assert said["babs.toml"] == "a broken link"
    (folder / "robin.toml").unlink()
    found, absent = codices.standing(folder)
    assert absent == {"robin.toml"}
