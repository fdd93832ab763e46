"""Tells a key protocol more than the answer: the findings of the last audit, or what the thought cost so far."""

from __future__ import annotations

from typing import Any

from batos.genesis import register
from batos.minds.context import MindContext
from batos.minds.results import Synthesis
from batos.objects.method import Intent

#: Findings that are told at most, and characters of each.
_FINDINGS, _FINDING = 12, 300


def text(context: MindContext, synthesis: Synthesis, intent: Intent) -> str:
    """Return the lines that follow the task of a protocol; empty for one that is given nothing.

    The same again for who thinks the same thought again: what was paid before counts, and no time is told.
    """
    if intent.given == "audit":
        return _audit(register.last_audit(context.mission.root))
    if intent.given == "cost":
        answers, tokens = context.io.session.usage
        revisions = max(len(synthesis.drafts) - 1, 0)
        return f"Measured costs:\n- calls: {answers}\n- tokens, prompts counted: {tokens}\n- revisions: {revisions}"
    return ""


def _audit(last: dict[str, Any] | None) -> str:
    if last is None:
        return "Findings of the computed audit: none; genesis has not run to its end."
    wrong = [each for each in last["findings"] if not each["ok"]]
    told = (" ".join(f"{each['id']}: {each['what']}. {each['remedy']}".split()) for each in wrong)
    lines = [f"- {line[:_FINDING]}" for line in told]
    if len(lines) > _FINDINGS:
        lines = [*lines[:_FINDINGS], f"- {len(wrong) - _FINDINGS} more"]
    held = f"- {len(last['findings']) - len(wrong)} of {len(last['findings'])} checks hold"
    return "\n".join((f"Findings of the computed audit, so since {last['at']}:", held, *lines))
