"""The codex as it ships is sound, and every refusal names file, line and remedy."""

from __future__ import annotations

import resource
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.genesis.conftest import Edit

from batos.genesis.codex import codex as codices
from batos.genesis.codex import declarations, value_checks
from batos.genesis.codex.codex import PILLARS, Codex
from batos.genesis.codex.reader import LARGEST
from batos.protocol.errors import CodexError, UsageError

PROTOCOLS = {
    "ROBIN": ("receptive_resonance_protocol_", "sages_koan_protocol_", "lantern_protocol_"),
    "BRICK": ("absurd_synthesis_protocol_", "rogues_gallery_protocol_", "gadget_generation_protocol_"),
    "BABS": ("digital_cartography_protocol_",),
    "ALFRED": ("doubt_protocol_", "system_integrity_audit_protocol_", "cognitive_efficiency_audit_protocol_"),
}


def test_shipped_personas(codex: Codex) -> None:
    """The four personas ship with exactly the pillars and key protocols of the design, in order."""
    assert tuple(codex.personas) == ("ROBIN", "BRICK", "BABS", "ALFRED")
    for name, persona in codex.personas.items():
        assert tuple(facet.slot for facet in persona.pillars if not facet.shelved) == PILLARS[name]
        assert tuple(protocol.slot for protocol in persona.protocols if not protocol.shelved) == PROTOCOLS[name]
        assert all(intent.examples and intent.inspiration for intent in (*persona.pillars, *persona.protocols))


def test_shipped_texts_are_short(codex: Codex) -> None:
    """What stands in every prompt of a small model is short: rules, personas, intents, templates."""
    assert len(codex.charter) + len(codex.house_rules) < 1200
    for persona in codex.personas.values():
        assert len(persona.system) < 700
        assert all(len(intent.intent) < 500 for intent in (*persona.pillars, *persona.protocols))
        assert all(len(prompt) < 600 for prompt in persona.prompts.values())


def test_shipped_lessons(codex: Codex) -> None:
    """Each persona ships with enough triggers and exemplars to be told from the others, in several scripts."""
    for persona in codex.personas.values():
        assert 15 <= len(persona.triggers) <= 40
        assert len(persona.exemplars) >= 25
        assert sum(not exemplar.isascii() for exemplar in persona.exemplars) >= 5


def test_shipped_models(codex: Codex) -> None:
    """All personas think with one model in one window, in each profile; the coder follows the profile's model."""
    for profile, model in (("default", "llama3.1:8b-instruct-q4_K_M"), ("small", "llama3.2:3b-instruct-q4_K_M")):
        assert {codex.model_for(name, profile) for name in PILLARS} == {model}
        assert {codex.options_for(name, profile)["num_ctx"] for name in PILLARS} == {4096}
        assert codex.profile(profile).coder == model
        assert codex.profile(profile).embedder == "all-minilm:latest"


def test_unknown_profile(codex: Codex) -> None:
    """Asking for a profile that there is not names those there are."""
    with pytest.raises(UsageError) as caught:
        codex.profile("huge")
    assert "default, small" in caught.value.remedy


def test_install_keeps_what_is_there(folder: Path) -> None:
    """Installing copies only absent files; what a person edited stays."""
    (folder / "robin.toml").write_text("# mine\n", encoding="utf-8")
    (folder / "babs.toml").unlink()
    assert codices.install(folder) == ["babs.toml"]
    assert (folder / "robin.toml").read_text(encoding="utf-8") == "# mine\n"


def test_digest_is_of_the_content(folder: Path, edit: Edit) -> None:
    """A comment, an order of keys and line ends change no digest; a word does."""
    before = codices.load(folder)
    path = folder / "babs.toml"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    edit("robin.toml", "[options]\nnum_ctx = 4096\nnum_predict = 1024\n",
         "# a remark\n[options]\nnum_predict = 1024\nnum_ctx = 4096\n")  # fmt: skip
    same = codices.load(folder)
    assert same.digest == before.digest
    assert same.texts["babs.toml"] == before.texts["babs.toml"]
    edit("robin.toml", "the heart of this mind", "the warm heart of this mind")
    assert codices.load(folder).digest != before.digest


def test_homes_with_the_same_files_share_what_was_read(folder: Path, tmp_path: Path, edit: Edit) -> None:
    """A file that differs is another codex, and a fault is told with the folder that has it."""
    other = tmp_path / "other"
    codices.install(other)
    assert codices.load(folder) is codices.load(other)
    edit("mind.toml", 'default_model = "', 'default_model = "x')
    assert codices.load(folder).default_model == f"x{codices.load(other).default_model}"
    for place in (folder, other):
        (place / "robin.toml").write_text("core_identity = 1", "utf-8")
        with pytest.raises(CodexError) as caught:
            codices.load(place)
        assert caught.value.file == str(place / "robin.toml")


