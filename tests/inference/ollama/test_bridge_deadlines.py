"""Deadlines by phase, and what the daemon sees of a caller that leaves."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from tests.inference.conftest import PATIENT, MakeBridge, chat
from tests.inference.counting_bridge import until
from tests.inference.raw_server import DONE, END, HEAD, HOLD, Script, reply, said, serving, spoken, streamed, token
from tests.inference.still_clock import HOUR, on_still_clock, pass_time
from tests.waiting import HANG

from batos.inference.ollama.bridge import Bridge, Deadlines
from batos.inference.ollama.deadline import SLOWEST, PhaseTimer, ReadingPace
from batos.protocol.errors import OllamaError, OllamaTimeout, OllamaUnreachable

#: For tests that move the clock.
HOURS = Deadlines(
    connect=HOUR,
    load=2 * HOUR,
    first_token=3 * HOUR,
    between_tokens=4 * HOUR,
    reply=2 * HOUR,
    progress=5 * HOUR,
    drain=6 * HOUR,
)
#: For servers that never answer.
SHORT = replace(PATIENT, reply=0.1, progress=0.1)
FIRST = HEAD + token("one", done=False)


@pytest.mark.parametrize(
    ("scripts", "phase", "hours"),
    [
        ([HOLD], "load", 5),
        ([[HEAD, HOLD]], "load", 5),
        ([streamed("warm"), HOLD], "first_token", 3),
        ([[FIRST, HOLD]], "between_tokens", 4),
        ([streamed("warm"), [FIRST, HOLD]], "between_tokens", 4),
    ],
)
@on_still_clock
async def test_each_phase_has_its_deadline(scripts: list[Script], phase: str, hours: int) -> None:
    """The first line of a cold model may take load and first_token, of a warm one first_token; then come the gaps."""
    heard: list[str] = []
    async with serving(*scripts) as server, Bridge(server.url, deadlines=HOURS) as bridge:
        for _ in scripts[1:]:
            await bridge.think(chat())
        asking = asyncio.create_task(bridge.think(chat(), heard.append))
        await server.was_asked(len(scripts))
        await until(lambda: heard or phase != "between_tokens")
        await pass_time((hours - 0.5) * HOUR)
        assert not asking.done()
        await pass_time(HOUR)
        with pytest.raises(OllamaTimeout) as late:
            await asking
        await server.was_left()
    assert (late.value.phase, late.value.seconds) == (phase, hours * HOUR)


@on_still_clock
async def test_a_long_prompt_has_longer_for_its_first_token() -> None:
    """A thousand characters add a quarter of the time: a processor reads some ten tokens a second."""
    async with serving(streamed("warm"), HOLD) as server, Bridge(server.url, deadlines=HOURS) as bridge:
        await bridge.think(chat())
        asking = asyncio.create_task(bridge.think(chat(messages=({"role": "user", "content": "long " * 1_600},))))
        await server.was_asked(2)
        await pass_time(8.5 * HOUR)
        assert not asking.done()
        await pass_time(HOUR)
        with pytest.raises(OllamaTimeout) as late:
            await asking
        await server.was_left()
    assert (late.value.phase, late.value.seconds) == ("first_token", 9 * HOUR)


@on_still_clock
async def test_a_model_that_was_seen_to_read_slowly_has_the_time_that_it_needs() -> None:
    """Four times what the prompt takes at that pace beside a short one's time; another model has none of it."""
    took = {"prompt_eval_count": 900, "prompt_eval_duration": int(HOUR / 8 * 1e9)}
    slow = HEAD + token("", **{**DONE, **took}) + END
    long = chat(messages=({"role": "user", "content": "long " * 1_600},))
    read = chat(messages=({"role": "user", "content": "read " * 800},))
    deadlines = replace(HOURS, first_token=HOUR / 10)
    quick = HEAD + token("", **{**DONE, "prompt_eval_count": 1_700}) + END
    async with serving(slow, HOLD, quick, HOLD) as server, Bridge(server.url, deadlines=deadlines) as bridge:
        await bridge.think(read)
        asking = asyncio.create_task(bridge.think(long))
        await server.was_asked(2)
        await pass_time(1.09 * HOUR)
        assert not asking.done()
        await pass_time(0.02 * HOUR)
        with pytest.raises(OllamaTimeout) as late:
            await asking
        assert late.value.seconds == pytest.approx(1.1 * HOUR)
        other = replace(long, model="brick")
        await bridge.think(other)
        asking = asyncio.create_task(bridge.think(other))
        await server.was_asked(4)
        await pass_time(0.5 * HOUR)
        with pytest.raises(OllamaTimeout) as late:
            await asking
        assert late.value.seconds == pytest.approx(0.3 * HOUR)
        await server.was_left()


