"""Recorded exchanges sent to an emulator, and what its replies differ in."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from tests.emulator.clients import Client

_HEADERS = ("content-type", "allow", "vary")
_DIGEST = re.compile(r"(sha256[:-])[0-9a-f]{64}|\b[0-9a-f]{64}\b")
_COUNT = re.compile(r"request \(\d+ tokens\)|\"n_prompt_tokens\":\d+")  # by a vocabulary that the emulator has not
_FREE = frozenset(  # values that follow from words, time, the machine or re-written weights, not from the request
    "created_at modified_at expires_at size digest total_duration load_duration prompt_eval_duration eval_duration "
    "prompt_eval_count eval_count context content response embeddings embedding size_vram logprob token bytes tensors "
    "model_info created id".split()
)


@dataclass(slots=True)
class Replay:
    """The recordings sent to an emulator one after the other; `differences` by number."""

    client: Client
    models: Path
    differences: dict[int, list[str]] = field(default_factory=dict)

    async def send(self, exchange: dict[str, Any]) -> None:
        """Send one recorded request and note how the reply differs from the recorded one."""
        request = exchange["request"]
        content: bytes | None = None
        if "json" in request:
            content = json.dumps(request["json"]).encode()
        elif "blob" in request:
            content = await asyncio.to_thread((self.models / request["blob"]).read_bytes)
        elif "text" in request:
            content = request["text"].encode()
        if content is not None:
            local = str(self.client.emulator.store.blob_path("")).removesuffix("/blobs/")
            content = content.replace(b"<models>", local.encode())
        reply = await self.client.http.request(
            request["method"], request["path"], content=content, headers=request.get("headers")
        )
        found = self._compare(exchange, reply)
        if found:
            self.differences[exchange["n"]] = found

    def _compare(self, exchange: dict[str, Any], reply: httpx.Response) -> list[str]:
        recorded = exchange["response"]
        if reply.status_code != recorded["status"]:
            return [f"status {reply.status_code} instead of {recorded['status']}: {reply.text[:200]}"]
        wanted = recorded["headers"]
        found = [
            f"{name}: {reply.headers.get(name)} instead of {wanted.get(name)}"
            for name in _HEADERS
            if reply.headers.get(name) != wanted.get(name)
        ]
        found += [
            f"{name} is {'there' if name in reply.headers else 'absent'}"
            for name in ("transfer-encoding", "content-length")
            if (name in reply.headers) != (name in wanted)
        ]
        if "lines" in recorded:
            return found + self._compare_lines(exchange["request"]["path"], recorded["lines"], reply.text)
        return found + self._compare_text(recorded["text"], reply.text)

    def _compare_text(self, recorded: str, text: str) -> list[str]:
        try:
            wanted = json.loads(recorded)
        except ValueError:
            return [] if text == recorded else [f"{text!r} instead of {recorded!r}"]
        if text.endswith("\n") != recorded.endswith("\n"):
            return ["the newline at the end"]
        return self.unlike(json.loads(text), wanted, "")

    def _compare_lines(self, path: str, recorded: list[str], text: str) -> list[str]:
        lines = text.splitlines()
        if path in ("/api/chat", "/api/generate"):  # words differ, so their number does
            recorded, lines = [recorded[0], recorded[-1]], [lines[0], lines[-1]]
        elif path == "/api/pull":
            recorded, lines = _without_progress(recorded), _without_progress(lines)
        if len(lines) != len(recorded):
            return [f"{len(lines)} lines instead of {len(recorded)}: {lines}"]
        found = []
        for mine, theirs in zip(lines, recorded, strict=True):
            found += self.unlike(json.loads(mine), json.loads(theirs), "")
        return found

    def unlike(self, mine: Any, theirs: Any, where: str) -> list[str]:
        """What two JSON values differ in, beyond what is free to."""
        if where.endswith("/models") and len(mine) == len(theirs):  # sorted by whole seconds, in any order within one
            mine, theirs = (sorted(rows, key=lambda row: str(row["name"])) for rows in (mine, theirs))
        if isinstance(theirs, dict) and isinstance(mine, dict):
            if list(mine) != list(theirs) and where != "/model_info":
                return [f"{where}: fields {list(mine)} instead of {list(theirs)}"]
            found = []
            for name in theirs:
                if name not in _FREE:
                    found += self.unlike(mine[name], theirs[name], f"{where}/{name}")
                elif type(mine[name]) is not type(theirs[name]):
                    found.append(f"{where}/{name}: {mine[name]!r} instead of {theirs[name]!r}")
            return found
        if isinstance(theirs, list) and isinstance(mine, list) and len(mine) == len(theirs):
            return [text for at, one in enumerate(theirs) for text in self.unlike(mine[at], one, f"{where}/{at}")]
        if isinstance(theirs, str) and isinstance(mine, str):
            mine, theirs = self._plain(mine), self._plain(theirs)
        return [] if mine == theirs else [f"{where}: {mine!r} instead of {theirs!r}"]

    def _plain(self, text: str) -> str:
        local = str(self.client.emulator.store.blob_path("")).removesuffix("/blobs/")
        text = _DIGEST.sub(lambda found: (found[1] or "") + "DIGEST", text.replace(local, "<models>"))
        text = _COUNT.sub("COUNT", text)
        text = text.replace("creating new layer", "using existing layer").replace("on <dns>", "on 127.0.0.53:53")
        return "\n".join(sorted(text.split("\n"))) if "PARAMETER" in text else text  # they come in any order


def _without_progress(lines: list[str]) -> list[str]:
    return [line for line in lines if '"total"' not in line]
