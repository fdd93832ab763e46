"""A described API is made by the first message to it, asked by its grant, watched, and made again when it changes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.methods.execution.stub_api import DESCRIPTION, StubService, serving

from batos.agency.api_transport import SECRETS
from batos.agency.records import api_records, effect_records
from batos.agency.records.look_up_records import GrantTerms
from batos.care.verification import find_faults, repair
from batos.image.roots import Root
from batos.inference.ollama.bridge import ChatRequest
from batos.methods.execution import api_calls
from batos.methods.generation import method_spec
from batos.objects.method import Intent, Method
from batos.objects.prototype import own_slots
from batos.protocol.errors import BatosError, LookUpFailed, MessageNotUnderstood, ObjectError, Refused
from batos.records import tools
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM

pytestmark = pytest.mark.asyncio
FARE = {"island": "Skarv", "adult": 9.75, "car": 29.0}
NEW = {"island": "Skarv", "prices": {"adult": 9.75, "car": 29.0}}


@pytest.fixture
def service() -> Iterator[StubService]:
    """Serve the fares of one island."""
    with serving({"/v1/fares/Skarv": (200, FARE), "/v1/fares/broken": (200, "<html>502</html>")}) as stub:
        yield stub


@pytest_asyncio.fixture
async def mind(tmp_path: Path) -> AsyncIterator[UVM]:
    """Open a mind that makes methods."""
    async with scripted_uvm(tmp_path / "home", ScriptedBridge(), install="now") as uvm:
        yield uvm


async def send(uvm: UVM, *arguments: Any, selector: str = "fares_", **brief: Any) -> Mapping[str, Any]:
    """Return the result of a message to the object."""
    message = {"receiver": "ferries", "selector": selector, "arguments": list(arguments)}
    told = await uvm.missions.ask({"message": message, **brief})
    found: Mapping[str, Any] = told["provenance"]["message"]["result"]
    return found


def slots(uvm: UVM) -> Mapping[str, Any]:
    """Return the slots of the object that was made."""
    with uvm.image.snapshot() as root:
        made = tools.find_tool(root, "ferries")
        return {} if made is None else dict(own_slots(made))


async def approve_all(uvm: UVM) -> None:
    """Approve what waits for a person."""
    with uvm.image.snapshot() as root:
        waiting = list(root["approvals"])
    await uvm.approvals.approve(waiting[-1:], "tester")


async def test_the_first_message_makes_the_object_and_is_answered(mind: UVM, service: StubService) -> None:
    """The first message makes the object and is answered."""
    await service.grant(mind)
    assert tools.API not in slots(mind)
    assert await send(mind, "Skarv") == FARE
    assert service.asked == ["/v1/fares/Skarv"]
    assert {"request_of_fares_", "reading_of_fares_"} <= {
        name for name, each in slots(mind).items() if isinstance(each, Method)
    }


async def test_arguments_have_names_too(mind: UVM, service: StubService) -> None:
    """Arguments have names too."""
    await service.grant(mind)
    assert await send(mind, {"island": "Skarv"}) == FARE
    with pytest.raises(ObjectError, match="has no 'port'"):
        await send(mind, {"port": "Skarv"})


async def test_nothing_is_sent_without_a_grant(mind: UVM, service: StubService) -> None:
    """Nothing is sent without a grant."""
    await service.grant(mind)
    await send(mind, "Skarv")

    def revoke(root: Root) -> None:
        effect_records.revoke_capability(root, "ferries")

    await mind.image.shared.apply(revoke)
    with pytest.raises(ObjectError, match="holds no capability"):
        await send(mind, "Skarv")
    assert len(service.asked) == 1


async def test_a_grant_that_is_used_up_sends_nothing(mind: UVM, service: StubService) -> None:
    """A grant that is used up sends nothing."""
    await service.grant(mind, terms=GrantTerms(budget=1))
    await send(mind, "Skarv")
    with pytest.raises(Refused, match="used up"):
        await send(mind, "Skarv")
    assert len(service.asked) == 1


@pytest.mark.parametrize(("island", "told"), [("Atlantis", "no such island"), ("broken", "no JSON")])
async def test_what_is_no_answer_is_a_failure(mind: UVM, service: StubService, island: str, told: str) -> None:
    """What is no answer is a failure."""
    await service.grant(mind)
    with pytest.raises(ObjectError, match=told):
        await send(mind, island)


@pytest.mark.parametrize("island", ["../../secret", "a/b", "..", "x\r\nHost: y"])
async def test_no_argument_leads_beyond_the_path(mind: UVM, service: StubService, island: str) -> None:
    """No argument leads beyond the path."""
    await service.grant(mind)
    with pytest.raises(BatosError):
        await send(mind, island)
    assert service.asked == []


async def test_a_selector_that_is_no_operation_costs_nothing(mind: UVM, service: StubService) -> None:
    """A selector that is no operation costs nothing."""
    await service.grant(mind)
    with pytest.raises(MessageNotUnderstood):
        await send(mind, selector="prices_")
    assert tools.API not in slots(mind)


async def test_a_change_is_seen_and_the_reading_made_again(mind: UVM, service: StubService) -> None:
    """A change is seen and the reading made again."""
    await service.grant(mind)
    await send(mind, "Skarv")
    service.replies["/v1/fares/Skarv"] = (200, NEW)
    raw = await send(mind, "Skarv")
    document, _, told = str(raw).partition("\n")  # the document as it came, and what is told
    assert json.loads(document) == NEW
    assert "have changed: adult is missing" in told
    kept = slots(mind)
    assert isinstance(kept["reading_of_fares_"], Intent)
    assert "adult is missing" in kept[api_records.FIXTURES]["fares_"]["changes"]
    await send(mind, "Skarv")  # a person is asked: the new wish derives from a reply
    assert isinstance(slots(mind)["reading_of_fares_"], Intent)
    await approve_all(mind)
    assert await send(mind, "Skarv") == NEW
    assert isinstance(slots(mind)["reading_of_fares_"], Method)


async def test_a_reading_is_made_again_twice_a_week_at_most(mind: UVM, service: StubService) -> None:
    """A reading is made again twice a week at most."""
    await service.grant(mind)
    await send(mind, "Skarv")
    for number in range(4):
        service.replies["/v1/fares/Skarv"] = (200, {"island": "Skarv", f"fare_{number}": number})
        await send(mind, "Skarv")
    kept = slots(mind)
    assert len(kept[api_records.FIXTURES]["fares_"]["made_again"]) == 2
    assert not isinstance(kept.get("reading_of_fares_"), Method)


async def test_a_new_key_alone_withdraws_nothing(mind: UVM, service: StubService) -> None:
    """A new key alone withdraws nothing."""
    await service.grant(mind)
    service.replies["/v1/fares/Skarv"] = (200, {**FARE, "bike": 3})
    assert await send(mind, "Skarv") == FARE
    assert isinstance(slots(mind)["reading_of_fares_"], Method)
    assert slots(mind)[api_records.FIXTURES]["fares_"]["changes"] == ["bike is new"]


async def test_a_secret_is_sent_and_kept_nowhere_else(mind: UVM, service: StubService) -> None:
    """A secret is sent and kept nowhere else."""
    place = mind.settings.home / SECRETS / "ferries"
    place.parent.mkdir()
    place.touch(mode=0o600)
    place.write_text("s3cret-key-77")
    await service.grant(mind, header="X-Key")
    service.replies["/v1/fares/Skarv"] = (200, {**FARE, "island": "you sent s3cret-key-77"})
    found = await send(mind, "Skarv")
    assert service.headers[0]["X-Key"] == "s3cret-key-77"
    assert found["island"] == "you sent (secret)"
    with mind.image.snapshot() as root:
        records = list(mind.journal.outside(list(root["missions"])))
    assert records
    assert "s3cret" not in repr(records)


async def test_without_its_secret_nothing_is_sent(mind: UVM, service: StubService) -> None:
    """Without its secret nothing is sent."""
    await service.grant(mind, header="X-Key")
    with pytest.raises(BatosError, match="the secret of ferries is not in"):
        await send(mind, "Skarv")
    assert service.asked == []


async def test_a_service_that_is_not_there_is_told(mind: UVM) -> None:
    """A service that is not there is told."""
    with serving({}) as gone:
        await gone.grant(mind)
    with pytest.raises(LookUpFailed):
        await send(mind, "Skarv")


async def test_a_question_uses_it_without_naming_it(tmp_path: Path, service: StubService) -> None:
    """A question uses it without naming it."""
    seen: list[str] = []

    def answer(request: ChatRequest) -> str:
        seen.append(json.dumps([*request.messages]))
        return '{"island": "Skarv"}' if request.schema is not None else "It costs 29.0."

    async with scripted_uvm(tmp_path / "home", ScriptedBridge(answer), install="now") as uvm:
        await service.grant(uvm)
        told = await uvm.missions.ask(
            {"text": 'Look up what a crossing costs to the island "Skarv".', "effort": "reflex"}
        )
    assert service.asked == ["/v1/fares/Skarv"]
    used = told["provenance"]["tools"]
    assert [each["tool"] for each in used] == ["ferries.fares_"]
    assert any("car: 29.0" in each for each in seen)


async def test_lines_hold_every_value_word_for_word() -> None:
    """Lines hold every value word for word."""
    value: Any = {"a": {"b": [1.5, "é"]}, "rows": [{"x": 1, "y": {"z": None}}, {"x": 2}], "empty": []}
    told = "\n".join(api_calls.lines_of(value))
    assert all(each in told for each in ("1.5", "é", "x: 1", "y z: null", "x: 2"))


@pytest.mark.parametrize(("field", "value", "said"), [
    ("digest", "0" * 64, "its digest is of another shape"), ("name", "gone_", "its description has no such operation"),
])  # fmt: skip
async def test_a_wrong_shape_of_replies_is_mended(
    mind: UVM, service: StubService, field: str, value: str, said: str
) -> None:
    """A verification names the operation; the repair forgets the shape, and the next reply is compared anew."""
    await service.grant(mind)
    await send(mind, "Skarv")
    assert find_faults(mind.image.db) == []

    def spoil(root: Root) -> None:
        made: Any = tools.find_tool(root, "ferries")
        kept = dict(made.fixtures)
        (name,) = kept
        fixture = kept.pop(name)
        kept[value if field == "name" else name] = {**fixture, **({field: value} if field == "digest" else {})}
        made.fixtures = kept

    await mind.image.writer.apply(spoil)
    (fault,) = find_faults(mind.image.db)
    assert said in fault.what
    mended, left = await repair(mind.image)
    assert ([each.where for each in mended], left) == ([fault.where], [])
    assert await send(mind, "Skarv") == FARE


async def test_a_tool_is_told_in_the_voice_of_the_persona_that_wished(mind: UVM, service: StubService) -> None:
    """Coders are told how that persona works, and whoever picks a tool whose it is; at first it is nobody's."""
    await service.grant(mind)
    with mind.image.snapshot() as root:
        assert tools.find_wisher(root, "ferries") == ""
    text = 'Look up what a crossing costs to the island "Skarv".'
    told = await mind.missions.ask({"text": text, "effort": "reflex", "persona": "BABS"})
    assert told["route"]["personas"] == ["BABS"]
    with mind.image.snapshot() as root:
        babs, brick = root["babs_prototype_obj"], root["brick_prototype_obj"]
        (line,) = [each for each in method_spec._tools(root, brick) if "ferries" in each]
        assert line.startswith("tools.ferries.fares_(island): What a crossing costs")
        assert f"(BABS: {babs.core_method}"[:30] in line
    again = await mind.missions.ask({"text": text, "effort": "reflex"})
    assert again["provenance"]["tools"][0]["tool"] == "ferries.fares_"


async def test_an_api_that_is_declared_and_not_granted_says_so(mind: UVM, service: StubService) -> None:
    """A question that would use it is told what is lacking; nothing is made and nothing is sent."""

    def declare(root: Root) -> None:
        api_records.declare(root, "ferries", DESCRIPTION)

    await mind.image.shared.apply(declare)
    told = await mind.missions.ask({"text": 'Look up what a crossing costs to the island "Skarv".', "effort": "reflex"})
    assert told["answer"].startswith("ferries.fares_ failed, so nothing came of it: nothing is granted to ask it:")
    assert (service.asked, slots(mind)) == ([], {})
