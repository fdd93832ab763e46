"""The turns of a conversation as text: word for word, with the summaries of older ones and the evidence of a prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batos.protocol.image_documents import ConversationPage
from batos.protocol.mission_documents import ProvenanceDocument
from batos.terminal.console import count_text
from batos.terminal.layout import wrap
from batos.terminal.short_names import local_time


def history_text(page: ConversationPage) -> str:
    """Write a page of turns, word for word, with the summaries that stand for older ones in prompts."""
    files = ", ".join(each["name"] for each in page["files"])
    lines = [f"{page['conversation']}: {count_text(page['count'], 'turn')}{f', with {files}' if files else ''}"]
    for each in page["turns"]:
        lines += ["", f"{each['position']}. {each['mission']}, {local_time(each['at'])}", wrap(each["question"])]
        lines += [f"   {', '.join(each['personas'])}:", wrap(each["answer"])]
    if page["next"] is not None:
        lines += ["", f"The next is {page['next']}."]
    if page["compactions"]:
        lines += ["", "In prompts these replace older turns:"]
    for made in page["compactions"]:
        lines += [
            f"   turns {made['turns'][0]} to {made['turns'][1]}, by {made['by']}:",
            wrap(made["text"], "     "),
        ]
    return "\n".join(lines)


def compacted_text(result: Mapping[str, Any], cost: str) -> str:
    """Write what a compaction made."""
    covered, whole = result["covered"], result["turns"]
    stands = f"{count_text(result['summaries'], 'summary').replace('summarys', 'summaries')} of turns 1 to {covered}"
    done = f"{stands} of {whole}; {count_text(len(result['made']), 'piece')} made, {cost}." if covered else ""
    return " ".join(each for each in (done, result["note"]) if each)


def recalled_text(provenance: ProvenanceDocument, compaction: str | None) -> str:
    """Write which turns the last answer was shown, and in what form."""
    recalled = provenance["recalled"]
    turns = [str(each["turn"]) if each["turn"] else each["mission"] for each in recalled if "turn" in each]
    views = [each for each in recalled if "turns" in each]
    lines = [f"word for word: {', '.join(turns) or 'no turn'}"]
    lines += [
        f"{'a summary' if each['by_model'] else 'first sentences'} of turns {each['turns'][0]} to {each['turns'][1]}"
        for each in views
    ]
    lines.append(f"left out: {count_text(provenance['omitted']['turns'], 'turn')}")
    if compaction is not None:
        lines.append(f"older turns are being compacted by {compaction}")
    return "\n".join(lines)
