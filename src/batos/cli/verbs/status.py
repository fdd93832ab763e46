"""The verb `status`: the state of the system on one screen, with a server or without one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal

import click

from batos.cli.declared import ask_once
from batos.cli.doors.choosing import chosen_server, open_door
from batos.cli.render.mission import placement_text
from batos.cli.verb_options import VerbCall, run, with_server
from batos.protocol.image_documents import CountsDocument, ErasureLine, NodeLine, RunningLine, genesis_text
from batos.protocol.motion_documents import HeartbeatDocument, RatesDocument, RateSpan, RateWindow
from batos.protocol.server_documents import JobLine
from batos.protocol.wire_messages import error_of
from batos.terminal.console import count_text, duration_text, local_time, short, size
from batos.terminal.layout import table
from batos.verbs.motion_verbs import alarm_text
from batos.verbs.server_verbs import STATUS

#: The most running missions, and failures, that fit a screen.
_SHOWN = 8
#: The missions of a node, by the key of their number.
_CLAIMED: Final[Mapping[Literal["running", "waiting"], str]] = {"running": "under way", "waiting": "waiting"}


@click.command()
@click.option("--ready", is_flag=True, help="Only report if a question would be answered now; exit with 0 if so.")
@click.option("--rates", is_flag=True, help="Add rates of today, of the last seven days and of all.")
@with_server
def status(called: VerbCall, ready: bool, rates: bool) -> int:
    """Show the status: server, queue, running missions, totals, models in memory, newest failures.

    Without a server the last commit of the image is read. Ollama is asked as well, and has a moment to
    answer. With --ready the exit code is 6 when no server runs, 3 when Ollama does not answer or lacks a model, and 5
    when the image accepts no more changes. With --rates it also tells what the mind's own work came to.
    """
    server = open_door(called, required=True) if ready else chosen_server(called)
    if server is not None:
        found: Mapping[str, Any] = {**run(ask_once(server, STATUS, {"rates": True} if rates else {}))}
    else:
        called.ending.begin_log()
        from batos.server.dispatch import looking  # a server's client loads nothing of the database

        found = {**run(looking.read_status(called.settings, rates=rates))}
    if ready:
        return _ready(called, found)
    if called.console.as_json:
        called.console.document(found)
    else:
        called.console.write(status_text(found, datetime.now(UTC)))
    return 0


def _ready(called: VerbCall, found: Mapping[str, Any]) -> int:
    """Say that all a question needs is there; raise the first thing that is not."""
    if not found["ready"]:
        raise error_of(found["reasons"][0])
    if called.console.as_json:
        called.console.document({"ready": True})
    elif not called.quiet:
        called.console.write("It is ready.")
    return 0


def status_text(found: Mapping[str, Any], now: datetime) -> str:
    """Write the screen; what an older or newer server does not tell is left out."""
    lines = [*_standing(found, now), *_nodes(found.get("nodes", ()), now), *_running(found.get("running", ()), now)]
    if found.get("erasure"):
        lines.insert(0, f"erasure  {_erasure_text(found['erasure'], now)}")
    if found.get("genesis"):
        lines.insert(0, f"genesis  {genesis_text(found['genesis'])}")
    lines += _jobs(found.get("jobs", ()), now)
    lines += _totals(found.get("counters") or {})
    lines += _methods(found.get("counters") or {})
    lines += _forms(found.get("forms") or {})
    lines += [f"memory   {placement_text(each)}" for each in (found.get("ollama") or {}).get("loaded", ())]
    failures = found.get("failures", ())[:_SHOWN]
    if failures:
        lines.append("newest failures")
        names = short([each["mission"] for each in failures])
        lines += [f"  {names[each['mission']]}  {_reason(each, now)}" for each in failures]
    if found.get("rates"):
        lines += _rates(found["rates"])
    return "\n".join(lines)


def _place(uri: str) -> str:
    """Return the path of an image in a file, without where its blobs are; the whole URI of another one.

    >>> _place("file:///home/ada/live_image.fs?blobstorage_dir=/home/ada/blobs"), _place("zeo://box:9")
    ('/home/ada/live_image.fs', 'zeo://box:9')
    """
    return uri.removeprefix("file://").partition("?")[0] if uri.startswith("file://") else uri


def _standing(found: Mapping[str, Any], now: datetime) -> Iterator[str]:
    server, image, ollama = (found.get(name) or {} for name in ("server", "image", "ollama"))
    if "server" in found and server == {}:
        yield f"server   {_without(found)}"
    if server:
        up = f", up {_since(server['started'], now)}" if "started" in server else ""
        yield f"server   {server.get('bind', '?')}, process {server.get('pid', '?')}{up}"
    if image:
        known = f", {size(image['bytes'])}, and a journal of {size(image['journal_bytes'])}" if "bytes" in image else ""
        known += f", blobs of {size(image['blob_bytes'])}" if image.get("blob_bytes") else ""
        yield f"image    {_place(image['uri'])}{known}"
        if image.get("error"):
            yield f"         {image['error']['message']}: {image['error']['remedy']}"
    if ollama:
        version, error = ollama.get("version"), ollama.get("error")
        yield f"ollama   {ollama['host']}, " + (f"version {version}" if version else "which does not answer")
        if error:
            yield f"         {error['message']}: {error['remedy']}"
    if found.get("queue"):
        yield f"queue    {found['queue']['waiting']:,} of {found['queue']['limit']:,} wait"
    asked = (found.get("approvals") or {}).get("waiting", 0)
    if asked:
        yield f"asked    {count_text(asked, 'question')} {'waits' if asked == 1 else 'wait'} for you: `batos approvals`"
    yield from _learning(found.get("learning") or {}, now)
    yield from _heartbeat(found.get("heartbeat"), now)
    told = ", ".join(f"{count:,} {word}" for word, count in (found.get("missions") or {}).items() if count)
    yield f"missions {told or 'none yet'}"


def _without(found: Mapping[str, Any]) -> str:
    """Tell who has the image where no server runs, and what becomes of what waits there."""
    if found.get("holder"):
        return f"no server runs (batos serve); {found['holder']} has the image"
    waits = any((found.get("missions") or {}).get(word) for word in ("queued", "running"))
    then = "; what is queued or running waits for it, or for `batos resume`" if waits else ""
    return f"no server runs (batos serve){then}"


def _learning(learning: Mapping[str, Any], now: datetime) -> Iterator[str]:
    """Yield a line on the methods that are to be made when nobody asks anything, and on the one being made."""
    making, waiting = learning.get("making"), learning.get("waiting", 0)
    if making or waiting:
        doing = f"; {making['selector']} since {_since(making['since'], now)}" if making else ""
        yield f"learning {count_text(waiting, 'method')} to be made{doing}"


def _heartbeat(beat: HeartbeatDocument | None, now: datetime) -> Iterator[str]:
    """Yield a line on the heartbeat if it is on, and one on the newest alarm that stands."""
    if beat and beat["on"]:
        last = f"last {_since(beat['ran'], now)} ago" if beat["ran"] else "not yet"
        yield f"beat     {last}, {beat['spent']:.0f} s of {beat['budget']:,.0f} s today"
    if beat and (alarms := beat.get("alarms")):
        more = f"; {len(alarms) - 1} more: `batos heartbeat`" if len(alarms) > 1 else ""
        yield f"alarm    {alarm_text(alarms[0])}{more}"


def _jobs(jobs: Iterable[JobLine], now: datetime) -> Iterator[str]:
    """Yield the background work that this process does, with the reason of each failure."""
    known = [each for each in jobs if each["state"] != "stopped"]
    rows = [
        [
            each["name"], each["state"], f"{_since(each['last'], now)} ago" if each["last"] else "-",
            local_time(each["next"], now) if each["next"] else "-", each["reason"],
        ]
        for each in known
    ]  # fmt: skip
    if rows:
        yield table(rows, ("jobs", "state", "last run", "next", "failed with"))


def _erasure_text(erasure: ErasureLine, now: datetime) -> str:
    """Tell of an erasure that is under way, or was cut off, and how it goes on."""
    left = "history is still to be cut" if erasure["stage"] == "history" else "words are still there"
    when = f"of {erasure['by']}, begun {local_time(erasure['at'], now)}"
    return f"{when}, is not finished: {left}. A server (batos serve), or the next question, finishes it"


def _nodes(nodes: Iterable[NodeLine], now: datetime) -> Iterator[str]:
    """Yield a line for each node of a shared image; the age of a lease is told by the server's clock and ours."""
    for at, node in enumerate(nodes):
        yield f"{'' if at else 'nodes':8} {node['name']}{' (here)' if node['here'] else ''}: {_node_text(node, now)}"


