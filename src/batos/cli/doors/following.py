"""Missions and erasures that a verb follows at a door: a mission is printed until it ends, and Ctrl-C cancels it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, cast

from batos.cli.doors.door import Door, Opened
from batos.cli.render.mission_printer import MissionPrinter
from batos.cli.verb_options import VerbCall
from batos.protocol.brief import File
from batos.protocol.effect_documents import EffectList
from batos.protocol.errors import ApprovalNeeded, BatosError, NoServer, NotFound, Refused
from batos.protocol.mission_documents import MissionDocument
from batos.terminal.console import Console
from batos.verbs.effect_verbs import staged_text
from batos.verbs.method_verbs import after_lines

#: The exit code where an effect waits for a person's yes: that of an approval that is needed.
WAITS: Final = ApprovalNeeded.exit_code
_GONE: Final = "The server is gone; the next one finishes what was begun of the erasure, and this command waits for it."
_UNFINISHED: Final = "Start one with `batos serve`: it finishes what was begun of the erasure."
_STOPPED: Final = (
    "Stopped. What was begun of the erasure the server finishes, or else the next command that opens the image;"
    " `batos status` says whether any was."
)
_FINISHED: Final = (
    "The server that was lost may have begun to erase it, and the next one finished that: `batos doctor`."
)


@dataclass(slots=True)
class FollowedMission:
    """Missions that are waited for, each told by `printer`; `mission` is the last one that was accepted."""

    printer: MissionPrinter
    mission: str = ""
    #: Seconds in which a mission is to be cancelled and to tell its end.
    patience: float = 10.0
    #: The database that has the mission.
    kept_in: str = "image"
    #: The document of the last mission that has ended.
    found: MissionDocument = field(default_factory=MissionDocument)
    #: The one who follows it answers its questions, which are not printed as an error.
    is_answered: bool = False
    _accepted: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, door: Door, verb: str, args: Mapping[str, object]) -> int:
        """Ask for a mission (`submit`, `send`) and wait for its end; gives the exit code that it deserves.

        Cancelled: the mission is cancelled with it, and what it cost is told. Raises what kept it from being accepted.
        """
        self.mission = ""
        self._accepted.clear()
        return await self._follow(
            door, door.call(verb, {**args, "follow": True}, self.printer.on_event, self._acknowledge)
        )

    async def go_on(self, door: Door) -> int:
        """Follow the same mission on, once it was answered; as `run`."""
        return await self._follow(
            door, door.call("wait", {"mission": self.mission, "follow": True}, self.printer.on_event)
        )

    async def _follow(self, door: Door, asking: Coroutine[Any, Any, dict[str, Any]]) -> int:
        asked = asyncio.ensure_future(asking)
        try:
            # Shielded: what goes out is to be the end of the mission, not the end of the question about it.
            async with self.printer.telling("Ctrl-C stops it"):
                self.found = cast("MissionDocument", await asyncio.shield(asked))
            return WAITS if self.waits_unsaid else self.printer.print_end(self.found)
        except asyncio.CancelledError:
            await self._cancel(door, asked)
            raise
        except BatosError:
            if self.mission:
                self.parting()
            raise

    async def wait(self, door: Door, args: Mapping[str, object]) -> int:
        """Wait for a mission that was accepted before; stopped, it goes on without its watcher."""
        async with self.printer.telling("Ctrl-C leaves it"):
            found = await door.call("wait", {**args, "follow": True}, self.printer.on_event)
        return self.printer.print_end(cast("MissionDocument", found))

    @property
    def waits_unsaid(self) -> bool:
        """Test if the mission waits for a person, which was not printed."""
        reason: Mapping[str, Any] = self.found.get("reason") or {}
        return self.is_answered and self.found.get("status") == "waiting" and reason.get("code") == ApprovalNeeded.code

    async def tell_effects(self, door: Door, grants: Sequence[str], *, tells_none: bool = True) -> int:
        """Print what the mission does in the world by its grants, with exact arguments, and what waits for a yes.

        Returns the exit code: WAITS if something does. That there is nothing is told if the caller `tells_none`.
        """
        if not grants:
            return 0
        told = cast("EffectList", await door.call("effects", {"mission": self.mission}))
        rules = (self.found.get("provenance") or {}).get("rules", ())
        why = next((each["why"] for each in rules if each["decision"] == "effect"), "")
        is_silent = self.printer.quiet or self.printer.console.as_json
        if not is_silent and (told["effects"] or tells_none):
            self.printer.console.say(staged_text(told, self.mission, grants, why), dim=True)
        return WAITS if any(each["approval"] for each in told["effects"]) else 0

    async def learn(self, door: Door) -> None:
        """Let the door make what the mission did without, and tell what came of it.

        Methods that are still to be made are told once, by the mission that was the first to do without them; `verbose`
        tells them each time.
        """
        told = (await door.learn(self.mission)).copy()
        if not (told["new"] or self.printer.verbose):
            told["left"] = 0
        for line in () if self.printer.quiet else after_lines(told):
            self.printer.console.say(line, dim=True)

    def parting(self) -> None:
        """Say how what was begun is found again."""
        if self.mission:
            self.printer.console.say(f"{self.mission} is in the {self.kept_in}: `batos show {self.mission}`.")

    def _acknowledge(self, told: Mapping[str, object]) -> None:
        self.mission = str(told["mission"])
        self._accepted.set()

    async def _cancel(self, door: Door, asked: asyncio.Future[dict[str, Any]]) -> None:
        """Cancel the mission, or the question where none came of it."""
        accepted = asyncio.ensure_future(self._accepted.wait())
        try:
            # The mission may be durable and its acknowledgement still on the way.
            both: set[asyncio.Future[Any]] = {asked, accepted}
            await asyncio.wait(both, timeout=self.patience, return_when=asyncio.FIRST_COMPLETED)
            if not self.mission:
                return
            self.printer.console.say("Cancelling; Ctrl-C again leaves at once.", dim=True)
            # Not `asyncio.timeout`: in a task that was cancelled it tells its own end as another cancellation.
            await asyncio.wait_for(self._cancel_and_wait(door, asked), self.patience)
            self.printer.print_cancellation(cast("MissionDocument", asked.result()))
        except (BatosError, TimeoutError) as error:
            why = error.message if isinstance(error, BatosError) else "the server does not answer"
            self.printer.console.say(f"It could not be cancelled: {why}.")
            self.parting()
        finally:
            for each in (accepted, asked):
                each.cancel()
                with suppress(asyncio.CancelledError, BatosError):
                    await each

    async def _cancel_and_wait(self, door: Door, asked: asyncio.Future[dict[str, Any]]) -> None:
        """Cancel the mission and wait for its end."""
        with suppress(Refused):  # it has just ended by itself
            await door.call("cancel", {"mission": self.mission})
        await asyncio.wait({asked})


def follower(
    called: VerbCall, *, voices: bool = False, stream: bool | None = None, again: str | None = None
) -> FollowedMission:
    """Return what follows missions; the answer is shown as it grows by `stream`, and without a wish on a terminal."""
    live = called.console.out.isatty() if stream is None else stream
    return FollowedMission(MissionPrinter(called.console, called.quiet, live, voices, called.verbose, again=again))


async def follow(opened: Opened, followed: FollowedMission, verb: str, args: Mapping[str, object]) -> int:
    """Ask for a mission at a door, and wait for its end."""
    async with opened as way:
        return await followed.run(way, verb, args)


async def hand_over(way: Door, brief: Mapping[str, object], files: Sequence[File]) -> Mapping[str, object]:
    """Hand over the attachments and return the brief with their references."""
    return {**brief, "attachments": await way.attach(files)} if files else brief


async def erase(
    opened: Opened, args: Mapping[str, object], console: Console, *, quiet: bool = False
) -> dict[str, object]:
    """Erase what is named, show how far it is, say if the server is lost, and return what was erased.

    Whoever stops it is told what goes on. Raises: NoServer, NotFound: the remedy tells what became of an erasure whose
    server was lost.
    """
    from batos.cli.render.bars import Bars  # those who follow missions do without

    lost: list[str] = []
    bars = Bars(console, quiet=quiet)

    def on_event(event: str, keys: Mapping[str, object]) -> None:
        if event == "connection.lost":
            lost.append(event)
            console.say(_GONE)
        elif event == "connection.restored":
            console.say("The server is back.")
        else:
            bars.on_event(event, keys)

    try:
        async with opened as way:
            return await way.call("erase", args, on_event)
    except asyncio.CancelledError:
        console.say(_STOPPED)
        raise
    except NoServer as error:
        if lost:
            error.advise(_UNFINISHED)
        raise
    except NotFound as error:  # a client asks again, and the words are gone by then
        if lost:
            error.advise(_FINISHED)
        raise
    finally:
        bars.close()
