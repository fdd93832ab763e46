"""The printer of a mission: what people see while they wait, and the screen under an answer with its sources."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, cast

from batos.cli.render.live import LiveLine
from batos.cli.render.mission import (
    computed_lines,
    cost_text,
    gate_line,
    moment,
    notes_text,
    partial_text,
    placement_text,
    placements,
    retracted_text,
    route_text,
    state_text,
    tool_text,
    voices_lines,
    withdrawn_lines,
)
from batos.protocol.errors import AnswerCut, ApprovalNeeded, BatosError, DecisionInvalid
from batos.protocol.evidence_documents import CitationDocument
from batos.protocol.mission_documents import MissionDocument, PlacementDocument, ProvenanceDocument, RouteDocument
from batos.protocol.wire_messages import mission_error
from batos.terminal.console import Console, count_text, moment_text, title_with_path
from batos.verbs.method_verbs import learning_line, learnt_lines
from batos.verbs.mission_verbs import ended_text

#: Characters of a quotation in a footnote, and how many of one document are shown.
_QUOTE: Final = 240
_QUOTES: Final = 3


def screen_lines(mission: MissionDocument, *, voices: bool) -> list[str]:
    """Return the lines under an answer above its last ones; none where it has no source and nothing waits."""
    provenance = mission["provenance"]
    lines = [*voices_lines(mission.get("voices", ()), whole=True)] if voices else []
    lines += [*footnotes(provenance), *computed_lines(provenance), *unseen_lines(provenance)]
    lines += _missing_tool(provenance)
    return [*lines, *_waiting(provenance), *placements(provenance, ("spilled",))]


def _missing_tool(provenance: ProvenanceDocument) -> Iterator[str]:
    """Yield the reason why no tool was made where one was asked for."""
    protocol = provenance["gate"].get("protocol")
    if protocol is not None and protocol.get("tool", protocol["slot"]) is None:
        failure = protocol.get("failure")
        nothing = "the answer did nothing that a small method could do again."
        reason = f"{failure['message']}. {failure['remedy']}".strip() if failure else nothing
        yield f"No tool was made: {reason}"


def _waiting(provenance: ProvenanceDocument) -> Iterator[str]:
    """Yield one line, however many methods wait for a person."""
    asked = [each for each in provenance.get("generated", ()) if each["outcome"] == "asked"]
    if len(asked) == 1:
        yield f"{asked[0]['selector']} waits for your approval: batos approvals {asked[0]['approval']}"
    elif asked:
        yield f"{count_text(len(asked), 'method')} wait for your approval: batos approvals"


def footnotes(provenance: ProvenanceDocument) -> Iterator[str]:
    """Yield a line for each document that the answer cites, with the sentences that it quotes."""
    recalled = [each for each in provenance["recalled"] if "document" in each]
    names = {each["document"]: title_with_path(each["name"], each.get("source", "")) for each in recalled}
    found = {each["document"]: each["why"] for each in recalled if "why" in each}
    lacking = {each["document"]: each["left_out"] for each in recalled if "left_out" in each}
    quotes: dict[int, dict[str, None]] = {}
    for each in provenance["citations"]:
        page = f" (page {each['page']})" if "page" in each else ""
        quotes.setdefault(each["document"], {})[f'"{_short(each["quote"])}"{page}'] = None
    for document, said in sorted(quotes.items()):
        shown = "; ".join(list(said)[:_QUOTES])
        more = f"; and {len(said) - _QUOTES} more" if len(said) > _QUOTES else ""
        why = f" (remembered; {found[document]})" if document in found else ""
        yield f"[{document}] {names.get(document, '?')}: {shown}{more}{why}"
        if document in lacking:
            yield f"[{document}] was read in part: {'; '.join(lacking[document])}."


def _short(quote: str) -> str:
    told = " ".join(quote.split())
    return told if len(told) <= _QUOTE else f"{told[: _QUOTE - 3]}..."


def unseen_lines(provenance: ProvenanceDocument) -> Iterator[str]:
    """Yield lines on what did not fit into the prompt, so that nothing is left out in silence."""
    omitted = provenance["omitted"]
    gone = []
    if omitted["passages"]:
        shown = sum("document" in each for each in provenance["recalled"])
        gone.append(f"{count_text(omitted['passages'], 'passage')} of the files ({shown:,} shown)")
    if omitted["turns"]:
        gone.append(count_text(omitted["turns"], "earlier turn"))
    if omitted.get("parts"):
        gone.append(f"the end of {count_text(omitted['parts'], 'part')}")
    if gone:
        yield f"Not shown to the model, for lack of room: {', '.join(gone)}."


def summary_line(mission: MissionDocument, again: str) -> str:
    """Return in one line who answered, with how much effort, the cost, and where all of it can be read."""
    cost, route = mission["cost"], mission["route"]
    seconds = _seconds(mission)
    took = [
        *([f"{', '.join(route['personas'])}, {route['effort']}"] if route["personas"] else []),
        count_text(cost["calls"], "call"),
        *([f"{count_text(cost['from_journal'], 'answer')} from the journal"] if cost["from_journal"] else []),
        f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s",
    ]
    return " · ".join([*took, again] if again else took)


def _seconds(mission: MissionDocument) -> float:
    """Return the seconds from the first state to the last; without states, those of its calls."""
    states = mission["states"]
    if len(states) < 2:
        return mission["cost"]["seconds"]
    return (moment(states[-1]["at"]) - moment(states[0]["at"])).total_seconds()


#: Seconds between two drawings of the live line.
_PACE: Final = 0.25
#: Events that a program is told of while a mission runs.
_TOLD = frozenset({"mission", "inference", "vram", "connection", "guardian", "cell", "method", "approval"})
#: The errors of answers that are in the journal: the same question reads them there, and fails the same.
_REPEATED = frozenset({AnswerCut.code, DecisionInvalid.code})


@dataclass(slots=True)
class MissionPrinter:
    """Hears a mission's events and tells them; people see a line of it and the answer as it grows, programs all events.

    `verbose` tells people each step as it comes, and everything that is known under the answer.
    """

    console: Console
    quiet: bool
    streams: bool
    shows_voices: bool
    verbose: bool = False
    live: LiveLine = field(default_factory=LiveLine)
    #: The command that shows all of the mission; None where its own name does.
    again: str | None = None
    _streamed: str = ""
    _line_open: bool = field(default=False)
    #: The sentence and the document that were marked last.
    _marked: tuple[str, int] = ("", 0)
    _alarmed: set[str] = field(default_factory=set)

    def on_event(self, event: str, keys: Mapping[str, object]) -> None:
        """Take an event."""
        if self.console.as_json:
            if event.partition(".")[0] in _TOLD and not self.quiet:
                self.console.event(event, keys)
            return
        self.live.on_event(event, keys)
        if event == "vram.spill":
            self._warn_of_spill(keys)
        elif event == "mission.token" and self.streams:
            self._token(str(keys["text"]))
        elif event == "mission.citation":
            self._mark_citation(cast("CitationDocument", keys))
        elif event == "mission.retracted":
            self._print_retraction(keys)
        elif not self.quiet:
            self._progress(event, keys)
            if self.verbose:
                self._step(event, keys)

    def tick(self) -> None:
        """Draw the live line anew, unless an answer is being written."""
        if not (self.quiet or self._line_open):
            self.console.redraw([self.live.line()])

    def begin(self, stop: str) -> None:
        """Begin to wait for another mission; `stop` says how to stop it."""
        self._streamed = ""
        self.live = LiveLine(self.live.clock, stop)

    @asynccontextmanager
    async def telling(self, stop: str) -> AsyncIterator[None]:
        """Wait for another mission as `begin` says; the live line is kept up to date, and taken away in the end."""
        self.begin(stop)
        if not self.has_live_line:
            yield
            return
        drawing = asyncio.ensure_future(self._draw())
        try:
            yield
        finally:
            drawing.cancel()
            await asyncio.wait({drawing})
            self.console.redraw([])

    async def _draw(self) -> None:
        while True:
            self.tick()
            await asyncio.sleep(_PACE)

    @property
    def has_live_line(self) -> bool:
        """Test if there is a terminal for the live line."""
        return self.console.has_colour and not (self.console.as_json or self.quiet)

    def _token(self, text: str) -> None:
        if not self._line_open:
            self.console.stream("\n" if self.verbose else "")
            self._line_open = True
        self._streamed += text
        self.console.stream(text)

    def _mark_citation(self, keys: CitationDocument) -> None:
        """Mark a sentence, on a terminal, with the number of its document's footnote, unless the model wrote it."""
        marked, mark = (keys["sentence"], keys["document"]), f"[{keys['document']}]"
        if self._line_open and self.has_live_line and marked != self._marked and mark not in marked[0]:
            self.console.stream(f" {mark}")
        self._marked = marked

    def _close_line(self) -> None:
        if self._line_open:
            self.console.end_stream()
            self._line_open = False

    def _warn_of_spill(self, keys: Mapping[str, object]) -> None:
        """Warn of it, also where only the result is wanted; once a runner."""
        if keys["runner"] not in self._alarmed:
            self._alarmed.add(str(keys["runner"]))
            self._close_line()
            self.console.say(
                f"warning: {placement_text(cast('PlacementDocument', keys))}; every answer is many times slower.",
                warn=True,
            )
            self.console.say("         Free memory on the card or lower num_ctx: see `batos budget`.")

    def _print_retraction(self, keys: Mapping[str, object]) -> None:
        self._close_line()
        # A person who was shown nothing need not know that it broke off.
        if self._streamed or (self.verbose and keys.get("path") is not None):
            self.console.say(f"{retracted_text(keys)}.", dim=True)
        self._streamed = ""

    def _progress(self, event: str, keys: Mapping[str, object]) -> None:
        """Tell people what they should know while they wait."""
        if event == "genesis.step" and (keys["status"] == "success" or str(keys["step"]).startswith("leave out")):
            # A model that was made because codex, adapters or the daemon changed: seldom, and it explains what comes.
            self.console.say(f"{keys['step']}: {'done' if keys['status'] == 'success' else keys['status']}", dim=True)
        elif event == "mission.rule" and keys["decision"] == "mapping":
            self.console.say(f"{str(keys['why'])[:1].upper()}{str(keys['why'])[1:]}.", dim=True)
        elif event == "mission.tool":
            self._close_line()
            self.console.say(f"{tool_text(keys)}.", dim=True)
        elif event == "connection.lost":
            self._close_line()
            self.console.say("The server is gone; the mission is in the image, and this command waits for the server.")
        elif event == "connection.restored":
            self.console.say("The server is back.")
        elif event == "mission.status" and keys["status"] == "waiting":
            self._print_waiting(cast("Mapping[str, object]", keys.get("reason") or {}))

    def _step(self, event: str, keys: Mapping[str, object]) -> None:
        """Tell each step, for whoever wants to see them all."""
        if event == "mission.accepted":
            self.console.say(f"{keys['mission']} accepted", dim=True)
        elif event == "mission.routed":
            self.console.say(route_text(cast("RouteDocument", keys)), dim=True)
        elif event == "mission.state":
            self._close_line()
            self.console.say(state_text(keys), dim=True)
        elif event == "mission.partial":
            self.console.say(partial_text(keys), dim=True)
        elif event == "method.generating":
            self._close_line()
            self.console.say(f"    learning {keys['selector']} ...", dim=True)

    def _print_waiting(self, reason: Mapping[str, object]) -> None:
        """Tell, behind the state FAILED in which an attempt ended, that the mission waits and is tried again."""
        self._close_line()
        if reason.get("code") != ApprovalNeeded.code:  # that one ends the waiting for it, and is told then
            self.console.say(f"It waits, and is tried again: {reason.get('message', '')}")

    def print_end(self, mission: MissionDocument) -> int:
        """Report a mission that ended or stands still; return the exit code that it deserves."""
        if "as_of" in mission and not (self.quiet or self.console.as_json):
            self._close_line()
            at = moment_text(mission["as_of"]["at"])
            self.console.say(f"Asked as of {at}; the journal has this mission, the image has not.", dim=True)
        if mission["status"] == "done":
            self.print_answer(mission)
            return 0
        error = mission_error(mission)
        self.print_failure(mission, error)
        return error.exit_code

    def print_answer(self, mission: MissionDocument) -> None:
        """Report a mission that is done."""
        if self.console.as_json:
            self.console.document(mission)
            return
        self._close_line()
        if self._streamed.strip() != str(mission["answer"]).strip():
            self.console.write_answer(str(mission["answer"]))
        if self.quiet:
            for line in unseen_lines(mission["provenance"]):
                self.console.say(line)
            self._say_doubts(mission)
        elif self.verbose:
            self.console.say("\n" + notes_text(mission, voices=self.shows_voices))
        else:
            self.console.say("")
            for line in screen_lines(mission, voices=self.shows_voices):
                self.console.say(line)
            self._say_doubts(mission)
            again = f"batos show {mission['id']}" if self.again is None else self.again
            self.console.say(summary_line(mission, again), dim=True)

    def _say_doubts(self, mission: MissionDocument) -> None:
        """Print the doubts of the gate in an answer in one dim line, and each text that was withdrawn in another."""
        for line in withdrawn_lines(mission["provenance"]):
            self.console.say(line, dim=True)
        if line := gate_line(mission["provenance"]):
            self.console.say(line, dim=True)

    def print_failure(self, mission: MissionDocument, error: BatosError) -> None:
        """Report a mission that failed."""
        self._close_line()
        self._report(mission)
        self.console.error(error)
        self._print_end_line(mission)

    def print_cancellation(self, mission: MissionDocument) -> None:
        """Report a mission that was interrupted."""
        self._close_line()
        self._report(mission)
        self._print_end_line(mission)

    def _report(self, mission: MissionDocument) -> None:
        """Give programs the mission, whose status says how it ended, before the document with the error."""
        if self.console.as_json and not self.quiet:
            self.console.event("mission.report", {"mission": mission})

    def _print_end_line(self, mission: MissionDocument) -> None:
        self.console.say(f"{mission['id']} {ended_text(mission['status'])}; {cost_text(mission)}.")
        known = mission.get("provenance", ProvenanceDocument())
        for line in learnt_lines(known) if self.verbose else filter(None, [learning_line(known)]):
            self.console.say(line)
        # A mission that stands still goes on as it is: only an ended one needs another mission for what it paid for.
        reason: Mapping[str, object] = mission.get("reason") or {}
        cost = mission.get("cost")
        # A call may have found nobody.
        paid = cost is not None and cost["calls"] and cost["prompt_tokens"] + cost["answer_tokens"]
        if "as_of" in mission:  # no mission of the image, and none can be its successor
            return
        if mission["status"] == "failed" and paid and reason.get("code") in _REPEATED:
            same = "reads the same answers in the journal and fails in the same way"
            self.console.say(f"`batos retry {mission['id']}` {same}, until what the error names is changed.")
        elif mission["status"] in ("failed", "cancelled") and paid:
            self.console.say(f"`batos retry {mission['id']}` asks it again, and pays for no call twice.")
        elif mission["status"] == "failed" and reason.get("retry"):
            self.console.say(f"`batos retry {mission['id']}` asks it again, once the cause is fixed.")
