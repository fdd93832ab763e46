"""Described APIs: tools that are made of prose, used for questions, and made again when a service changes.

Each folder of `--apis` is an API. `description.md` is all that the mind is told. `replies.jsonl` are those of a stub:
{path, query, status, headers, body, needs, times, stage}; those of stage 2 come later. `unseen.jsonl` are requests and
replies that nobody saw before: {operation, arguments, request, reply, holds or fails}. `questions.jsonl` are questions
with what their answers hold: {question, request, holds}. `api.json` has the secret, if any: {secret: {header, value}}.

`made_prose` is the share of operations of which both methods were made and are right for every unseen row,
`usable_prose` also counts those whose reply is evidence as it came. Of the questions `right` is the share whose answer
holds all it must and `asked` the share for which the right request was made; `cited_verbatim` is the share of citations
of tools that stand word for word in what the tool brought. `packets_without_grant` are requests of missions that name
no grant. `drift_seen` is the share of the changed services whose change was told. `example_calls` are the calls of the
model that making took, and `computed` the share of operations that took none.

    python bench/agency.py [--apis DIR ...] [--gguf FILE|NAME | --url URL] [--n N] [--quick] [--json FILE]
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from agency_stub_side import StubApi, rows, serving
from batos.agency.api_transport import SECRETS
from batos.agency.apis.api_operations import Operation
from batos.agency.apis.description import read_description
from batos.agency.apis.method_sources import is_failure
from batos.agency.records import api_records, effect_records, look_up_records
from batos.image import roots
from batos.image.ids import iso
from batos.image.roots import Root
from batos.methods.execution.compiling import program_of
from batos.methods.generation.method_checks import Check, Rehearsal, ScriptedHost, equal
from batos.objects.method import Method
from batos.objects.prototype import own_slots
from batos.protocol.errors import BatosError, MethodFailed
from batos.records import tools
from batos.records.tools import READING, REQUEST
from batos.uvm import UVM
from report import Goal, report
from voice_side import daemon, parser_of, uvm_over

APIS: Final = Path(__file__).parent / "agency_apis"
GOALS: Final = {"made_prose": 0.5, "usable_prose": 0.85, "right": 0.6, "cited_verbatim": 1.0, "drift_seen": 1.0}


@dataclass
class Tally:
    """Counts over the APIs."""

    counts: Counter[str] = field(default_factory=Counter)

    def share(self, part: str, whole: str) -> float:
        """Return the share of one count in another; 1 where there was nothing."""
        return round(self.counts[part] / self.counts[whole], 4) if self.counts[whole] else 1.0

    def as_dict(self) -> dict[str, Any]:
        """Return the figures of the bench."""
        return {
            "made_prose": self.share("made", "operations"), "usable_prose": self.share("usable", "operations"),
            "right": self.share("right", "questions"), "asked": self.share("asked", "questions"),
            "cited_verbatim": self.share("verbatim", "citations"), "citations": self.counts["citations"],
            "packets_without_grant": self.counts["packets"], "drift_seen": self.share("seen", "changed"),
            "computed": self.share("computed", "operations"), "example_calls": self.counts["calls"],
            "operations": self.counts["operations"], "questions": self.counts["questions"],
        }  # fmt: skip


@dataclass
class Api:
    """An API of the bench with its stub, in a mind."""

    folder: Path
    stub: StubApi
    uvm: UVM
    tally: Tally

    @property
    def name(self) -> str:
        """Return the name of its object."""
        return f"{self.folder.name}_agent"

    async def grant(self) -> None:
        """Grant it as `batos grants add api` does."""
        text = (self.folder / "description.md").read_text()
        about = self.folder / "api.json"
        secret = json.loads(about.read_text())["secret"] if about.exists() else {"header": ""}
        if secret["header"]:
            place = self.uvm.settings.home / SECRETS / self.name
            place.parent.mkdir(mode=0o700, exist_ok=True)
            place.touch(mode=0o600)
            place.write_text(secret["value"])

        def change(root: Root) -> None:
            told = self.uvm.settings.asker, iso(self.uvm.clock())
            terms = look_up_records.GrantTerms()
            made = look_up_records.add_look_up(root, self.name, "api", self.stub.address, terms, told)
            roots.connection_of(root).add(made)
            api_records.describe_grant(root, made, text, secret["header"])

        try:
            await self.uvm.image.shared.apply(change)
        except BatosError as error:  # nothing of it is read
            print(f"{self.folder.name}: {error.message}", file=sys.stderr, flush=True)

    async def ask(self, brief: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the mission of a brief, {} where it failed."""
        try:
            return await self.uvm.missions.ask(dict(brief))
        except BatosError as error:
            print(f"  {error.message[:200]}", file=sys.stderr, flush=True)
            return {}

    @property
    def first(self) -> Operation | None:
        """Return the first operation that is read of the description."""
        return next(iter(read_description((self.folder / "description.md").read_text()).operations), None)

    async def make(self) -> None:
        """Let the first message make the object, and count what it has."""
        description = read_description((self.folder / "description.md").read_text())
        self.tally.counts["operations"] += len(wanted := sorted({each["operation"] for each in self._unseen_rows()}))
        first = self.first
        if first is not None:  # what it is asked is nothing that the service knows
            arguments = {each.name: "x" for each in first.parameters if each.is_required}
            await self.ask({"message": {"receiver": self.name, "selector": first.name, "arguments": [arguments]}})
        with self.uvm.image.snapshot() as root:
            obj = tools.find_tool(root, self.name)
            methods = (
                {} if obj is None else {name: each for name, each in own_slots(obj).items() if isinstance(each, Method)}
            )
            methods = {name: Method(**each.as_dict()) for name, each in methods.items()}
        for each in wanted:
            path = each.partition(" ")[2]
            operation = next((known for known in description.operations if _same(known.path, path)), None)
            await self._judge(each, operation, methods)

    async def _judge(self, wanted: str, operation: Operation | None, methods: Mapping[str, Method]) -> None:
        """Count whether an operation's methods were made, and are right for the rows that nobody saw."""
        request = None if operation is None else methods.get(REQUEST + operation.name)
        reading = None if operation is None else methods.get(READING + operation.name)
        rows_ = [each for each in self._unseen_rows() if each["operation"] == wanted]
        asks = request is not None and all([await self._asks(request, each) for each in rows_])
        reads = reading is not None and all([await self._reads(reading, each) for each in rows_])
        calls = 0 if reading is None else reading.provenance.get("attempts", 0)
        self.tally.counts["made"] += asks and reads
        self.tally.counts["usable"] += asks and (reads or reading is None)
        self.tally.counts["calls"] += calls
        self.tally.counts["computed"] += reading is not None and not calls
        told = "made" if asks and reads else "no request" if not asks else "raw" if reading is None else "wrong"
        print(f"{self.folder.name}: {wanted}: {told}, {calls} calls", file=sys.stderr, flush=True)

    async def _asks(self, method: Method, row: Mapping[str, Any]) -> bool:
        made = await self._run(method, [row["arguments"]])
        return isinstance(made, dict) and equal({key: made.get(key) for key in row["request"]}, row["request"])

    async def _reads(self, method: Method, row: Mapping[str, Any]) -> bool:
        reply = row["reply"]
        body = reply["body"] if isinstance(reply["body"], str) else json.dumps(reply["body"])
        value = await self._run(method, [reply["status"], reply.get("headers", {}), body])
        if row.get("fails"):
            return is_failure(value)
        held = list(_scalars(value))
        return not is_failure(value) and all(any(equal(each, one) for one in held) for each in row["holds"])

    async def _run(self, method: Method, arguments: Sequence[Any]) -> Any:
        rehearsal = Rehearsal(self.uvm.method_runtime.generator.deps.cell)
        try:
            return (await rehearsal.outcome(await program_of(method), Check(arguments), ScriptedHost({})))[0]
        except MethodFailed:
            return None

    def _unseen_rows(self) -> list[dict[str, Any]]:
        return rows(self.folder / "unseen.jsonl")

    async def question(self, row: Mapping[str, Any]) -> None:
        """Ask a question that names the grant, and nothing of the tool; count what the answer holds."""
        before = len(self.stub.asked)
        told = await self.ask({"text": row["question"]})
        answer = str(told.get("answer") or "")
        asked = self.stub.asked[before:]
        wanted = (row["request"]["method"], row["request"]["path"], row["request"]["query"])
        self.tally.counts["questions"] += 1
        right = all(each in answer for each in row["holds"])
        self.tally.counts["right"] += right
        self.tally.counts["asked"] += wanted in asked
        self._count_citations(told)
        print(f"{self.folder.name}: {row['question']}\n   {'right' if right else 'WRONG'}, "
              f"{'asked' if wanted in asked else asked}: {answer[:160]!r}", file=sys.stderr, flush=True)  # fmt: skip

    def _count_citations(self, told: Mapping[str, Any]) -> None:
        """Count the citations of an answer, and those whose every value stands in what the service sent."""
        if not told.get("tools") and not (told.get("provenance") or {}).get("tools"):
            return
        sent = "\n".join(self.stub.sent)
        for each in (told.get("provenance") or {}).get("citations", ()):
            values = [part.rpartition(": ")[2] for part in re.split(r"; |\n", each["quote"]) if ": " in part]
            self.tally.counts["citations"] += 1
            self.tally.counts["verbatim"] += all(each.strip(" .") in sent for each in values)

    async def without_grant(self, row: Mapping[str, Any], operation: Operation | None) -> None:
        """Take the grant back, ask, and count what reaches the service all the same."""

        def revoke(root: Root) -> None:
            if self.name in root[roots.GRANTS]:
                effect_records.revoke_capability(root, self.name)

        await self.uvm.image.shared.apply(revoke)
        before = len(self.stub.asked)
        await self.ask({"text": row["question"]})
        if operation is not None:
            arguments = {each.name: "x" for each in operation.parameters if each.is_required}
            await self.ask({"message": {"receiver": self.name, "selector": operation.name, "arguments": [arguments]}})
        self.tally.counts["packets"] += len(self.stub.asked) - before

    async def drift(self) -> None:
        """Change the service, if it changes, and count whether that was told."""
        changed = [each for each in self.stub.replies if each.get("stage") == 2]
        if not changed:
            return
        self.tally.counts["changed"] += 1
        description = read_description((self.folder / "description.md").read_text())
        for self.stub.stage in (1, 2):
            for row in rows(self.folder / "questions.jsonl"):
                if row["request"]["path"] == changed[0]["path"]:
                    await self._call(description.operations, row["request"])
                    break
        with self.uvm.image.snapshot() as root:
            obj = tools.find_tool(root, self.name)
            fixtures = {} if obj is None else own_slots(obj).get(api_records.FIXTURES) or {}
        self.tally.counts["seen"] += any(each["changes"] for each in fixtures.values())

    async def _call(self, operations: Sequence[Operation], request: Mapping[str, Any]) -> None:
        """Send the message that makes a request."""
        for operation in operations:
            found = _values(operation.path, request["path"])
            if found is not None:
                message = {
                    "receiver": self.name,
                    "selector": operation.name,
                    "arguments": [{**found, **request["query"]}],
                }
                await self.ask({"message": message})
                return


