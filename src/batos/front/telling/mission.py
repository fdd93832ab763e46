"""How a mission is told: while it runs, when it is answered, when it failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from batos.errors import ApprovalNeeded, BatosError, MissionFailed, TimedOut
from batos.front.telling.console import Console, counted, size
from batos.front.telling.learning import learnt_lines, ran_lines
from batos.front.telling.voices import changes_lines, voices_lines
from batos.front.wire.protocol import error_of

#: Events that a program is told of while a mission runs.
_TOLD = frozenset({"mission", "inference", "vram", "connection", "guardian", "cell", "method", "approval"})


@dataclass(slots=True)
class Teller:
    """Hears a mission's events and tells them; people see states and the answer as it grows, programs every event."""

    console: Console
    quiet: bool
    stream: bool
    voices: bool
    _streamed: str = ""
    _line_open: bool = field(default=False)
    _alarmed: set[str] = field(default_factory=set)

    def hear(self, event: str, keys: Mapping[str, Any]) -> None:
        """An event."""
        if self.console.as_json:
            if event.partition(".")[0] in _TOLD and not self.quiet:
                self.console.event(event, keys)
            return
        if event == "vram.spill":
            self._spilled(keys)
        elif event == "mission.token" and self.stream:
            self._token(str(keys["text"]))
        elif event == "mission.retracted":
            self._retracted(keys)
        elif not self.quiet:
            self._progress(event, keys)

    def _token(self, text: str) -> None:
        if not self._line_open:
            self.console.stream("" if self.quiet else "\n")
            self._line_open = True
        self._streamed += text
        self.console.stream(text)

    def _close_line(self) -> None:
        if self._line_open:
            self.console.stream("\n")
            self._line_open = False

    def _spilled(self, keys: Mapping[str, Any]) -> None:
        """An alarm, also where only the result is wanted; once a runner."""
        if keys["runner"] not in self._alarmed:
            self._alarmed.add(str(keys["runner"]))
            self._close_line()
            self.console.say(f"warning: {placement_text(keys)}; every answer is many times slower.")
            self.console.say("         Free memory on the card or lower num_ctx: see `batos budget`.")

    def _retracted(self, keys: Mapping[str, Any]) -> None:
        self._close_line()
        if self._streamed or keys.get("path") is not None:  # who was shown nothing need not know that it broke off
            self.console.say(f"{retracted_text(keys)}.", dim=True)
        self._streamed = ""

    def _progress(self, event: str, keys: Mapping[str, Any]) -> None:
        if event == "mission.accepted":
            self.console.say(f"{keys['mission']} accepted", dim=True)
        elif event == "genesis.step" and (keys["status"] == "success" or str(keys["step"]).startswith("leave out")):
            # What was made because codex, adapters or the daemon changed: seldom, and it explains what comes.
            self.console.say(f"{keys['step']}: {'done' if keys['status'] == 'success' else keys['status']}", dim=True)
        elif event == "connection.lost":
            self._close_line()
            self.console.say("The server is gone; the mission is in the image, and this waits for it to come back.")
        elif event == "connection.restored":
            self.console.say("The server is back.")
        elif event == "mission.status" and keys["status"] == "waiting":
            self._waits(keys.get("reason") or {})
        elif event == "mission.routed":
            self.console.say(route_text(keys), dim=True)
        elif event == "mission.state":
            self._close_line()
            self.console.say(state_text(keys), dim=True)
        elif event == "mission.partial":
            self.console.say(partial_text(keys), dim=True)
        elif event == "method.generating":
            self._close_line()
            self.console.say(f"    learning {keys['selector']} ...", dim=True)

    def _waits(self, reason: Mapping[str, Any]) -> None:
        """Told behind the state FAILED, in which the attempt ended: the mission has not."""
        self._close_line()
        if reason.get("code") != ApprovalNeeded.code:  # that one ends the waiting for it, and is told then
            self.console.say(f"It waits, and is tried again: {reason.get('message', '')}")

    def ended(self, mission: Mapping[str, Any]) -> int:
        """A mission that came to its end or stands still; gives the exit code that it deserves."""
        if mission["status"] == "done":
            self.answer(mission)
            return 0
        error = why(mission)
        self.failed(mission, error)
        return error.exit_code

    def answer(self, mission: Mapping[str, Any]) -> None:
        """A mission that is done."""
        if self.console.as_json:
            self.console.document(mission)
            return
        self._close_line()
        if self._streamed.strip() != str(mission["answer"]).strip():
            self.console.write(str(mission["answer"]))
        if not self.quiet:
            self.console.say("\n" + notes_text(mission, voices=self.voices))
        elif not mission["provenance"]["gate"]["ok"]:
            self.console.say(f"The gate still finds faults in this: batos show {mission['id']}")

    def failed(self, mission: Mapping[str, Any], error: BatosError) -> None:
        """A mission that failed."""
        self._close_line()
        self._report(mission)
        self.console.error(error)
        self._ended(mission)

    def cancelled(self, mission: Mapping[str, Any]) -> None:
        """A mission that was interrupted."""
        self._close_line()
        self._report(mission)
        self._ended(mission)

    def _report(self, mission: Mapping[str, Any]) -> None:
        """For programs: the document says what was wrong, and before it comes the mission whose status says so."""
        if self.console.as_json and not self.quiet:
            self.console.event("mission.report", {"mission": mission})

    def _ended(self, mission: Mapping[str, Any]) -> None:
        self.console.say(f"{mission['id']} is {mission['status']}; {cost_text(mission)}.")
        for line in learnt_lines(mission.get("provenance") or {}):
            self.console.say(line)
        # What stands still goes on as it is: only what has ended needs another mission for what it paid for.
        cost = mission.get("cost", {})
        paid = cost.get("calls") and cost["prompt_tokens"] + cost["answer_tokens"]  # a call may have found nobody
        if mission["status"] in ("failed", "cancelled") and paid:
            self.console.say(f"Ask again with --ancestor {mission['id']} and what was paid for is not paid twice.")