def test_a_pace_is_that_of_the_slowest_reading() -> None:
    """A cached prompt and one of a few words make no machine quicker, and a clock that jumped stops none."""
    pace = ReadingPace()
    pace.note("m", 10, 1_000.0)
    assert pace.find("m") == 0.0
    pace.note("m", 1_000, 10.0)
    pace.note("m", 4_000, 0.001)
    assert pace.find("m") == pytest.approx(0.01)
    assert pace.find("other") == 0.0
    pace.note("m", 1_000, 1e9)
    assert pace.find("m") == SLOWEST


@on_still_clock
async def test_a_wrong_belief_in_a_warm_model_costs_one_try() -> None:
    """After a timeout, another model or other runner options, the next call has the time to load again."""
    warm = streamed("warm")
    scripts = (warm, HOLD, HOLD, warm, HOLD, warm, HOLD)
    others = {5: chat(options={"num_ctx": 1024}), 7: chat(model="brick")}
    phases = []
    async with serving(*scripts) as server, Bridge(server.url, deadlines=HOURS) as bridge:
        for number, script in enumerate(scripts, 1):
            asking = asyncio.create_task(bridge.think(others.get(number, chat())))
            if script is warm:
                await asking
                continue
            await server.was_asked(number)
            await pass_time(6 * HOUR)
            with pytest.raises(OllamaTimeout) as late:
                await asking
            phases.append(late.value.phase)
    assert phases == ["first_token", "load", "load", "load"]


@on_still_clock
async def test_a_place_in_the_queue_is_no_silence() -> None:
    """While the daemon answers another of our calls, the wait for a first line is counted from its last token."""
    speech, turns = spoken(*"xxx")
    begins, heard = asyncio.Event(), list[str]()
    async with (
        serving(speech, [begins, streamed("at last")], HOLD) as server,
        Bridge(server.url, deadlines=HOURS) as bridge,
    ):
        first = asyncio.create_task(bridge.think(chat(), heard.append))
        await server.was_asked()
        second = asyncio.create_task(bridge.think(chat()))
        await server.was_asked(2)
        await hear(turns[:-1], heard)
        turns[-1].set()
        assert (await first).text == "xxx"
        await pass_time(3 * HOUR)
        assert not second.done()
        begins.set()
        assert (await second).text == "at last"
        third = asyncio.create_task(bridge.think(chat()))
        await server.was_asked(3)
        await pass_time(6 * HOUR)
        with pytest.raises(OllamaTimeout):
            await third


async def hear(turns: list[asyncio.Event], heard: list[str]) -> None:
    """Let the daemon speak, a token every three hours."""
    for turn in turns:
        heard.clear()
        turn.set()
        await until(heard.copy)
        await pass_time(3 * HOUR)


@on_still_clock
async def test_an_answer_that_streams_keeps_no_other_deadline_from_expiring() -> None:
    """A list of models that hangs is given up after its own seconds, though tokens of a chat come all the while."""
    speech, turns = spoken(*"xx")
    heard: list[str] = []
    async with serving(speech, HOLD) as server, Bridge(server.url, deadlines=HOURS) as bridge:
        thinking = asyncio.create_task(bridge.think(chat(), heard.append))
        await server.was_asked()
        listing = asyncio.create_task(bridge.list())
        await server.was_asked(2)
        await pass_time(1.5 * HOUR)
        assert not listing.done()
        turns[0].set()
        await until(lambda: heard)
        await pass_time(HOUR)
        with pytest.raises(OllamaTimeout) as late:
            await listing
        assert late.value.phase == "reply"
        assert not thinking.done()
        for turn in turns:
            turn.set()
        assert (await thinking).text == "xx"