def _same(one: str, other: str) -> bool:
    """Test if two path templates are the same but for the names in them."""
    return _values(one, other) is not None and one.count("{") == other.count("{")


def _values(template: str, path: str) -> dict[str, str] | None:
    """Return the values of a template's names in a path; None where it does not fit."""
    parts, given = template.split("/"), path.split("/")
    fits = len(parts) == len(given) and all(a == b or a.startswith("{") for a, b in zip(parts, given, strict=True))
    return {a.strip("{}"): b for a, b in zip(parts, given, strict=True) if a.startswith("{")} if fits else None


def _scalars(value: Any) -> Any:
    """Yield the plain values within a value."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    if inner is None:
        yield value
    else:
        for each in inner:
            yield from _scalars(each)


async def measure(folders: Sequence[Path], given: Any) -> dict[str, Any]:
    """Return the figures of the APIs in some folders."""
    tally = Tally()
    async with daemon(given) as url, uvm_over(url, install="now") as uvm:
        for folder in folders:
            async with AsyncExitStack() as stack:
                stub = stack.enter_context(serving(StubApi(rows(folder / "replies.jsonl"))))
                api = Api(folder, stub, uvm, tally)
                await api.grant()
                await api.make()
                asked = rows(folder / "questions.jsonl")[: 1 if given.quick else given.n]
                for row in asked:
                    await api.question(row)
                await api.drift()
                await api.without_grant(rows(folder / "questions.jsonl")[0], api.first)
    return tally.as_dict()


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, and report."""
    parser = parser_of(__doc__ or "")
    parser.add_argument("--apis", type=Path, action="append", metavar="DIR", help="a folder with a folder for each API")
    parser.set_defaults(n=10)
    given = parser.parse_args(argv)
    found: dict[str, Any] = {}
    for place in given.apis or [APIS]:
        folders = sorted(each.parent for each in place.glob("*/description.md"))[: 2 if given.quick else None]
        measured = asyncio.run(measure(folders, given))
        found = found | ({f"{key}_{place.name}": each for key, each in measured.items()} if found else measured)
    real = given.gguf or given.url
    goals = [Goal(name, found[name], least, "at_least") for name, least in GOALS.items()] if real else []
    goals.append(Goal("packets_without_grant", found["packets_without_grant"], 0))
    report({**found, "model": given.gguf or given.url or "the emulator: shape, not figures"}, goals, given.json)


if __name__ == "__main__":
    main()