def test_profiles_replace(folder: Path, edit: Edit) -> None:
    """A profile replaces model, coder, embedder and options; a persona's own model stands in every profile."""
    edit("mind.toml", "[profiles.small]\n", '[profiles.tiny]\nmodel = "qwen3:0.6b"\n'
         'embedder = "nomic-embed-text"\noptions = { num_ctx = 2048 }\n[profiles.small]\n')  # fmt: skip
    edit("brick.toml", "# BRICK:", 'model = "qwen2.5-coder:7b"\n# BRICK:')
    found = codices.load(folder)
    tiny = found.profile("tiny")
    assert (tiny.model, tiny.coder, tiny.embedder) == ("qwen3:0.6b", "qwen3:0.6b", "nomic-embed-text")
    assert found.model_for("ROBIN", "tiny") == "qwen3:0.6b"
    assert found.model_for("BRICK", "tiny") == "qwen2.5-coder:7b"
    assert found.options_for("ROBIN", "tiny")["num_ctx"] == 2048


REFUSALS = [
    ("mind.toml", 'embedder = "all-minilm:latest"', 'embeder = "all-minilm:latest"', "unknown key"),
    ("mind.toml", 'default_model = "llama3.1:8b-instruct-q4_K_M"', 'default_model = "gpt-oss:120b-cloud"', "cloud"),
    ("mind.toml", 'default_model = "llama3.1:8b-instruct-q4_K_M"', 'default_model = "kimi:Cloud"', "cloud"),
    ("mind.toml", 'model = "llama3.2:3b-instruct-q4_K_M"', 'model = "mine:local"', "reserved"),
    ("mind.toml", 'model = "llama3.2:3b-instruct-q4_K_M"', 'model = "two words"', "not a model's name"),
    ("mind.toml", 'name = "text_agent"', 'name = "text agent"', "cannot be an object's name"),
    ("robin.toml", '"sage_facet_"', '"sage_protocol_"', "not a facet's slot"),
    ("robin.toml", '"lantern_protocol_"', '"lantern"', "not a protocol's slot"),
    ("robin.toml", '"lantern_protocol_"', '"sages_koan_protocol_"', "declared twice"),
    ("robin.toml", "temperature = 0.8", "temprature = 0.8", "unknown option `temprature`"),
    ("robin.toml", "temperature = 0.8", 'temperature = "warm"', "`temperature` must be a number"),
    ("robin.toml", "num_predict = 1024", "num_predict = 0", "without end"),
    ("robin.toml", "num_predict = 1024", "num_predict = true", "must be a whole number"),
    ("robin.toml", "num_ctx = 4096", "num_ctx = 4000", "not a multiple of 256"),
    ("robin.toml", "num_ctx = 4096", "num_ctx = 0", "not a multiple of 256"),
    ("robin.toml", 'mode = "direct"', 'mode = "fast"', "`mode` is 'fast'"),
    ("robin.toml", "[options]", "[option]", "unknown key `option`"),
    ("robin.toml", 'triggers = [\n    "feel"', 'triggers = [\n    ""', "a list of texts, none of them blank"),
    ("brick.toml", '    "how to"', '    "feel", "how to"', "'feel' is a trigger of ROBIN too"),
    ("brick.toml", '"how to", ', '"How  to", "how to", ', "'how to' is a trigger twice"),
    ("brick.toml", '"debug", ', '"FEEL", ', "'FEEL' is a trigger of ROBIN too"),
    ("babs.toml", "how deep is lake baikal", "Nobody came to my birthday", "is an exemplar of ROBIN too"),
    ("brick.toml", "Write $count short", "Write $cout short", "unknown place `$cout`"),
    ("brick.toml", 'weave = """\n', 'weave = """\nIt costs $ 5.\n', "without a name"),
    ("alfred.toml", 'given = "audit"', 'may_learn = "no"\ngiven = "audit"', "true or false"),
    ("robin.toml", "min_parts = 2", "mn_parts = 2", "unknown condition `mn_parts`"),
    ("robin.toml", 'metric = "Hcog"', 'metric = "Hcg"', "`metric` is 'Hcg'"),
    ("robin.toml", 'signature = "sage_facet_(self, query)"', 'metric = "Hcog"', "no part of the metric"),
    ("robin.toml", 'signature = "sage_facet_(self, query)"', 'exemplars = ["a"]', "a facet has no `exemplars`"),
    ("alfred.toml", 'signature = "steward_facet_(self, query)"', "when = { min_parts = 1 }", "has no `when`"),
    ("babs.toml", "num_ctx = 4096", "num_ctx = 8192", "`num_ctx` is 8192, but 4096 for ROBIN"),
    ("babs.toml", "# BABS:", "BABS:", "not TOML"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new", "message"), REFUSALS)
def test_refusals(folder: Path, edit: Edit, file: str, old: str, new: str, message: str) -> None:
    """Each mistake is refused with what is wrong, the file, the line on which it stands, and what to do."""
    line = edit(file, old, new)
    with pytest.raises(CodexError) as caught:
        codices.load(folder)
    faults = codices.read(folder).faults
    fault = next(fault for fault in faults if message in fault.message)
    assert fault.file == str(folder / file)
    assert fault.remedy
    assert fault.message.startswith(f"{fault.file}:{fault.line}: ")
    assert fault.line in range(line, line + new.count("\n") + 1)
    assert fault.what == fault.message.removeprefix(f"{fault.file}:{fault.line}: ")
    assert caught.value.exit_code == 2
    assert [each.message for each in caught.value.faults] == [each.message for each in faults]


@pytest.mark.parametrize(("persona", "slot"), [(name, slot) for name, slots in PILLARS.items() for slot in slots])
def test_missing_pillar(folder: Path, edit: Edit, persona: str, slot: str) -> None:
    """A persona without one of its three pillars is refused, and the remedy names the slot to write."""
    edit(f"{persona.lower()}.toml", f'slot = "{slot}"', 'slot = "another_facet_"')
    faults = codices.read(folder).faults
    fault = next(each for each in faults if f"{persona} lacks its pillar `{slot}`" in each.message)
    assert slot in fault.remedy
    assert {each.field for each in faults if each is not fault} <= {f"pillars.{place}.signature" for place in range(3)}


def test_missing_file(folder: Path) -> None:
    """A file that is not there is told, with how to get it back."""
    (folder / "alfred.toml").unlink()
    with pytest.raises(CodexError, match=r"alfred\.toml: the file is missing") as caught:
        codices.load(folder)
    assert "genesis" in caught.value.remedy


def test_fifth_persona(folder: Path) -> None:
    """There are four personas: a file of any other name is refused; one that starts with a dot is no part."""
    (folder / ".draft.toml").write_text("x", encoding="utf-8")
    assert codices.read(folder).faults == ()
    (folder / "joker.toml").write_text("", encoding="utf-8")
    with pytest.raises(CodexError, match="no such part of the codex"):
        codices.load(folder)


def test_not_utf8(folder: Path) -> None:
    """Bytes that are no UTF-8 are told with their line."""
    path = folder / "robin.toml"
    path.write_bytes(b"a = 1\nb = '\xff'\n")
    with pytest.raises(CodexError) as caught:
        codices.load(folder)
    assert (caught.value.file, caught.value.line) == (str(path), 2)


def test_missing_keys(folder: Path) -> None:
    """An empty persona's file is refused once for every key that must be there."""
    (folder / "robin.toml").write_text("", encoding="utf-8")
    faults = codices.read(folder).faults
    missing = {fault.field for fault in faults}
    assert {"core_identity", "core_method", "triggers", "exemplars", "prompts.weave", "pillars"} <= missing


def test_all_faults_in_order(folder: Path, edit: Edit) -> None:
    """A check tells every fault of every file, by file and line; load raises the first of them."""
    edit("brick.toml", "num_predict = 1024", "num_predict = -1")
    edit("brick.toml", 'mode = "direct"', 'mode = "odd"')
    edit("mind.toml", 'embedder = "all-minilm:latest"', 'embedder = "x:local"')
    found = codices.read(folder)
    codex, faults = found.codex, found.faults
    assert codex is None
    assert [Path(fault.file).name for fault in faults] == ["mind.toml", "brick.toml", "brick.toml"]
    assert faults[1].line is not None
    assert faults[2].line is not None
    assert faults[1].line < faults[2].line
    with pytest.raises(CodexError) as caught:
        codices.load(folder)
    assert caught.value.message == faults[0].message


@settings(max_examples=25)
@given(st.data())
def test_any_damage_is_a_fault(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """However a file is cut, reading gives a codex or faults that name it and a remedy; nothing else is raised."""
    folder = tmp_path_factory.mktemp("codex")
    codices.install(folder)
    name = data.draw(st.sampled_from(sorted(codices.read_shipped())))
    text = codices.read_shipped()[name]
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 400)))
    (folder / name).write_text(text[:start] + text[end:], encoding="utf-8")
    found = codices.read(folder)
    codex, faults = found.codex, found.faults
    assert (codex is None) == bool(faults)
    assert all(fault.remedy and fault.file for fault in faults)