def _node_text(node: NodeLine, now: datetime) -> str:
    ago = _since(node["renewed"], now)
    told = {
        "live": f"lease renewed {ago} ago",
        "silent": f"suspended or dead, lease not renewed for {ago}",
        "ended": "lease ended, others take its missions over",
    }[node["state"]]
    parts = [told]
    parts += ["publishes"] if node["publishes"] else ["waits to publish"] if node["asks_to_publish"] else []
    parts += [f"{count_text(node[word], 'mission')} {what}" for word, what in _CLAIMED.items() if node[word]]
    return ", ".join(parts)


def _running(running: Sequence[RunningLine], now: datetime) -> Iterator[str]:
    if not running:
        return
    names = short([each["id"] for each in running])
    rows = [
        [names[each["id"]], each.get("state") or "", ", ".join(each.get("personas") or ()),
         _since(each.get("since"), now), str(each.get("calls", "")), each.get("text", "")]
        for each in running[:_SHOWN]
    ]  # fmt: skip
    yield table(rows, ("running", "state", "personas", "for", "calls", "question"))
    if len(running) > _SHOWN:
        yield f"and {len(running) - _SHOWN} more"


def _forms(forms: Mapping[str, str]) -> Iterator[str]:
    """Yield a line on the personas whose prompts have the lean form, if there are any."""
    lean = [persona for persona, form in forms.items() if form == "lean"]
    if lean:
        who = "all personas" if len(lean) == len(forms) else ", ".join(lean)
        yield f"prompts  in lean form for {who}"


