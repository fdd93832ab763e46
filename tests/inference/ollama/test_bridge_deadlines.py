"""Deadlines by phase, and what the daemon sees of a caller that leaves."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from tests.inference.conftest import MakeBridge, chat
from tests.inference.raw_server import DONE, END, HEAD, HOLD, Script, reply, said, serving, streamed, token

from batos.errors import OllamaError, OllamaTimeout, OllamaUnreachable
from batos.inference.ollama.bridge import Bridge, Deadlines
from batos.inference.ollama.deadline import PhaseTimer

SHORT = Deadlines(connect=0.2, load=0.1, first_token=0.15, between_tokens=0.2, reply=0.1, progress=0.1)
FIRST = HEAD + token("one", done=False)


@pytest.mark.parametrize(
    ("scripts", "phase", "seconds"),
    [
        ([HOLD], "load", 0.25),
        ([[HEAD, HOLD]], "load", 0.25),
        ([streamed("warm"), HOLD], "first_token", 0.15),
        ([[FIRST, HOLD]], "between_tokens", 0.2),
        ([streamed("warm"), [FIRST, HOLD]], "between_tokens", 0.2),
    ],
)
async def test_each_phase_has_its_deadline(
    bridge_to: MakeBridge, scripts: list[Script], phase: str, seconds: float
) -> None:
    """The first line of a cold model may take load and first_token, of a warm one first_token; then come the gaps."""
    async with serving(*scripts) as server:
        bridge = bridge_to(server.url, deadlines=SHORT)
        for _ in scripts[1:]:
            await bridge.think(chat())
        with pytest.raises(OllamaTimeout) as late:
            await bridge.think(chat())
        await asyncio.wait_for(server.left.wait(), 5)
    assert (late.value.phase, late.value.seconds) == (phase, seconds)


async def test_a_wrong_belief_in_a_warm_model_costs_one_try(bridge_to: MakeBridge) -> None:
    """After a timeout, another model or other runner options, the next call has the time to load again."""
    warm = streamed("warm")
    async with serving(warm, HOLD, HOLD, warm, HOLD, warm, HOLD) as server:
        bridge = bridge_to(server.url, deadlines=SHORT)
        phases = []
        for request in (
            chat(),
            chat(),
            chat(),
            chat(),
            chat(options={"num_ctx": 1024}),
            chat(),
            chat(model="brick"),
        ):
            try:
                await bridge.think(request)
            except OllamaTimeout as late:
                phases.append(late.phase)
    assert phases == ["first_token", "load", "load", "load"]


async def test_a_place_in_the_queue_is_no_silence(bridge_to: MakeBridge) -> None:
    """While the daemon answers another of our calls, the wait for a first line is counted from its last token."""
    steps: list[bytes | float] = [HEAD]
    for _ in range(12):
        steps += [token("x", done=False), 0.05]
    behind: Script = [0.7, streamed("at last")]
    async with serving([*steps, token("", **DONE) + END], behind, HOLD) as server:
        bridge = bridge_to(server.url, deadlines=SHORT)
        first, second = await asyncio.gather(bridge.think(chat()), bridge.think(chat()))
        assert {first.text, second.text} == {"x" * 12, "at last"}
        with pytest.raises(OllamaTimeout):
            await bridge.think(chat())


async def test_an_answer_that_streams_keeps_no_other_deadline_from_expiring(bridge_to: MakeBridge) -> None:
    """A list of models that hangs is given up after its own seconds, though tokens of a chat come all the while."""
    steps: list[bytes | float] = [HEAD]
    for _ in range(12):
        steps += [token("x", done=False), 0.05]
    async with serving([*steps, token("", **DONE) + END], HOLD) as server:
        bridge = bridge_to(server.url, deadlines=replace(SHORT, between_tokens=5.0))
        thinking = asyncio.create_task(bridge.think(chat()))
        await server.came.wait()
        with pytest.raises(OllamaTimeout) as late:
            await bridge.list()
        assert late.value.phase == "reply"
        assert not thinking.done()
        assert (await thinking).text == "x" * 12


async def test_a_text_waits_behind_a_chat_to_be_embedded(bridge_to: MakeBridge) -> None:
    """A daemon that holds one model embeds nothing until the answer is whole: tokens are a sign of its turn."""
    steps: list[bytes | float] = [HEAD]
    for _ in range(12):
        steps += [token("x", done=False), 0.05]
    vectors: Script = [0.7, reply({"model": "e", "embeddings": [[1.0]]})]
    async with serving([*steps, token("", **DONE) + END], vectors) as server:
        bridge = bridge_to(server.url, deadlines=SHORT)
        thinking = asyncio.create_task(bridge.think(chat()))
        await server.came.wait()
        assert (await bridge.embed("e", ["x"])).vectors == [[1.0]]
        assert (await thinking).text == "x" * 12


@pytest.mark.parametrize("beside", ["ps", "embed"])
async def test_a_runner_that_hangs_is_kept_alive_by_no_other_reply(bridge_to: MakeBridge, beside: str) -> None:
    """Lists and vectors that come meanwhile are no sign that a chat has a place in the queue."""
    document = {"models": []} if beside == "ps" else {"model": "e", "embeddings": [[1.0]]}
    async with serving(HOLD, reply(document)) as server:
        bridge = bridge_to(server.url, deadlines=replace(SHORT, load=0.3, first_token=0.3, reply=5.0))
        thinking = asyncio.create_task(bridge.think(chat()))
        await server.came.wait()
        async with asyncio.timeout(5):
            while not thinking.done():
                await (bridge.ps() if beside == "ps" else bridge.embed("e", ["x"]))
                await asyncio.sleep(0.05)
        assert isinstance(thinking.exception(), OllamaTimeout)


async def test_slow_tokens_are_no_silence(bridge_to: MakeBridge) -> None:
    """An answer may take far longer than any deadline as long as something comes."""
    steps: list[bytes | float] = [HEAD]
    for _ in range(12):
        steps += [token("x", done=False), 0.03]
    async with serving([*steps, token("", **DONE) + END]) as server:
        answer = await bridge_to(server.url, deadlines=SHORT).think(chat())
    assert answer.text == "x" * 12


async def test_a_whole_answer_has_the_sum(bridge_to: MakeBridge) -> None:
    """Of a whole answer nothing shows before its end: each permitted token adds to its deadline."""
    async with serving([0.5, said("x")], HOLD) as server:
        bridge = bridge_to(server.url, deadlines=SHORT)
        answer = await bridge.think(chat(options={"num_ctx": 512, "num_predict": 20}), stream=False)
        assert answer.text == "x"


async def test_an_answer_is_not_lost_to_a_stream_that_stays_open(bridge_to: MakeBridge) -> None:
    """When the server never ends the stream behind `done`, the answer is given all the same."""
    async with serving([FIRST + token("", **DONE), HOLD]) as server:
        bridge = bridge_to(server.url, deadlines=Deadlines(drain=0.02))
        assert (await bridge.think(chat())).text == "one"
        await asyncio.wait_for(server.left.wait(), 5)


@pytest.mark.parametrize("counts", [False, True])
async def test_a_cancellation_behind_the_last_line_loses_no_answer(bridge_to: MakeBridge, counts: bool) -> None:
    """Whoever is cancelled while the stream stays open behind `done` has the answer; a count is cancelled."""
    whole = asyncio.Event()

    async with serving([FIRST + token("", **DONE), HOLD]) as server:
        bridge = bridge_to(server.url, deadlines=Deadlines(drain=60.0))

        async def ask() -> str:
            return (await bridge.think(chat(), lambda piece: whole.set())).text

        async def count() -> str:
            whole.set()
            return str(await bridge.count(chat()))

        task = asyncio.create_task(count() if counts else ask())
        await asyncio.gather(server.came.wait(), whole.wait())
        await asyncio.sleep(0.1)
        task.cancel()
        if counts:
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            assert await task == "one"
        assert task.cancelling() == 1
        await asyncio.wait_for(server.left.wait(), 5)


async def test_calls_without_a_model_have_a_deadline(bridge_to: MakeBridge) -> None:
    """list, show, ps, version, delete and blobs wait for `reply`, pull and create for `progress`."""
    async with serving(HOLD) as server:
        bridge = bridge_to(server.url, deadlines=SHORT)
        for call in (bridge.list(), bridge.show("m"), bridge.ps(), bridge.version(), bridge.delete("m")):
            with pytest.raises(OllamaTimeout) as late:
                await call
            assert late.value.phase == "reply"
        with pytest.raises(OllamaTimeout) as late:
            await anext(bridge.pull("m"))
        assert late.value.phase == "progress"


async def test_embed_has_a_deadline(bridge_to: MakeBridge) -> None:
    """It names the phase: the load, or the first vector of a model that was used before."""
    async with serving(reply({"model": "e", "embeddings": [[1.0]]}), HOLD) as server:
        bridge = bridge_to(server.url, deadlines=SHORT)
        await bridge.embed("e", ["x"])
        for phase in ("first_token", "load"):
            with pytest.raises(OllamaTimeout) as late:
                await bridge.embed("e", ["x"])
            assert late.value.phase == phase


async def test_a_connection_has_a_deadline(bridge_to: MakeBridge) -> None:
    """An address that swallows packets is a timeout of the phase `connect`, or unreachable at once without a route."""
    bridge = bridge_to("http://192.0.2.1:11434", deadlines=SHORT)
    for stream in (True, False):
        with pytest.raises((OllamaTimeout, OllamaUnreachable)) as late:
            await bridge.think(chat(), stream=stream)
        if isinstance(late.value, OllamaTimeout):
            assert late.value.phase == "connect"


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("script", [HOLD, [FIRST, HOLD]])
async def test_cancelling_closes_the_stream(bridge_to: MakeBridge, stream: bool, script: Script) -> None:
    """A cancelled caller is cancelled at once, and the daemon sees the connection close: it stops generating."""
    async with serving(script) as server:
        bridge = bridge_to(server.url)
        task = asyncio.create_task(bridge.think(chat(), stream=stream))
        await server.came.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.left.wait(), 5)


async def test_a_listener_that_stops_closes_the_stream(bridge_to: MakeBridge) -> None:
    """A caller that has heard enough raises, and the daemon sees it leave; the client alone would go on reading."""

    def enough(piece: str) -> None:
        raise StopAsyncIteration

    async with serving([FIRST, HOLD]) as server:
        bridge = bridge_to(server.url)
        with pytest.raises((StopAsyncIteration, RuntimeError)):
            await bridge.think(chat(), enough)
        await asyncio.wait_for(server.left.wait(), 5)


async def test_breaking_out_of_a_pull_closes_it(bridge_to: MakeBridge) -> None:
    """Closing the generator of a pull ends it at the daemon."""
    progress = HEAD + b'1b\r\n{"status":"pulling a line"}\r\n'
    async with serving([progress.replace(b"1b", b"1c").replace(b"}\r\n", b"}\n\r\n"), HOLD]) as server:
        pull = bridge_to(server.url).pull("m")
        async for step in pull:
            assert step.status == "pulling a line"
            break
        await pull.aclose()
        await asyncio.wait_for(server.left.wait(), 5)


async def test_closing_the_bridge_cuts_what_is_answered() -> None:
    """A call under way when the bridge closes ends with an error of the tree."""
    async with serving([FIRST, HOLD]) as server:
        bridge = Bridge(server.url)
        task = asyncio.create_task(bridge.think(chat()))
        await server.came.wait()
        await asyncio.sleep(0.02)
        await bridge.aclose()
        with pytest.raises(OllamaError):
            await task
        await asyncio.wait_for(server.left.wait(), 5)


async def test_a_deadline_is_not_a_cancellation() -> None:
    """What expires is OllamaTimeout; what is cancelled from outside while a deadline runs stays cancelled."""
    with pytest.raises(OllamaTimeout), PhaseTimer("load", 0.01):
        await asyncio.sleep(5)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0

    async def inside() -> None:
        with PhaseTimer("load", 5):
            await asyncio.sleep(5)

    other = asyncio.create_task(inside())
    await asyncio.sleep(0)
    other.cancel()
    with pytest.raises(asyncio.CancelledError):
        await other


async def test_a_phase_can_be_shorter_than_the_one_before() -> None:
    """Entering a shorter phase arms the timer again; touching it restarts it."""

    async def phases() -> None:
        with PhaseTimer("load", 60) as timer:
            timer.enter("between_tokens", 0.2)
            for _ in range(3):
                await asyncio.sleep(0.1)
                timer.touch()
            await asyncio.sleep(5)

    with pytest.raises(OllamaTimeout) as late:
        await phases()
    assert late.value.phase == "between_tokens"
