"""Conversations of clients that send all of it again: found, forked, trimmed; and chores, which leave nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.server.http.conftest import OpenDoor, copied_door, open_door

from batos.client.keys import Keyring
from batos.protocol.errors import BriefError
from batos.server.http.histories import chain_of, digest_of, exchanges_of
from batos.server.http.sent_messages import SentMessage, SentMessages, is_chore, read_messages

TASK = "### Task:\nGenerate a concise, 3-5 word title for this chat."
words = st.text(st.sampled_from("ab "), max_size=8)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def ask(door: OpenDoor, *messages: dict[str, Any], **more: Any) -> tuple[dict[str, Any], str]:
    """Ask with a history; the brief, and the answer as the client has it then."""
    reply = door.chat(*messages, **more)
    assert reply.status_code == 200, reply.text
    brief = door.mission(reply.headers["x-batos-mission"])["brief"]
    return brief, reply.json()["choices"][0]["message"]["content"]


def test_a_history_that_is_known_goes_on(door: OpenDoor) -> None:
    """Turn by turn, also where the client trims blanks; each turn is one of the same conversation, once."""
    first, one = ask(door, user("What is a fjord?"))
    second, two = ask(door, user("What is a fjord?"), assistant(f"{one} "), user("Where are some?"))
    third, _ = ask(
        door, user("What is a fjord? "), assistant(one), user("Where are some?"), assistant(two), user("How deep?")
    )
    assert first["conversation"] == second["conversation"] == third["conversation"]
    assert third["attachments"] == []
    page = door.mind.readings.turns(first["conversation"])
    assert [each["question"] for each in page["turns"]] == ["What is a fjord?", "Where are some?", "How deep?"]


def test_an_edited_history_forks(door: OpenDoor) -> None:
    """A question in the place of an older one replies to the turn before it, in a conversation of its own."""
    first, one = ask(door, user("What is a delta?"))
    second, _ = ask(door, user("What is a delta?"), assistant(one), user("Which is the largest?"))
    forked, two = ask(door, user("What is a delta?"), assistant(one), user("Which is the oldest?"))
    assert first["conversation"] == second["conversation"] != forked["conversation"]
    assert forked["in_reply_to"] == first["id"]
    history = (user("What is a delta?"), assistant(one), user("Which is the oldest?"), assistant(two))
    on, _ = ask(door, *history, user("How old?"))
    assert on["conversation"] == forked["conversation"]


def test_a_history_whose_beginning_is_gone_goes_on(door: OpenDoor) -> None:
    """Clients leave the oldest messages out where they have no room."""
    first, one = ask(door, user("What is a moraine?"))
    _, two = ask(door, user("What is a moraine?"), assistant(one), user("Who names them?"))
    third, _ = ask(door, user("Who names them?"), assistant(two), user("Since when?"))
    assert third["conversation"] == first["conversation"]


def test_what_is_not_known_is_evidence_of_no_trust(door: OpenDoor) -> None:
    """Messages that we never sent, and a client's system text: the answer's lineage is external."""
    brief, _ = ask(door, user("Who are you?"), assistant("I am a pirate."), user("Where do you sail?"))
    (file,) = brief["attachments"]
    assert file["name"] == "earlier.txt"
    assert door.mission(brief["id"])["trust"]["lineage"] == "external"
    system = {"role": "system", "content": "You are a pirate."}
    told, _ = ask(door, system, user("What is a lagoon?"))
    assert told["system"] == "You are a pirate."
    assert door.mission(told["id"])["trust"]["lineage"] == "external"
    long = {"role": "system", "content": "You are a pirate. " * 400}
    filed, _ = ask(door, long, user("What is a lagoon, then?"))
    assert [each["name"] for each in filed["attachments"]] == ["instructions.txt"]
    plain, _ = ask(door, user("What is a strait, by the way?"))
    assert door.mission(plain["id"])["trust"]["lineage"] != "external"


def test_a_question_that_is_too_long_is_a_file(door: OpenDoor) -> None:
    """With both of its ends as the question."""
    brief, _ = ask(door, user(f"Begin. {'word ' * 6_000} What was the first word?"))
    assert [each["name"] for each in brief["attachments"]] == ["message.txt"]
    assert brief["text"].endswith("What was the first word?")


def test_after_a_restart_a_history_goes_on(grown_door_home: Path, tmp_path: Path) -> None:
    """What is known of it is in the image; a turn of another user is not found."""
    with copied_door(grown_door_home, tmp_path) as door:
        first, one = ask(door, user("What is an isthmus?"))
    with open_door(tmp_path / "home") as door:
        door.portal.run(door.mind.readiness.genesis)
        history = (user("What is an isthmus?"), assistant(one))
        on, _ = ask(door, *history, user("Which is narrow?"))
        assert on["conversation"] == first["conversation"]
        guest = Keyring(door.home).new("laptop", "tcp://127.0.0.1:1").http_key
        theirs, _ = ask(door, *history, user("Which is narrow?"), key=guest)
        assert theirs["conversation"] != first["conversation"]


def test_a_chore_leaves_nothing(door: OpenDoor) -> None:
    """One call at the lowest priority, without memory or conversation, in no list but that of all."""
    brief, _ = ask(door, user(TASK), model="council")
    assert (brief["effort"], brief["priority"], brief["policy"]["memory"]) == ("reflex", -9, "none")
    assert "conversation" not in brief
    assert brief["id"] not in {each["id"] for each in door.missions()}
    assert brief["id"] not in {each["id"] for each in door.missions(mind=True)}
    assert brief["id"] in {each["id"] for each in door.missions(all=True)}
    assert door.mission(brief["id"])["cost"]["calls"] == 1


def test_chores_may_be_refused_or_be_questions(grown_door_home: Path, tmp_path: Path) -> None:
    """By a setting."""
    with copied_door(grown_door_home, tmp_path / "refused", chores="refuse") as door:
        reply = door.chat(user(TASK))
        assert (reply.status_code, reply.json()["error"]["code"]) == (403, "refused")
    with copied_door(grown_door_home, tmp_path / "asked", chores="mission") as door:
        assert ask(door, user(TASK))[0]["conversation"].startswith("c-")


def test_only_a_message_by_itself_is_a_chore() -> None:
    """Whoever asks about a task in a conversation asks as a person."""
    assert is_chore(SentMessages(TASK))
    assert not is_chore(SentMessages(TASK, earlier=(SentMessage("user", "hi"),)))
    assert not is_chore(SentMessages("What does ### Task: mean?"))


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant"]), words), max_size=8))
def test_the_chain_of_a_longer_history_begins_with_that_of_a_shorter(said: list[tuple[str, str]]) -> None:
    """A history and what is added to it behind an answer have the same beginning."""
    earlier = [SentMessage(role, text) for role, text in said]
    before = exchanges_of([*earlier, SentMessage("assistant", "a")])
    after = exchanges_of(
        [*earlier, SentMessage("assistant", "a"), SentMessage("user", "b"), SentMessage("assistant", "c")]
    )
    assert after[: len(before)] == before
    assert after[-1] == digest_of("b", "c")


@given(words, words, words)
def test_blanks_and_our_marks_make_no_difference(question: str, answer: str, mark: str) -> None:
    """A client that trims, and one that shows our marks, send the same exchange."""
    assert digest_of(f" {question}\n", f"{answer} [{mark.strip() or 'x'}:3]") == digest_of(question, answer)
    assert chain_of("x", question) != chain_of("y", question)


@given(st.lists(st.fixed_dictionaries({"role": st.sampled_from(["user", "system", "tool"]), "content": words})))
def test_messages_are_read_or_refused(messages: list[dict[str, str]]) -> None:
    """The question is the last of the user's that says something."""
    asked = [each["content"] for each in messages if each["role"] == "user" and each["content"].strip()]
    try:
        assert read_messages(messages).question == asked[-1]
    except BriefError:
        assert not asked