def retracted_text(keys: Mapping[str, Any]) -> str:
    """Why what was streamed no longer stands: under no path it is the attempt that broke off, and is made again.

    >>> retracted_text({"mission": "m-1"})
    'This broke off; the answer is told again from its beginning'
    """
    path = keys.get("path")
    if path is None:
        return "This broke off; the answer is told again from its beginning"
    if "/protocol/" in str(path):
        return "A key protocol goes over this; what stands then follows"
    return "The gate found a fault in this; it is being revised"


def why(mission: Mapping[str, Any]) -> BatosError:
    """Why a mission has no answer, as the error that it is for whoever waited for one."""
    name, status, reason = mission["id"], mission["status"], mission.get("reason")
    if status == "waiting" and reason and reason["code"] == ApprovalNeeded.code:
        return error_of(reason)
    if status in ("waiting", "paused"):
        said = f": {reason['message']}" if reason else ""
        return TimedOut(f"{name} is {status}{said}", remedy=f"`batos resume {name}` lets it go on.")
    return error_of(reason) if reason else MissionFailed(f"{name} is {status}")


def state_text(keys: Mapping[str, Any]) -> str:
    """A state that a mind entered; a mind within another stands further to the right, with its name."""
    inner = str(keys.get("path") or "").split("/")[1:]
    return f"  {'  ' * len(inner)}{f'{inner[-1].upper()} ' if inner else ''}{keys['state']}"


def partial_text(keys: Mapping[str, Any]) -> str:
    """A part that came back: a facet of the mind at work, or a mind within it."""
    facet = keys.get("facet")
    who = str(keys.get("persona") if facet is None else facet).removesuffix("_facet_")
    # A facet's path ends in the state and itself: what stands before them, but the outermost mind, it is within.
    depth = 0 if facet is None else max(0, str(keys["path"]).count("/") - 2)
    return f"    {'  ' * depth}{who} {'answered' if keys['known'] else 'has no answer'}"


def route_text(route: Mapping[str, Any]) -> str:
    """Who takes it, how, and why; who was near it too, but does not think."""
    near = "" if route["effort"] == "council" else ", ".join(route["personas"][1:])
    how = f"{who(route)} at effort {route['effort']}, confidence {route['confidence']:.2f}: {route['reason']}"
    return f"{how} (near: {near})" if near else how


def who(route: Mapping[str, Any]) -> str:
    """Who thinks: all that were chosen at effort council, else the leader alone.

    >>> who({"personas": ["BABS", "BRICK"], "effort": "reflex"}), who({"personas": [], "effort": None})
    ('BABS', '')
    """
    return ", ".join(route["personas"][: None if route["effort"] == "council" else 1])