@pytest.mark.parametrize(
    "data",
    [b"x = " + b"[" * 50_000, b"seed = 0x" + b"f" * 5_000, b"\xff\xfe", b"#" * (LARGEST + 1)],
    ids=["nested", "number", "bytes", "large"],
)
def test_a_file_that_is_no_codex_is_refused_by_name(folder: Path, data: bytes) -> None:
    """Whatever bytes stand in a file of the codex, the error names the file and says what to do."""
    (folder / "babs.toml").write_bytes(data)
    with pytest.raises(CodexError) as caught:
        codices.load(folder)
    assert caught.value.file == str(folder / "babs.toml")
    assert caught.value.remedy


def test_a_number_of_an_option_fits(folder: Path, edit: Edit) -> None:
    """A seed of thousands of digits, in a codex that is sound otherwise, is refused at its line."""
    line = edit("robin.toml", "[options]\n", f"[options]\nseed = 0x{'f' * 5000}\n")
    with pytest.raises(CodexError, match="seed") as caught:
        codices.load(folder)
    assert caught.value.line == line + 1


def test_a_folder_in_the_place_of_a_file(folder: Path) -> None:
    """A folder by the name of a codex file, or a file by that of the folder, is told and not walked into."""
    (folder / "brick.toml").unlink()
    (folder / "brick.toml").mkdir()
    with pytest.raises(CodexError, match="not a file"):
        codices.load(folder)
    with pytest.raises(CodexError, match="cannot be put there"):
        codices.install(folder / "mind.toml")


