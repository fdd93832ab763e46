"""Trials and slots in words: what was changed, the evidence, and what an answer was before and after."""

from __future__ import annotations

from batos.protocol.trial_documents import SealedFigure, SlotLineage, TrialDocument, TrialPage, TrialWord
from batos.verbs import trial_verbs


def trial(state: TrialWord = "promoted") -> TrialDocument:
    """A trial of the temperature of two personas."""
    return {
        "id": "t-01M8P0", "lever": "mind.temperature", "state": state, "risk": 1,
        "changes": [
            {"slot": "ROBIN.temperature", "before": 0.8, "value": 0.3},
            {"slot": "BABS.temperature", "before": None, "value": 0.3},
        ],
        "candidates": [[0, 0], [0.3, 0.3]],
        "why": "Hrel: dip", "by": "heartbeat", "begun": "2026-11-30T12:00:00.000Z", "ended": None,
        "reason": "the answers got better", "screened": 20, "asked": 79, "wins": 13, "losses": 3, "evidence": 14.37,
        "needed": 10.0, "probed": 4, "calls": 1458, "tokens": 91600, "stood_on": ["t-01M8A0"],
        "examples": [{"question": "When?", "before": "Soon.", "after": "In 1889.", "worth": [0.0, 1.0]}],
    }  # fmt: skip


def unchosen() -> TrialDocument:
    """A trial that ended before a value was chosen, and for which nobody gave a reason."""
    told = trial("dropped")
    return {**told, "why": "", "changes": [{**each, "value": each["before"]} for each in told["changes"]]}


def test_trials_in_a_list() -> None:
    """A line each, and the honest line below: how many are expected to be no better."""
    page: TrialPage = {"trials": [trial(), unchosen()], "tried": 41, "kept": 3, "false": 0.3, "sealed": []}
    lines = trial_verbs.trials_text(page).splitlines()
    assert lines[-1] == "tried 41, kept 3, expected false among them at most 0.3"
    assert "mind.temperature" in lines[1]
    assert "14.4 of 10" in lines[1]
    assert "0 or 0.3" in lines[2]
    empty = trial_verbs.trials_text({"trials": [], "tried": 0, "kept": 0, "false": 0.0, "sealed": []})
    assert "batos heartbeat" in empty


def test_the_sealed_figure_and_the_one_before() -> None:
    """Below the trials, also where there are none; a gap is told in days."""
    figures: list[SealedFigure] = [
        {"share": share, "questions": 38, "day": day}
        for share, day in ((0.71, "2026-11-30"), (0.68, "2026-10-30"), (0.6, "2026-01-01"))
    ]
    page: TrialPage = {"trials": [trial()], "tried": 1, "kept": 1, "false": 0.1, "sealed": figures}
    line = trial_verbs.trials_text(page).splitlines()[-1]
    assert line == "sealed: 0.71 on 38 questions, 2026-11-30; 0.68 a month before"
    bare: TrialPage = {**page, "trials": [], "sealed": figures[1:]}
    assert trial_verbs.trials_text(bare).endswith("sealed: 0.68 on 38 questions, 2026-10-30; 0.60 302 days before")
    assert trial_verbs.trials_text({**page, "sealed": figures[2:]}).endswith("sealed: 0.60 on 38 questions, 2026-01-01")


def test_a_trial_whole() -> None:
    """The values before and after, the questions, the cost, and the examples word for word."""
    told = trial_verbs.trial_text(trial())
    parts = (
        "0.8 -> 0.3", "none -> 0.3", "13 better, 3 worse", "14.37; kept at 10", "1,458 calls", "t-01M8A0",
        "20 to choose the value, 79 to judge it, 4 after it was kept", "after, right", "In 1889.", "before, wrong",
    )  # fmt: skip
    for part in parts:
        assert part in told
    dropped = trial_verbs.trial_text(unchosen())
    for part in ("ROBIN.temperature 0.8 -> 0 or 0.3", "none -> 0 or 0.3", "why      by heartbeat"):
        assert part in dropped


def test_a_slot_with_its_values() -> None:
    """The value that acts, and each that it had; one that was never redefined says so."""
    slot: SlotLineage = {"slot": "ROBIN.form", "what": "the form of its prompts", "value": "auto", "values": []}
    assert "It was not redefined" in trial_verbs.slot_text(slot)
    redefined: SlotLineage = {
        **slot,
        "value": "lean",
        "values": [
            {"number": number, "value": value, "by": "ann", "at": "2026-11-30T12:00:00.000Z", "why": "", "trial": ""}
            for number, value in enumerate(("auto", "lean"))
        ],
    }
    assert "lean" in trial_verbs.slot_text(redefined)
    assert "once" in trial_verbs.slots_text({"slots": [redefined]})
    assert "batos genesis" in trial_verbs.slots_text({"slots": []})