def _since(moment: str | None, now: datetime) -> str:
    return duration_text(max(0.0, (now - datetime.fromisoformat(moment)).total_seconds())) if moment else "?"


def _totals(counters: CountsDocument) -> Iterator[str]:
    """Tell what was spent since the image was made, the time it took, and how it went for each persona."""
    if not counters:
        return
    count = {name: counters.get(name, 0) for name in ("calls", "from_journal", "embeds", "wasted", "revised", "busy")}
    prompt, answer = counters.get("prompt_tokens", 0), counters.get("answer_tokens", 0)
    calls = f"{count['calls']:,} {'call' if count['calls'] == 1 else 'calls'}"
    yield f"totals   {calls}, {prompt:,} prompt and {answer:,} answer tokens" + _beside(count)
    means = [f"{what} {_mean(counters[name]):.1f} s" for name, what in _TIMED.items() if name in counters]
    if means:
        yield f"average  {', '.join(means)}"
    for persona, ends in sorted((counters.get("missions") or {}).items()):
        told = ", ".join(f"{number:,} {word}" for word, number in sorted(ends.items()))
        yield f"{'unrouted' if persona == 'none' else persona.lower().ljust(8)} {told}"


def _methods(counters: CountsDocument) -> Iterator[str]:
    """Tell what came of intents: methods installed and retired, verdicts, repairs, kills, mutants."""
    verdicts, kills = counters.get("verdicts") or {}, sum((counters.get("kills") or {}).values())
    if not (verdicts or kills or counters.get("installs")):
        return
    told = [f"{counters.get('installs', 0):,} installed, {counters.get('retired', 0):,} retired"]
    told.append(f"{verdicts.get('accepted', 0):,} accepted and {verdicts.get('refused', 0):,} refused by the guardian")
    told.append(f"{counters.get('repairs', 0):,} repairs, {kills:,} runs killed")
    if counters.get("mutants"):
        told.append(f"checks kill {counters.get('mutants_killed', 0) / counters['mutants']:.0%} of mutants")
    yield f"methods  {'; '.join(told)}"