def test_a_full_disk_leaves_no_half_a_codex(tmp_path: Path) -> None:
    """A file is copied whole or not at all, so that the next genesis goes on from there."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, before[1]))
    try:
        with pytest.raises(CodexError, match="cannot be put there: File too large"):
            codices.install(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert all(path.read_text(encoding="utf-8") == codices.read_shipped()[path.name] for path in tmp_path.iterdir())
    codices.install(tmp_path)
    codices.load(tmp_path)


def test_a_link_to_nowhere_is_a_persons_own(folder: Path) -> None:
    """What it led to is only away (a disk that is not mounted): nothing is put in its place, and it is told."""
    (folder / "brick.toml").unlink()
    (folder / "brick.toml").symlink_to(folder / "elsewhere.toml")
    assert codices.install(folder) == []
    with pytest.raises(CodexError, match="a broken link"):
        codices.load(folder)


def test_the_page_names_every_key() -> None:
    """docs/codex.md tells of every key, option, condition, template, place and pillar that a person may write."""
    page = (Path(__file__).parents[3] / "docs" / "codex.md").read_text(encoding="utf-8")
    keys = {key for name in codices.read_shipped() for key in tomllib.loads(codices.read_shipped()[name])}
    intents = {
        "slot",
        "name",
        "inspiration",
        "intent",
        "signature",
        "examples",
        "may_learn",
        "when",
        "makes",
        "given",
        "metric",
    }
    places = {f"${place}" for shape in value_checks.SHAPES.values() for place in shape.may}
    named = {
        *keys,
        *intents,
        "api",
        "model",
        *places,
        *value_checks.OLLAMA,
        *value_checks.OURS,
        *declarations.CONDITIONS,
        *value_checks.SHAPES,
    }
    named |= {slot for slots in PILLARS.values() for slot in slots}
    assert [word for word in sorted(named) if f"`{word}`" not in page] == []


def test_a_model_is_chosen_by_name(tmp_path: Path) -> None:
    """It is written as the model of all, and nothing else of the file changes; comments stay."""
    codices.install(tmp_path)
    before = (tmp_path / codices.MIND).read_text(encoding="utf-8")
    codices.choose_model(tmp_path, "default", "qwen2.5:7b")
    after = (tmp_path / codices.MIND).read_text(encoding="utf-8")
    assert [new for old, new in zip(before.splitlines(), after.splitlines(), strict=True) if old != new] == [
        'default_model = "qwen2.5:7b"'
    ]
    assert codices.read(tmp_path).codex is not None


@pytest.mark.parametrize(
    ("profile", "name", "why"),
    [("default", "gpt-oss:120b-cloud", "cloud"), ("default", "a b", "not a model"), ("small", "qwen2.5:7b", "its own")],
)
def test_a_model_that_cannot_be_chosen_changes_nothing(tmp_path: Path, profile: str, name: str, why: str) -> None:
    """One elsewhere, no name of a model, and a profile that names another one."""
    codices.install(tmp_path)
    before = (tmp_path / codices.MIND).read_bytes()
    with pytest.raises(UsageError, match=why):
        codices.choose_model(tmp_path, profile, name)
    assert (tmp_path / codices.MIND).read_bytes() == before
