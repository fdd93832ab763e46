"""Given files of chats: exports of Open WebUI, ChatGPT and Claude, and lists of messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from reading_case_side import GivenFile, make_archive
from reading_texts_side import PIXELS

#: A moment in May 2024, in seconds: 2024-05-14T06:13:20Z.
START: Final = 1_715_667_200
DAY_SAID: Final = "2024-05-14"


def files() -> Iterator[GivenFile]:
    """Yield them."""
    yield from open_webui()
    yield from chatgpt()
    yield from lists()
    yield from other_lists()


def write_json(data: Any) -> bytes:
    """Return JSON as programs write it."""
    return json.dumps(data, ensure_ascii=False, indent=1).encode()


def _webui(title: str, messages: Sequence[Mapping[str, Any]], current: str) -> dict[str, Any]:
    known = {each["id"]: dict(each) for each in messages}
    for each in known.values():
        each["childrenIds"] = [other["id"] for other in messages if other.get("parentId") == each["id"]]
    path = []
    at: str | None = current
    while at is not None:
        path.append(known[at])
        at = known[at]["parentId"]
    chat = {
        "id": "",
        "title": title,
        "models": ["llama3.2:3b"],
        "params": {},
        "history": {"messages": known, "currentId": current},
        "messages": path[::-1],
        "tags": [],
        "timestamp": START * 1000,
        "files": [],
    }
    return {
        "id": f"c-{title}",
        "user_id": "u1",
        "title": title,
        "chat": chat,
        "updated_at": START + 90,
        "created_at": START,
        "share_id": None,
        "archived": False,
        "pinned": False,
        "meta": {},
        "folder_id": None,
    }


def _message(name: str, parent: str | None, role: str, content: str) -> dict[str, Any]:
    return {
        "id": name,
        "parentId": parent,
        "role": role,
        "content": content,
        "timestamp": START + len(name),
        **({"model": "llama3.2:3b", "done": True} if role == "assistant" else {"models": ["llama3.2:3b"]}),
    }


def open_webui() -> Iterator[GivenFile]:
    """Yield exports of Open WebUI."""
    messages = [
        _message("a", None, "user", "How long does larch last in the sea?"),
        _message("b", "a", "assistant", "Larch lasts three years, at a guess."),
        _message("c", "a", "assistant", "Larch piles last about 22 years."),
        _message("d", "c", "user", "And oak, for my pier at Hvide?"),
    ]
    yield GivenFile(
        "chats-open-webui.json",
        "chats",
        write_json([_webui("Larch piles", messages, "d")]),
        (
            "How long does larch last in the sea?",
            "Larch piles last about 22 years.",
            "And oak, for my pier at Hvide?",
            DAY_SAID,
        ),
        (),
        ("three years, at a guess", "childrenIds", "parentId"),
    )
    thinking = (
        '<details type="reasoning" done="true" duration="3">\n<summary>Thought for 3 seconds</summary>\n&gt; Perhaps'
        " 999 eels.\n</details>\nThe weir at Aven holds 58 eels."
    )
    data = _webui(
        "Eels", [_message("e", None, "user", "Count the eels at Aven."), _message("f", "e", "assistant", thinking)], "f"
    )
    yield GivenFile(
        "chats-open-webui-thoughts.json",
        "chats",
        write_json([data]),
        ("Count the eels at Aven.", "The weir at Aven holds 58 eels."),
        (),
        ("Perhaps 999 eels",),
    )
    picture = _message("g", None, "user", "What bird is this, seen at Nigg?") | {
        "files": [{"type": "image", "url": f"data:image/png;base64,{PIXELS}"}]
    }
    yield GivenFile(
        "chats-open-webui-picture.json",
        "chats",
        write_json(
            [_webui("Bird", [picture, _message("h", "g", "assistant", "It is a turnstone in winter dress.")], "h")]
        ),
        ("What bird is this, seen at Nigg?", "It is a turnstone in winter dress."),
        (),
        (PIXELS[:40],),
    )


def _node(
    name: str, parent: str | None, role: str, parts: Sequence[Any], kind: str = "text", **more: Any
) -> dict[str, Any]:
    content = {"content_type": kind, "parts": list(parts)}
    message = {
        "id": name,
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": START + 0.5,
        "update_time": None,
        "content": content,
        "status": "finished_successfully",
        "end_turn": True,
        "weight": 1.0,
        "metadata": {},
        "recipient": "all",
        **more,
    }
    return {"id": name, "message": message, "parent": parent, "children": []}


def _gpt(title: str, nodes: Sequence[dict[str, Any]], current: str) -> dict[str, Any]:
    mapping = {
        "root": {"id": "root", "message": None, "parent": None, "children": []},
        **{each["id"]: each for each in nodes},
    }
    for each in nodes:
        mapping[each["parent"]]["children"].append(each["id"])
    return {
        "title": title,
        "create_time": START + 0.25,
        "update_time": START + 60.5,
        "mapping": mapping,
        "current_node": current,
        "conversation_id": f"g-{title}",
        "is_archived": False,
        "default_model_slug": "gpt-4o",
    }


def chatgpt() -> Iterator[GivenFile]:
    """Yield exports of ChatGPT."""
    system = _node("s", "root", "system", [""], metadata={"is_visually_hidden_from_conversation": True})
    first = [
        system,
        _node("u", "s", "user", ["Wann wird die Orgel in Lahr gestimmt?"]),
        _node("x", "u", "assistant", ["Die Orgel wird nie gestimmt."]),
        _node("y", "u", "assistant", ["Die Orgel in Lahr wird am 2. Juli gestimmt."]),
        _node("z", "y", "user", ["Danke, ich komme mit Frau Sigrist."]),
    ]
    yield GivenFile(
        "chats-chatgpt-branch.json",
        "chats",
        write_json([_gpt("Orgel", first, "z")]),
        (
            "Wann wird die Orgel in Lahr gestimmt?",
            "Die Orgel in Lahr wird am 2. Juli gestimmt.",
            "Danke, ich komme mit Frau Sigrist.",
            DAY_SAID,
        ),
        (),
        ("nie gestimmt", "finished_successfully"),
    )
    picture = {
        "content_type": "image_asset_pointer",
        "asset_pointer": "file-service://file-Qx77",
        "width": 640,
        "height": 480,
    }
    second = [
        _node("p", "root", "user", [picture, "Read this label of the cider from Hvar, please."], "multimodal_text"),
        _node("q", "p", "assistant", ["The label says 6.2 percent."]),
    ]
    tool = _node("t", "q", "tool", ["raw tool dump of bytes"], metadata={"is_visually_hidden_from_conversation": True})
    archive = make_archive(
        {
            "conversations.json": write_json([_gpt("Cider", [*second, tool], "t")]),
            "chat.html": "<html><body>the page of the export</body></html>",
            "user.json": "{}",
        }
    )
    yield GivenFile(
        "chats-chatgpt.zip",
        "chats",
        archive,
        ("Read this label of the cider from Hvar, please.", "The label says 6.2 percent."),
        (),
        ("file-Qx77", "is_visually_hidden"),
    )


def lists() -> Iterator[GivenFile]:
    """Yield lists of messages, and JSON that is no chat."""
    messages = [
        {"role": "system", "content": "You are terse."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Name the sluice keeper of Gouda."},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXELS}"}},
            ],
        },
        {"role": "assistant", "content": "Her name is Trijntje Kok."},
    ]
    yield GivenFile(
        "chats-messages.json",
        "chats",
        write_json(messages),
        ("Name the sluice keeper of Gouda.", "Her name is Trijntje Kok."),
        (),
        (PIXELS[:40],),
    )


def other_lists() -> Iterator[GivenFile]:
    """Yield the export of another program, and JSON that is no chat."""
    claude = [
        {
            "uuid": "k1",
            "name": "Salt pans",
            "created_at": "2024-08-02T07:00:00.000000Z",
            "chat_messages": [
                {
                    "uuid": "k2",
                    "text": "How deep is a salt pan at Guérande?",
                    "sender": "human",
                    "created_at": "2024-08-02T07:00:01.000000Z",
                    "content": [{"type": "text", "text": "How deep is a salt pan at Guérande?"}],
                },
                {
                    "uuid": "k3",
                    "text": "About 11 centimetres, at dusk.",
                    "sender": "assistant",
                    "created_at": "2024-08-02T07:00:05.000000Z",
                    "content": [{"type": "text", "text": "About 11 centimetres, at dusk."}],
                },
            ],
        }
    ]
    yield GivenFile(
        "chats-claude.json",
        "chats",
        write_json(claude),
        ("How deep is a salt pan at Guérande?", "About 11 centimetres, at dusk.", "2024-08-02"),
    )
    yield GivenFile(
        "chats-no-chat.json",
        "chats",
        write_json({"station": "Kirkenes", "readings": [{"hour": 6, "ice_cm": 83}], "warden": "Ånund Lie"}),
        ("Kirkenes", "83", "Ånund Lie"),
        (),
        ("\\u00c5nund",),
    )