#: Histograms that are told as their mean.
_TIMED = {"first_token": "to the first token", "mission": "a mission"}
#: Counts that are told where there are any.
_BESIDE = {
    "from_journal": ("answer from the journal", "answers from the journal"),
    "embeds": ("embedding", "embeddings"),
    "wasted": ("token wasted", "tokens wasted"),
    "revised": ("revision", "revisions"),
    "busy": ("time busy", "times busy"),
}


def _beside(count: Mapping[str, object]) -> str:
    return "".join(
        f", {count[name]:,} {one if count[name] == 1 else more}" for name, (one, more) in _BESIDE.items() if count[name]
    )


def _rates(rates: RatesDocument) -> Iterator[str]:
    """Yield a table of the rates, a column for each window, and what has no window."""
    windows = [rates["windows"][span] for span in _WINDOWS]
    rows = [[name, *map(tell, windows)] for name, tell in _RATES.items()]
    yield table([row for row in rows if any(row[1:])], ("rates", *_WINDOWS.values()))
    if any(each["looked_at"] < sum(each["missions"].values()) for each in windows):
        most = max(each["looked_at"] for each in windows)
        yield f"         verdicts, sentences, medians, failures and outcomes are of the newest {most:,} missions"
    if audit := rates.get("audit"):
        yield f"audit    {audit['held']} of {audit['checks']} checks hold, the same since {audit['at'][:16]} UTC"
    if told := [f"{each['day']} {each['cem']:.3f}" for each in rates["cem"] if each["cem"] is not None]:
        yield f"cem      {', '.join(told)}"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{many:,} {word}" for word, many in counts.items())


def _work(window: RateWindow, *names: str) -> str:
    counted: Mapping[str, object] = window.get("counted") or {}
    return ", ".join(f"{counted[name]:,} {name.replace('_', ' ')}" for name in names if counted.get(name))


def _medians(window: RateWindow) -> str:
    middle = window["median"]
    return "" if middle is None else ", ".join(f"{value:,.1f} {name}" for name, value in middle.items())


def _first_token(window: RateWindow) -> str:
    counted = window.get("counted")
    seconds = counted["first_token"] if counted else None
    return "" if seconds is None else f"{seconds:.1f} s"


#: The windows in their order, and the lines of the table of rates.
_WINDOWS: Final[Mapping[RateSpan, str]] = {"day": "today", "week": "7 days", "all": "all"}
_RATES: Final[Mapping[str, Callable[[RateWindow], str]]] = {
    "missions": lambda each: _counts(each["missions"]),
    "verdicts": lambda each: _counts(each["verdicts"]),
    "sentences": lambda each: _counts(each["sentences"]).replace("_", " "),
    "a mission, median": _medians,
    "first token, mean": _first_token,
    "work": lambda each: _work(each, "calls", "tokens", "from_journal"),
    "trouble": lambda each: _work(each, "loads", "spills", "conflicts"),
    "run again": lambda each: f"{each['retries']:,}" if each["retries"] else "",
    "methods": lambda each: _work(each, "made", "refused", "retired"),
    "failures": lambda each: _counts(each["failures"]),
    "outcome": lambda each: "" if each["outcome"] is None else f"{each['outcome']:+.2f} of {each['rated']:,} rated",
}


def _mean(histogram: CountsDocument) -> float:
    many: int = sum(histogram["counts"])
    return float(histogram["seconds"]) / max(1, many)


def _reason(failure: Mapping[str, Any], now: datetime) -> str:
    reason = failure.get("reason") or {}
    what = f"{reason.get('code', failure.get('status', 'failed'))}: {reason.get('message', '')}"
    return f"{local_time(failure.get('at', ''), now)}  {what}"