@on_still_clock
async def test_a_text_waits_behind_a_chat_to_be_embedded() -> None:
    """A daemon that holds one model embeds nothing until the answer is whole: tokens are a sign of its turn."""
    speech, turns = spoken(*"xxx")
    begins, heard = asyncio.Event(), list[str]()
    vectors: Script = [begins, reply({"model": "e", "embeddings": [[1.0]]})]
    async with serving(speech, vectors) as server, Bridge(server.url, deadlines=HOURS) as bridge:
        thinking = asyncio.create_task(bridge.think(chat(), heard.append))
        await server.was_asked()
        embedding = asyncio.create_task(bridge.embed("e", ["x"]))
        await server.was_asked(2)
        await hear(turns[:-1], heard)
        turns[-1].set()
        assert (await thinking).text == "xxx"
        await pass_time(3 * HOUR)
        assert not embedding.done()
        begins.set()
        assert (await embedding).vectors == [[1.0]]


@pytest.mark.parametrize("beside", ["ps", "embed"])
@on_still_clock
async def test_a_runner_that_hangs_is_kept_alive_by_no_other_reply(beside: str) -> None:
    """Lists and vectors that come meanwhile are no sign that a chat has a place in the queue."""
    document = {"models": []} if beside == "ps" else {"model": "e", "embeddings": [[1.0]]}
    async with serving(HOLD, reply(document)) as server, Bridge(server.url, deadlines=HOURS) as bridge:
        thinking = asyncio.create_task(bridge.think(chat()))
        await server.was_asked()
        for hours in range(1, 7):
            await (bridge.ps() if beside == "ps" else bridge.embed("e", ["x"]))
            await pass_time(0.9 * HOUR)
            assert thinking.done() == (hours == 6)
        assert isinstance(thinking.exception(), OllamaTimeout)


@on_still_clock
async def test_slow_tokens_are_no_silence() -> None:
    """An answer may take far longer than any deadline as long as something comes."""
    speech, turns = spoken(*"x" * 12)
    heard: list[str] = []
    async with serving(speech) as server, Bridge(server.url, deadlines=HOURS) as bridge:
        thinking = asyncio.create_task(bridge.think(chat(), heard.append))
        await hear(turns[:-1], heard)
        turns[-1].set()
        assert (await thinking).text == "x" * 12


@on_still_clock
async def test_a_whole_answer_has_the_sum() -> None:
    """Of a whole answer nothing shows before its end: each permitted token adds to its deadline."""
    ends = asyncio.Event()
    request = chat(options={"num_ctx": 512, "num_predict": 28_800})  # of half a second each: four hours
    async with serving([ends, said("x")], HOLD) as server, Bridge(server.url, deadlines=HOURS) as bridge:
        asking = asyncio.create_task(bridge.think(request, stream=False))
        await server.was_asked()
        await pass_time(8 * HOUR)
        assert not asking.done()
        ends.set()
        assert (await asking).text == "x"
        asking = asyncio.create_task(bridge.think(request, stream=False))
        await server.was_asked(2)
        await pass_time(8 * HOUR)
        with pytest.raises(OllamaTimeout):
            await asking


async def test_an_answer_is_not_lost_to_a_stream_that_stays_open(bridge_to: MakeBridge) -> None:
    """When the server never ends the stream behind `done`, the answer is given all the same."""
    async with serving([FIRST + token("", **DONE), HOLD]) as server:
        bridge = bridge_to(server.url, deadlines=replace(PATIENT, drain=0.02))
        assert (await bridge.think(chat())).text == "one"
        await server.was_left()


@pytest.mark.parametrize("counts", [False, True])
async def test_a_cancellation_behind_the_last_line_loses_no_answer(bridge_to: MakeBridge, counts: bool) -> None:
    """Whoever is cancelled while the stream stays open behind `done` has the answer; a count is cancelled."""
    async with serving([HEAD + token("one", **DONE), HOLD]) as server:
        bridge = bridge_to(server.url)

        async def ask() -> str:
            return str(await bridge.count(chat())) if counts else (await bridge.think(chat())).text

        task = asyncio.create_task(ask())
        await until(lambda: bridge._chats.last)
        task.cancel()
        if counts:
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            assert await task == "one"
        assert task.cancelling() == 1
        await server.was_left()


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


