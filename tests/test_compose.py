"""Compose, Dockerfile and entrypoint against their specifications and against the code: without an engine."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import click
import jsonschema
import pytest
from tests.composing import ROOT, dockerfile, filled, laid_over, read, sent, variables

import batos
from batos.cli import entry
from batos.cli.command_line import DefaultVerb
from batos.client.addresses import parse_listening
from batos.config import Settings, load
from batos.genesis.daemon_listing import OLDEST

SCHEMA: dict[str, Any] = json.loads((ROOT / "tests/data/compose-spec/compose-spec.json").read_text(encoding="utf-8"))
BASE = read((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
CPU = read((ROOT / "docker-compose.cpu.yml").read_text(encoding="utf-8"))
HOST = read((ROOT / "docker-compose.host.yml").read_text(encoding="utf-8"))
EXAMPLE = (ROOT / ".env.example").read_text(encoding="utf-8")
GUIDE = (ROOT / "docs/compose.md").read_text(encoding="utf-8")
ENTRYPOINT = ROOT / "scripts" / "container.sh"
STAGES = dockerfile((ROOT / "Dockerfile").read_text(encoding="utf-8"))
#: Every file that may stand alone or over the first, as the specification merges them.
FILES: dict[str, dict[str, Any]] = {
    "docker-compose.yml": BASE,
    "with docker-compose.cpu.yml": laid_over(BASE, CPU),
    "with docker-compose.host.yml": laid_over(BASE, HOST),
    **{
        f"with snippet {number} of docs/compose.md": laid_over(BASE, read(text))
        for number, text in enumerate(re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL), 1)
    },
}
Which = Literal["ollama", "batos"]


def service(which: Which, file: str = "docker-compose.yml", **environ: str) -> dict[str, Any]:
    """A service as an engine would start it."""
    found: dict[str, Any] = filled(FILES[file]["services"][which], environ)
    return found


def instructions(word: str) -> list[Any]:
    """The instructions of that name in the stage that is run."""
    return [line for line in STAGES[-1] if line.word == word]


def check_command(words: list[str]) -> None:
    """A call of `batos` is one that its command line takes: every verb, option and argument."""
    command: click.Command = entry.batos
    context = click.Context(command, info_name="batos")
    rest = list(words)
    while isinstance(command, click.Group) and (rest or not command.invoke_without_command):
        rest = command.with_verb(rest) if isinstance(command, DefaultVerb) else rest
        name = rest.pop(0) if rest else ""
        found = command.get_command(context, name)
        assert found is not None, f"batos {shlex.join(words)}: there is no {name!r}"
        command, context = found, click.Context(found, parent=context, info_name=name)
    command.parse_args(context, rest)


# -- the files by themselves


@pytest.mark.parametrize("file", FILES)
def test_it_is_what_the_specification_says(file: str) -> None:
    """The schema of the Compose Specification takes it, as it is written and with its variables filled in."""
    jsonschema.Draft202012Validator(SCHEMA).validate(FILES[file])
    jsonschema.Draft202012Validator(SCHEMA).validate(filled(FILES[file], {}))


@pytest.mark.parametrize(
    ("which", "key", "value"),
    [("batos", "reed_only", True), ("ollama", "healthcheck", {"tests": []}), ("batos", "ports", 7717)],
)
def test_the_schema_catches(which: Which, key: str, value: object) -> None:
    """A mistyped key or a value of another kind is refused, so passing means something."""
    wrong = laid_over({"services": {which: {"image": "x"}}}, {"services": {which: {key: value}}})
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SCHEMA).validate(wrong)


def test_the_dockerfile_has_no_known_fault() -> None:
    """hadolint finds nothing in it, not even a matter of style."""
    linter = Path(sys.executable).with_name("hadolint")
    done = subprocess.run(
        [str(linter), "--no-color", str(ROOT / "Dockerfile")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_the_dockerfiles_linter_catches(tmp_path: Path) -> None:
    """hadolint refuses an image that is not pinned and a user who is root."""
    (tmp_path / "Dockerfile").write_text("FROM python:latest\nUSER root\nCMD python\n", encoding="utf-8")
    linter = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([str(linter), str(tmp_path / "Dockerfile")], capture_output=True, text=True, check=False)
    assert {"DL3002", "DL3007", "DL3025"} <= set(re.findall(r"DL\d+", done.stdout))


@pytest.mark.parametrize(
    "script", [*sorted((ROOT / "scripts").glob("*.sh")), ROOT / ".ci" / "run"], ids=lambda p: p.name
)
def test_shellcheck_has_nothing_to_say(script: Path) -> None:
    """Every script of the checkout, the entrypoint among them, is free of what shellcheck knows."""
    checker = Path(sys.executable).with_name("shellcheck")
    if not checker.exists():
        pytest.skip("shellcheck is packaged for fewer machines than BAT OS")
    command = [str(checker), "--external-sources", str(script.relative_to(ROOT))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


# -- the image against the checkout


def test_what_is_copied_is_there_and_sent() -> None:
    """Every source of a COPY exists and is sent to the builder; what stages copy from each other has a name."""
    ignore = (ROOT / ".dockerignore").read_text(encoding="utf-8")
    names = {line.words[-1] for stage in STAGES for line in stage if line.word == "FROM" and "AS" in line.words}
    for line in (line for stage in STAGES for line in stage if line.word == "COPY"):
        if "from" in line.flags:
            assert line.flags["from"] in names
            continue
        for source in line.words[:-1]:
            assert (ROOT / source).exists(), source
            assert sent(ignore, source), source
    assert not sent(ignore, ".batos/live_image.fs")
    assert not sent(ignore, "adapters/robin")


def test_all_that_the_wheel_needs_is_copied() -> None:
    """The files that the build of the wheel reads are in the builder: readme, licence, package, pins."""
    copied = {source for line in STAGES[0] if line.word == "COPY" for source in line.words[:-1]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needed = {project["project"]["readme"], *project["project"]["license-files"], "pyproject.toml", "constraints.txt"}
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed |= {Path(each).parts[0] for each in (*wheel["packages"], *wheel["force-include"])}
    assert copied == needed


def test_its_base_is_pinned() -> None:
    """Both stages start from one exact tag of a Python that the project takes."""
    bases = {stage[0].words[0] for stage in STAGES}
    (base,) = bases
    found = re.fullmatch(r"python:(\d+)\.(\d+)\.(\d+)-slim-\w+", base)
    assert found is not None
    assert (int(found[1]), int(found[2])) >= (3, 11)


def test_it_runs_the_entrypoint_as_nobody_special() -> None:
    """A user by number who owns the home alone; the entrypoint is the script that is copied; serving is the default."""
    (user,) = instructions("USER")
    made = " ".join(line.rest for line in instructions("RUN"))
    uid, gid = user.rest.split(":")
    assert int(uid) >= 10_000
    assert f"groupadd --gid {gid} " in made
    assert f"useradd --uid {uid} --gid {gid} " in made
    assert "--mode=0700 /data" in made
    (entry,), (command,) = instructions("ENTRYPOINT"), instructions("CMD")
    (script,) = [line for line in instructions("COPY") if "from" not in line.flags]
    assert script.words == ["scripts/container.sh", f"/usr/local/bin/{json.loads(entry.rest)[0]}"]
    assert script.flags["chmod"] == "0755"
    check_command(json.loads(command.rest))


def test_its_version_is_ours() -> None:
    """The image is tagged by the version that is built into it."""
    assert service("batos")["image"] == f"batos:{batos.__version__}"


# -- the services against the code


@pytest.mark.parametrize("file", FILES)
def test_ollama_is_pinned_and_keeps_to_itself(file: str) -> None:
    """A supported version by its tag, no cloud, models on a volume, no port outside the network of the two."""
    found = service("ollama", file)
    tag = re.fullmatch(r"ollama/ollama:(\d+)\.(\d+)\.(\d+)(-rocm)?", found["image"])
    assert tag is not None
    assert (int(tag[1]), int(tag[2])) >= OLDEST
    assert found["environment"]["OLLAMA_NO_CLOUD"] == "1"
    assert found["volumes"] == ["ollama:/root/.ollama"]
    assert "ports" not in found
    assert found["healthcheck"]["test"] == ["CMD", "ollama", "list"]


def test_the_card_is_passed_through_unless_there_is_none() -> None:
    """All NVIDIA cards are Ollama's; the override for processors takes that away and asks for a smaller model."""
    (device,) = service("ollama")["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}
    assert "deploy" not in service("ollama", "with docker-compose.cpu.yml")
    assert service("batos", "with docker-compose.cpu.yml")["environment"]["BATOS_PROFILE"] == "small"


@pytest.mark.parametrize("file", FILES)
def test_every_variable_is_a_setting(file: str) -> None:
    """What BAT OS is told is a setting of its own, by its own name, and all together are sound."""
    environ = service("batos", file)["environment"]
    names = {"OLLAMA_HOST", *(f"BATOS_{name.upper()}" for name in Settings.model_fields)}
    assert set(environ) <= names
    settings = load({name: str(value) for name, value in environ.items()}).settings
    assert settings.home == Path("/data")
    daemon = urlsplit(settings.ollama_host)
    other = "host.docker.internal" if "extra_hosts" in service("batos", file) else "ollama"
    assert (daemon.hostname, daemon.port) == (other, 11434)
    assert not parse_listening(settings.bind, "bind").is_loopback
    assert not parse_listening(settings.events, "events").is_loopback


def test_what_the_shell_may_say_has_the_settings_own_defaults() -> None:
    """A variable that is passed on has the default that it has without compose; the guide explains each."""
    taken = variables(BASE)
    ours = {"BATOS_UID": "10001", "BATOS_GID": "10001", "BATOS_DATA": "batos", "BATOS_LOG_LEVEL": "info"}
    ours |= {"BATOS_GENESIS": "auto", "BATOS_PORT": "7717", "BATOS_EVENTS_PORT": "7718", "BATOS_MEMORY": "4g"}
    ours |= {"OLLAMA_FLASH_ATTENTION": "1", "BATOS_HTTP_PORT": "7719"}
    ours |= {"BATOS_WEBUI_PORT": "3000", "BATOS_WEBUI_KEY": ""}
    passed = {name: default for name, default in taken.items() if name not in ours}
    defaults = {f"BATOS_{name.upper()}": str(field.default) for name, field in Settings.model_fields.items()}
    assert passed == {name: defaults[name] for name in passed}
    assert {name: taken[name] for name in ours} == ours
    for name in (*taken, *variables(CPU), *variables(HOST)):
        assert f"`{name}`" in GUIDE, name


def test_both_are_told_the_same_of_the_card() -> None:
    """What the budget has to know of the daemon is said once for both."""
    daemon, ours = BASE["services"]["ollama"]["environment"], BASE["services"]["batos"]["environment"]
    assert daemon["OLLAMA_NUM_PARALLEL"] == ours["BATOS_PARALLEL"]
    assert daemon["OLLAMA_KV_CACHE_TYPE"] == ours["BATOS_KV_TYPE"]
    # A smaller cache is one only where the daemon is told this as well.
    assert service("ollama", BATOS_KV_TYPE="q8_0")["environment"]["OLLAMA_FLASH_ATTENTION"] == "1"


def ports_of(settings: Settings) -> list[int]:
    """The ports of the wire, of events and of HTTP."""
    places = {"bind": settings.bind, "events": settings.events, "http": f"tcp://{settings.http}"}
    return [parse_listening(place, name).port for name, place in places.items()]


@pytest.mark.parametrize("file", FILES)
def test_ports_are_published_on_loopback_alone(file: str) -> None:
    """The three ports that the server binds, the same outside, on 127.0.0.1; the image exposes no other."""
    found = service("batos", file)
    settings = load(found["environment"]).settings
    bound = ports_of(settings)
    assert bound == ports_of(Settings(home=Path("/data")))
    assert found["ports"] == [f"127.0.0.1:{port}:{port}" for port in bound]
    (exposed,) = instructions("EXPOSE")
    assert [int(port) for port in exposed.words] == bound


def test_a_second_stack_has_ports_of_its_own() -> None:
    """The same inside and outside, so that the keys that are made there name the right ones."""
    found = service("batos", BATOS_PORT="7727", BATOS_EVENTS_PORT="7728", BATOS_HTTP_PORT="7729")
    settings = load(found["environment"]).settings
    assert found["ports"] == [f"127.0.0.1:{port}:{port}" for port in (7727, 7728, 7729)]
    assert ports_of(settings) == [7727, 7728, 7729]


def test_starting_it_is_all() -> None:
    """The server begins the first genesis; what it may take of the machine is bounded, and it loads no model."""
    found = service("batos")
    assert load(found["environment"]).settings.genesis == "auto"
    assert found["mem_limit"] == "4g"


def test_the_ollama_of_this_host_stands_in_for_the_other() -> None:
    """Laid over, the second daemon is not started nor waited for, and the host has a name inside."""
    file = "with docker-compose.host.yml"
    assert service("ollama", file)["profiles"]
    found = service("batos", file)
    assert "depends_on" not in found
    assert found["extra_hosts"] == ["host.docker.internal:host-gateway"]
    named = service("batos", file, BATOS_HOST_OLLAMA="http://192.168.1.10:11434")
    assert named["environment"]["OLLAMA_HOST"] == "http://192.168.1.10:11434"


def test_the_example_of_an_environment_is_one() -> None:
    """Every line of .env.example can be taken as it stands: files that are there, variables that are read."""
    lines = re.findall(r"^#([A-Z_]+)=(.*)$", EXAMPLE, re.MULTILINE)
    assert [line for line in EXAMPLE.splitlines() if line and not line.startswith("#")] == []
    known = {**variables(BASE), **variables(CPU), **variables(HOST)}
    for name, value in lines:
        if name == "COMPOSE_FILE":
            assert all((ROOT / each).is_file() for each in value.split(":"))
        elif name != "COMPOSE_PROJECT_NAME":
            assert name in known
    assert {"docker-compose.cpu.yml", "docker-compose.host.yml"} <= {
        value.rpartition(":")[2] for name, value in lines if name == "COMPOSE_FILE"
    }


def test_the_image_says_what_it_is() -> None:
    """Its labels are the project's: title, description, licence and the version that is built into it."""
    labels = dict(re.findall(r'org\.opencontainers\.image\.(\w+)="([^"]*)"', instructions("LABEL")[0].rest))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert labels == {
        "title": "BAT OS",
        "description": project["description"],
        "version": batos.__version__,
        "licenses": project["license"],
    }


@pytest.mark.parametrize("file", FILES)
def test_its_state_is_on_a_volume_and_nothing_else_can_be_written(file: str) -> None:
    """The home is a named volume, or the folder that the shell names; the rest is read-only, and no right is left."""
    found = service("batos", file)
    (home,) = {line.rest for line in instructions("WORKDIR")}
    assert found["volumes"] == [f"batos:{home}"]
    assert service("batos", file, BATOS_DATA="./mind")["volumes"] == [f"./mind:{home}"]
    assert found["environment"]["BATOS_HOME"] == home
    assert set(FILES[file]["volumes"]) == {"batos", "ollama", "webui"}
    assert found["user"] == instructions("USER")[0].rest
    assert (found["read_only"], found["cap_drop"], found["init"]) == (True, ["ALL"], True)
    assert "privileged" not in found
    assert found["security_opt"] == ["no-new-privileges:true"]
    assert all(mount.startswith("/tmp:") and "noexec" in mount for mount in found["tmpfs"])


@pytest.mark.parametrize("which", ["ollama", "batos"])
def test_it_comes_back_and_does_not_fill_the_disk(which: Which) -> None:
    """Restarted unless it was stopped, watched by a health check, stopped in order, its log bounded."""
    found = service(which)
    assert found["restart"] == "unless-stopped"
    assert found["logging"]["options"].keys() == {"max-size", "max-file"}
    assert found["stop_grace_period"] in ("30s", "2m")
    assert found["healthcheck"].keys() >= {"test", "interval", "timeout", "retries", "start_period"}


def test_it_waits_for_ollama_and_is_asked_by_its_own_verb() -> None:
    """BAT OS starts when Ollama answers; its health is what `batos status` says."""
    found = service("batos")
    assert found["depends_on"] == {"ollama": {"condition": "service_healthy"}}
    kind, program, *rest = found["healthcheck"]["test"]
    assert (kind, program) == ("CMD", "batos")
    check_command(rest)


_CALL = re.compile(r"(?:^|[ =])batos (?P<call>(?!sh )[a-z-].*)")


def shown(path: Path) -> list[list[str]]:
    """Every call of `batos`, on the host or in the container, in the code of a text or the words of a script."""
    text = path.read_text(encoding="utf-8")
    fenced = "".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL)).splitlines()
    # A verb that stands alone within a sentence is named there, not called.
    inline = [each for each in re.findall(r"`([^`\n]+)`", text) if not re.fullmatch(r"batos [\w-]+", each)]
    code = [*fenced, *re.findall(r"^    (.*)", text, re.MULTILINE), *inline]
    calls = []
    for line in code if path.suffix == ".md" else re.findall(r'say "(.*)"', text):
        for part in re.split(r"[|;&]| {2,}#", re.sub(r"exec (-T )?batos batos", "batos", line)):
            found = _CALL.search(part)
            words = shlex.split(re.split(r"[<>]", found["call"])[0]) if found else []
            calls += [words] if words and words[0] in entry.VERBS else []
    return calls


@pytest.mark.parametrize(
    "name",
    [
        "CONTRIBUTING.md",
        "README.md",
        *(f"docs/{page}.md" for page in ("README", "compose", "maintenance", "operating", "tutorial")),
        "scripts/container.sh",
    ],
)
def test_every_command_that_is_shown_is_one(name: str) -> None:
    """What the guides and the entrypoint tell a person to type is taken by the command line as it stands."""
    calls = shown(ROOT / name)
    assert len(calls) >= 4
    for call in calls:
        check_command(call)


def test_a_command_that_is_none_is_caught() -> None:
    """The check of commands refuses a verb, an option and a missing argument."""
    for wrong in (["genesys"], ["status", "--jason"], ["keys", "new"]):
        with pytest.raises((click.ClickException, AssertionError)):
            check_command(wrong)