def cost_text(mission: Mapping[str, Any]) -> str:
    """What it cost."""
    cost = mission.get("cost")
    if not cost:
        return "nothing was spent"
    served = f", {counted(cost['from_journal'], 'answer')} from the journal" if cost["from_journal"] else ""
    return (
        f"{counted(cost['calls'], 'call')}, {cost['prompt_tokens']} prompt and {cost['answer_tokens']} answer tokens, "
        f"{cost['seconds']:.1f} s in Ollama{served}"
    )


def notes_text(mission: Mapping[str, Any], *, voices: bool) -> str:
    """What stands under an answer: facets, sources, the gate, route, cost, transitions."""
    provenance = mission["provenance"]
    lines = [*voices_lines(mission.get("voices", ()), whole=voices), *_combined(provenance)]
    lines += [*_sources(provenance), *_gate(provenance)]
    if voices:
        lines += changes_lines(provenance)
    lines += ran_lines(provenance)
    lines.append(f"route    {route_text(mission['route'])}")
    lines.append(f"spent    {cost_text(mission)}")
    lines += [*learnt_lines(provenance), *placements(provenance)]
    if mission["states"]:  # a message that is no cycle has none
        lines.append(f"states   {' > '.join(step['state'] for step in mission['states'])}")
    if "conversation" in mission["brief"]:
        lines.append(f"talk     {mission['brief']['conversation']} (go on with --conversation last)")
    lines.append(f"mission  {mission['id']}, commit {mission['tid']}")
    return "\n".join(lines)


def placement_text(placement: Mapping[str, Any]) -> str:
    """Where a model lies."""
    model, whole = placement["model"], placement["size"]
    if placement["where"] == "card":
        return f"{model} is on the card, {size(whole)}"
    if placement["where"] == "processor":
        return f"{model} runs on the CPU, {size(whole)}"
    return f"{model} does not fit the card: {size(whole - placement['size_vram'])} of its {size(whole)} run on the CPU"


def placements(provenance: Mapping[str, Any]) -> list[str]:
    """Where the models lay that it thought with, a line a runner: those of one base are in memory once."""
    runners: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for each in provenance.get("placements", ()):
        runners.setdefault((each["runner"], each["where"], each["size_vram"]), []).append(each)
    return [f"memory   {placement_text(one)}{_sharing(more)}" for one, *more in runners.values()]


def _sharing(more: Sequence[Mapping[str, Any]]) -> str:
    names = ", ".join(str(each["model"]) for each in more)
    return f"; {names} {'shares' if len(more) == 1 else 'share'} its runner" if more else ""


def _combined(provenance: Mapping[str, Any]) -> list[str]:
    """How one part's answer came to stand, and for whom nobody was asked; a weave is the usual, and is not told."""
    combined = provenance.get("combined") or {}
    if "winner" not in combined:
        return []
    if "votes" in combined:
        way = f"by vote, {combined['asked']} of {counted(combined['of'], 'part')} asked"
    else:
        way = f"by selection among {counted(combined['candidates'], 'answer')}"
    return [f"combined {way}: that of {combined['winner']['name']} stands"]


def _sources(provenance: Mapping[str, Any]) -> list[str]:
    names = {each["document"]: each["name"] for each in provenance["recalled"] if "document" in each}
    lines = [
        f'source   [{each["document"]}] {names.get(each["document"], "?")}: "{each["quote"]}"'
        for each in provenance["citations"]
    ]
    omitted = provenance["omitted"]
    left = [counted(omitted[what], what[:-1]) for what in ("passages", "turns") if omitted[what]]
    if left:
        lines.append(f"left out {' and '.join(left)}, for want of room")
    return lines


def _gate(provenance: Mapping[str, Any]) -> list[str]:
    gate = provenance["gate"]
    if gate["ok"] and not gate["checked"]:  # a value that a message read: nothing of it could be faulty
        return []
    revised = " after one revision" if gate["revised"] else ""
    if gate["ok"]:
        return [f"gate     passed{revised} ({counted(len(gate['checked']), 'check')})"]
    return [f"gate     still faulty{revised}:", *(f"         {fault['what']}" for fault in gate["faults"])]