@on_still_clock
async def test_embed_has_a_deadline() -> None:
    """It names the phase: the load, or the first vector of a model that was used before."""
    vectors = reply({"model": "e", "embeddings": [[1.0]]})
    async with serving(vectors, HOLD) as server, Bridge(server.url, deadlines=HOURS) as bridge:
        await bridge.embed("e", ["x"])
        for number, phase in ((2, "first_token"), (3, "load")):
            embedding = asyncio.create_task(bridge.embed("e", ["x"]))
            await server.was_asked(number)
            await pass_time(6 * HOUR)
            with pytest.raises(OllamaTimeout) as late:
                await embedding
            assert late.value.phase == phase


async def test_a_connection_has_a_deadline(bridge_to: MakeBridge) -> None:
    """An address that swallows packets is a timeout of the phase `connect`, or unreachable at once without a route."""
    bridge = bridge_to("http://192.0.2.1:11434", deadlines=replace(PATIENT, connect=0.2))
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
        await server.was_asked()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.was_left()


async def test_a_listener_that_stops_closes_the_stream(bridge_to: MakeBridge) -> None:
    """A caller that has heard enough raises, and the daemon sees it leave; the client alone would go on reading."""

    def enough(piece: str) -> None:
        raise StopAsyncIteration

    async with serving([FIRST, HOLD]) as server:
        bridge = bridge_to(server.url)
        with pytest.raises((StopAsyncIteration, RuntimeError)):
            await bridge.think(chat(), enough)
        await server.was_left()


async def test_breaking_out_of_a_pull_closes_it(bridge_to: MakeBridge) -> None:
    """Closing the generator of a pull ends it at the daemon."""
    progress = HEAD + b'1b\r\n{"status":"pulling a line"}\r\n'
    async with serving([progress.replace(b"1b", b"1c").replace(b"}\r\n", b"}\n\r\n"), HOLD]) as server:
        pull = bridge_to(server.url).pull("m")
        async for step in pull:
            assert step.status == "pulling a line"
            break
        await pull.aclose()
        await server.was_left()


async def test_closing_the_bridge_cuts_what_is_answered() -> None:
    """A call under way when the bridge closes ends with an error of the tree."""
    heard: list[str] = []
    async with serving([FIRST, HOLD]) as server:
        bridge = Bridge(server.url, deadlines=PATIENT)
        task = asyncio.create_task(bridge.think(chat(), heard.append))
        await until(lambda: heard)
        await bridge.aclose()
        with pytest.raises(OllamaError):
            await task
        await server.was_left()


async def test_a_deadline_is_not_a_cancellation() -> None:
    """What expires is OllamaTimeout; what is cancelled from outside while a deadline runs stays cancelled."""
    never = asyncio.Event()
    with pytest.raises(OllamaTimeout), PhaseTimer("load", 0.01):
        await never.wait()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0

    async def inside() -> None:
        with PhaseTimer("load", HANG):
            await never.wait()

    other = asyncio.create_task(inside())
    await asyncio.sleep(0)
    other.cancel()
    with pytest.raises(asyncio.CancelledError):
        await other


@on_still_clock
async def test_a_phase_can_be_shorter_than_the_one_before() -> None:
    """Entering a shorter phase arms the timer again; touching it restarts it."""
    lasted: list[int] = []

    async def phases() -> None:
        with PhaseTimer("load", 60 * HOUR) as timer:
            timer.enter("between_tokens", 2 * HOUR)
            for number in range(3):
                await pass_time(1.5 * HOUR)
                timer.touch()
                lasted.append(number)
            await pass_time(2.5 * HOUR)

    with pytest.raises(OllamaTimeout) as late:
        await phases()
    assert (late.value.phase, lasted) == ("between_tokens", [0, 1, 2])
