"""The verbs about the codex: shown with its sources, checked with every fault, compared with what the image runs on."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.processes import User
from ZODB.FileStorage import FileStorage

from batos.genesis.codex import codex as codices

NOWHERE = "http://127.0.0.1:9"


def change(user: User, file: str, old: str, new: str) -> int:
    """Edit a file of the home's codex; answers the line."""
    path = user.home / "codex" / file
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")
    return text[: text.index(old)].count("\n") + 1


@pytest.fixture
def newcomer(tmp_path: Path) -> User:
    """Somebody who has the shipped codex, no image and no daemon."""
    user = User(tmp_path / "home", NOWHERE)
    codices.install(user.home / "codex")
    return user


@pytest.mark.parametrize("group", ["codex", "audit"])
def test_a_group_without_a_verb_names_its_verbs(newcomer: User, group: str) -> None:
    """One line says what is needed, not a page of help behind the word error; the exit is that of a wrong usage."""
    ran = newcomer.run(group)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: `batos {group}` needs one of: ")
    assert len(ran.err.splitlines()) == 2


def test_show_says_where_each_value_comes_from(newcomer: User) -> None:
    """Without a daemon and an image: the overview for all, and for one every value with its line."""
    line = change(newcomer, "robin.toml", "temperature = 0.8", "temperature = 0.5")
    overview = newcomer.run("codex", "show", "--json")
    assert overview.code == 0
    assert overview.document["data"]["personas"]["ROBIN"]["edited"] == ["options.temperature"]
    assert overview.document["data"]["absent"] == []
    shown = newcomer.run("codex", "show", "Robin", "--json").document["data"]["values"]
    values = {each["key"]: each for each in shown}
    assert values["options.temperature"] == {
        "key": "options.temperature",
        "value": 0.5,
        "source": f"robin.toml:{line}",
        "edited": True,
    }
    assert values["options.think"]["source"] == "default"
    assert "sage_facet_.intent" in values
    people = newcomer.run("codex", "show", "robin").out
    assert f"options.temperature = 0.5  [robin.toml:{line}, edited]" in people
    assert "model = llama3.1:8b-instruct-q4_K_M  [default_model (mind.toml:" in people


def test_show_of_nobody(newcomer: User) -> None:
    """A persona that is none is a usage error that names those there are."""
    ran = newcomer.run("codex", "show", "joker")
    assert ran.code == 2
    assert "alfred" in ran.err


def test_nothing_is_written(tmp_path: Path) -> None:
    """Before the first genesis the shipped codex is shown and compared, a check says that there is none; no file is
    made of it.
    """
    user = User(tmp_path / "home", NOWHERE)
    ran = [user.run("codex", "show"), user.run("codex", "diff", "--json"), user.run("codex", "check")]
    assert [each.code for each in ran] == [0, 0, 1]
    assert "as shipped" in ran[0].out
    assert ran[1].document["data"]["diff"] == []
    assert ran[1].document["data"]["against"] == "shipped"
    assert "no codex yet" in ran[1].document["data"]["note"]
    assert "batos genesis" in ran[2].out
    assert {path.name for path in user.home.iterdir()} <= {"logs"}


def test_a_sound_codex(newcomer: User) -> None:
    """A check of sound files ends with 0, with a document and in words."""
    found = newcomer.run("codex", "check", "--json").document["data"]
    assert (found["ok"], found["faults"]) == (True, [])
    assert {each["persona"] for each in found["prompts"]} == {"ROBIN", "BRICK", "BABS", "ALFRED"}
    ran = newcomer.run("codex", "check")
    assert (ran.code, ran.out.split(":")[0]) == (0, "The codex is sound")


def test_a_check_tells_every_fault(newcomer: User) -> None:
    """All faults of all files, each as file:line: message with its remedy, and as data; the check ends with 1."""
    lines = [
        change(newcomer, "mind.toml", 'embedder = "all', 'embeder = "all'),
        change(newcomer, "brick.toml", '"debug", ', '"FEEL", '),
    ]
    (newcomer.home / "codex" / "joker.toml").write_text("", encoding="utf-8")
    ran = newcomer.run("codex", "check", "--json")
    found = ran.document["data"]["faults"]
    assert ran.code == 1
    assert [Path(each["file"]).name for each in found] == ["mind.toml", "brick.toml", "joker.toml"]
    assert [each["line"] for each in found[:2]] == lines
    assert [each["field"] for each in found[:2]] == ["embeder", "triggers.9"]
    assert all(each["remedy"] for each in found)
    people = newcomer.run("codex", "check")
    assert people.code == 1
    for each in found:
        where = each["file"] if each["line"] is None else f"{each['file']}:{each['line']}"
        assert f"{where}: {each['message']}\n    {each['remedy']}" in people.out
    assert people.out.endswith("3 faults in 3 files.\n")
    shown = newcomer.run("codex", "show", "--json")
    assert (shown.code, shown.document["error"]["code"]) == (2, "codex")
    assert len(shown.document["error"]["also"]) == 2


