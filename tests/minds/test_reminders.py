"""Orders to be reminded: the command that is offered can be run as it stands, and a question is no order."""

from __future__ import annotations

import re
import shlex
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.agency import schedule_rules
from batos.memory.exchanges import REMINDS
from batos.minds.reminders import offer
from batos.testing import ScriptedBridge, scripted_uvm

NOW = datetime(2026, 11, 30, 7, tzinfo=UTC)  # a Monday, 8:00 in Berlin


def offered(text: str) -> tuple[str, str]:
    """Return when and of what the offered command reminds; two empty texts where nothing is offered."""
    found = re.search(r"`batos schedule add (.+) --remind`", offer(text))
    when, what = shlex.split(found[1]) if found else ("", "")
    return when, what


@pytest.mark.parametrize(
    ("text", "when", "what"),
    [
        ("Remind me tomorrow at nine to call the dentist.", "once tomorrow 9:00", "call the dentist"),
        ("please remind me in 20 minutes about the oven", "once in 20 minutes", "the oven"),
        ("Remind me to water the plants every Monday at 6pm", "every monday 18:00", "water the plants"),
        ("Remind me at 17:30 that the shop closes", "once 17:30", "the shop closes"),
        ('Remind me on Friday to send the "report"', "once friday 9:00", 'send the "report"'),
        ("remind me tonight at 9 to lock the door", "once today 21:00", "lock the door"),
        ("Remind me at noon to eat", "once 12:00", "eat"),
        ("Remind me in 90 seconds to turn the egg", "once in 90 seconds", "turn the egg"),
        ("Remind me to buy milk!", "once tomorrow 9:00", "buy milk"),
        ("Erinnere mich morgen um neun daran, den Zahnarzt anzurufen.", "once tomorrow 9:00", "den Zahnarzt anzurufen"),
        ("Bitte erinnere mich jeden Montag um 8 Uhr an den Müll", "every monday 8:00", "den Müll"),
        ("Erinnere mich heute Abend um 8 an die Tabletten", "once today 20:00", "die Tabletten"),
        ("Rappelle-moi dans une demi-heure de sortir le gâteau", "once in 30 minutes", "sortir le gâteau"),
        ("Recuérdame mañana a las nueve llamar al dentista", "once tomorrow 9:00", "llamar al dentista"),
    ],
)
def test_what_is_offered(text: str, when: str, what: str) -> None:
    """The time as a schedule has it, and the matter in the person's own words."""
    assert offered(text) == (when, what)
    assert schedule_rules.next_after(schedule_rules.parse(when, "Europe/Berlin", NOW), NOW) is not None


@pytest.mark.parametrize(
    "text",
    [
        "Remind me on 3 December at 9 to pay", "Remind me tomorrow at quarter to nine to call",
        "Erinnere mich morgen um halb neun an den Zahnarzt", "Rappelle-moi demain à neuf heures et demie d'appeler",
        "Recuérdame mañana a las nueve y media llamar", "Remind me to call at 25", "Remind me to call at 9:75",
    ],
)  # fmt: skip
def test_a_time_that_is_not_read_is_asked_for(text: str) -> None:
    """No other time is offered as if it were meant."""
    assert re.search("Say when|Sag, wann|Dites quand|Diga cuándo", offer(text))


@pytest.mark.parametrize(
    "text",
    [
        "What does remind me mean?", "He reminded me at nine.", "Remind me what the plan was.",
        "Remind me how tides work",
        "Remind me who called on Friday", "Erinnere mich an den Termin", "Erinnere mich, wann der Zahnarzt war",
        "Rappelle-moi comment marche la marée", "Recuérdame qué pasó el viernes", "This reminds me of Holm.", "",
    ],
)  # fmt: skip
def test_what_is_no_order(text: str) -> None:
    """Somebody asks to be told something now, or only says the word."""
    assert offer(text) == ""


@given(st.text(max_size=80))
def test_any_words_stand_in_the_command(what: str) -> None:
    """Whatever is to be said of it, a shell reads the command as two arguments."""
    said = " ".join(f"remind me tomorrow at 10 to {what}".split()).rstrip(".!")
    found = re.search(r"`batos schedule add (.+) --remind`", offer(said), re.DOTALL)
    if found is not None:
        assert len(shlex.split(found[1])) == 2


async def test_nothing_is_asked_and_nothing_is_planned(tmp_path: Path) -> None:
    """The answer is made by rule; a person runs the command."""
    bridge = ScriptedBridge()
    async with scripted_uvm(tmp_path, bridge) as uvm:
        told = await uvm.missions.ask({"text": "Remind me tomorrow at nine to call the dentist."})
        assert '"once tomorrow 9:00" "call the dentist" --remind' in str(told["answer"])
        assert told["provenance"]["combined"]["ruled"] == REMINDS
        assert bridge.history == []
        with uvm.image.snapshot() as root:
            assert not root["schedules"]