@pytest.mark.parametrize("how", ["file", "environment"])
def test_a_profile_that_there_is_not(newcomer: User, how: str) -> None:
    """A profile that the settings name and the codex has not is told where it is set."""
    settings = newcomer.home / "batos.toml"
    if how == "file":
        settings.write_text('missions = 4\nprofile = "huge"\n', encoding="utf-8")
    environ = {"BATOS_PROFILE": "huge"} if how == "environment" else {}
    ran = newcomer.run("codex", "check", "--json", environ=environ)
    (fault,) = ran.document["data"]["faults"]
    assert ran.code == 1
    assert (fault["file"], fault["line"]) == ((str(settings), 2) if how == "file" else ("BATOS_PROFILE", None))
    assert "default, small" in fault["remedy"]


def test_diff_says_what_the_next_mission_makes_of_it(user: User) -> None:
    """What diff foretells is what genesis does: the personas' models made anew, and the slots; then nothing differs."""
    assert user.run("codex", "diff").out == "No value differs from the codex of the image.\n"
    change(user, "robin.toml", "temperature = 0.8", "temperature = 0.5")
    change(user, "robin.toml", 'inspiration = "Winnie the Pooh"', 'inspiration = "Piglet"')
    told = user.run("codex", "diff", "--json").document["data"]
    assert (told["against"], told["note"], told["faults"]) == ("image", "", [])
    assert {"-temperature = 0.8", "+temperature = 0.5", "--- image/robin.toml"} <= set(told["diff"])
    assert told["summary"]["models_made_anew"] == ["ROBIN"]
    assert told["summary"]["slots_written"] == ["ROBIN.still_point_facet_"]
    people = user.run("codex", "diff").out
    assert "models made again: ROBIN" in people
    made = user.run("genesis", "--json").document["data"]
    assert {step["persona"] for step in made["plan"]["steps"] if step["kind"] == "create"} == {"ROBIN"}
    assert "robin_prototype_obj.still_point_facet_ changed" in made["changes"]
    assert user.run("codex", "diff", "--json").document["data"]["diff"] == []
    shipped = user.run("codex", "diff", "--shipped", "--json").document["data"]
    assert (shipped["against"], shipped["summary"]["models_made_anew"]) == ("shipped", ["ROBIN"])


def test_diff_names_the_slots_that_were_redefined(user: User) -> None:
    """The codex's value does not act there; where it was brought back, nothing is named."""
    assert user.run("codex", "diff", "--json").document["data"]["redefined"] == []
    assert user.run("slot", "redefine", "ROBIN.temperature", "0.3").code == 0
    told = user.run("codex", "diff", "--json").document["data"]
    assert told["redefined"] == [{"slot": "ROBIN.temperature", "value": 0.3, "codex": 0.8}]
    assert "  ROBIN.temperature: 0.3 instead of 0.8" in user.run("codex", "diff").out.splitlines()
    assert user.run("slot", "rollback", "ROBIN.temperature").code == 0
    assert user.run("codex", "diff").out == "No value differs from the codex of the image.\n"


def test_diff_beside_the_owner_of_the_image(user: User) -> None:
    """An image that another process has open is looked at all the same, and stays that process'."""
    change(user, "robin.toml", "temperature = 0.8", "temperature = 0.5")
    before = (user.home / "live_image.fs").read_bytes()
    owner = FileStorage(str(user.home / "live_image.fs"))
    try:
        told = user.run("codex", "diff", "--json").document["data"]
    finally:
        owner.close()
    assert (told["against"], told["summary"]["models_made_anew"]) == ("image", ["ROBIN"])
    assert (user.home / "live_image.fs").read_bytes() == before


def test_diff_of_a_faulty_codex_and_a_damaged_image(user: User) -> None:
    """The texts are compared though they cannot be understood, and where the image cannot be read, with what ships."""
    change(user, "robin.toml", "temperature = 0.8", "temprature = 0.8")
    told = user.run("codex", "diff", "--json").document["data"]
    assert told["summary"] is None
    assert len(told["faults"]) == 1
    assert "+temprature = 0.8" in told["diff"]
    assert "batos codex check" in user.run("codex", "diff").out
    (user.home / "live_image.fs").write_bytes(b"no database")
    ran = user.run("codex", "diff", "--json")
    assert (ran.code, ran.document["data"]["against"]) == (0, "shipped")
    assert "cannot be read" in ran.document["data"]["note"]
