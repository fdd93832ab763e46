"""The verb `remember`: files, folders, stdin and texts become documents of the image."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from batos.brief import DEFAULT_SCOPE, as_file
from batos.cli.doors.door import Door, Opened, open_door
from batos.cli.render.memory_texts import remembered_text
from batos.cli.shared_options import file_names, given_name, given_names
from batos.cli.verb_options import VerbCall, run, with_server
from batos.cli.verbs import standard_input
from batos.cli.verbs.memory_files import FileReader, FoundFile, exists
from batos.errors import UsageError
from batos.terminal.console import count_text

#: Files, and bytes of them, that are remembered in one commit.
_BATCH_FILES, _BATCH_BYTES = 32, 4 * 2**20
#: Batches of vectors between two lines of progress.
_TOLD_BATCHES = 4


@click.command()
@click.argument("what", metavar="FILE|FOLDER|-|TEXT", nargs=-1, required=True, shell_complete=file_names)
@click.option("--scope", type=given_name, help="The scope that it belongs to; the default is `default`.")
@click.option("--source", type=given_name, help="Where it came from; the default is the file's path.")
@click.option("--title", type=given_name, help="Its title; the default is its first heading, or its name.")
@click.option("--key", type=given_name, help="TEXT is a fact: the value of this key, instead of its older one.")
@click.option("--supersedes", metavar="KEY|ID", type=given_name, help="Another fact that this one takes the place of.")
@click.option("--depends-on", metavar="KEY,..", type=given_names, help="Facts without which this one does not hold.")
@with_server
def remember(called: VerbCall, what: tuple[str, ...], **options: Any) -> int:
    """Remember text files, the files of a folder, stdin (`-`), or a TEXT of several words.

    Later questions are answered from it by themselves. A content that is known is not stored again. A file that changed
    takes the place of its older content. A folder's files that are no text are skipped and listed. After an
    interruption run the same command again: it continues.

    With --key the TEXT is a fact. The older value of its key, or another fact, is superseded by it, stays as history,
    and is only recalled with that mark. Facts that depend on it are marked too.
    """
    given = {name: value for name, value in options.items() if value}
    scope = {name: given.pop(name) for name in ("scope",) if name in given}
    if given and len(what) > 1:
        named = " and ".join(f"--{name.replace('_', '-')}" for name in given)
        raise UsageError(f"{named} are for one thing", field=next(iter(given)), remedy="Remember one at a time.")
    if "key" in given:
        told = run(_remember_fact(called, open_door(called), what[0], {**scope, **given}))
    elif given.keys() & {"supersedes", "depends_on"}:
        raise UsageError("only a fact supersedes or depends on others", field="key", remedy="Name its key: --key K.")
    else:
        told = run(_remember(called, open_door(called), what, scope, given))
    called.answer(told, remembered_text)
    return 0


async def _remember_fact(called: VerbCall, opened: Opened, value: str, about: Mapping[str, Any]) -> dict[str, Any]:
    """Remember a fact, and tell what gave way to it; `-` reads its value."""
    if value == "-":
        limit = called.settings.attachment_bytes
        data = standard_input.read_stdin(limit, "what", called.note)
        value = data.decode("utf-8", "replace").strip()
    async with opened as way:
        told = await way.call("remember", {"text": value, "owner": called.settings.asker, **about})
        vectors = await _embed(called, way)
    missed = [about["supersedes"]] if "supersedes" in about and not told["remembered"][0]["superseded"] else []
    return {**told, "skipped": [], "vectors": vectors, "not_found": missed}


async def _remember(
    called: VerbCall, opened: Opened, what: Sequence[str], scope: Mapping[str, str], named: Mapping[str, str]
) -> dict[str, Any]:
    """Remember all that was named, batch by batch; return {remembered, skipped}."""
    about = {**scope, "owner": called.settings.asker}
    reader = FileReader(called.settings.attachment_bytes)
    lines: list[dict[str, Any]] = []
    async with opened as way:
        for batch in _batches(_read_each(called, reader, what)):
            if isinstance(batch, str):
                told = await way.call("remember", {"text": batch, **about, **named})
                lines += told["remembered"]
            else:
                lines += await _remember_files(way, batch, about, named)
                if len(lines) > 1:
                    called.note(f"{count_text(len(lines), 'document')} so far, the last: {lines[-1]['title']}")
        vectors = await _embed(called, way) if any(each["state"] != "known" for each in lines) else None
    skipped = [{"source": path, "reason": reason} for path, reason in reader.skipped.items()]
    return {"remembered": lines, "skipped": skipped, **({} if vectors is None else {"vectors": vectors})}


async def _embed(called: VerbCall, way: Door) -> dict[str, Any]:
    """Wait until the new parts have vectors, or until it is known why not; tell how far it is."""
    batches: list[int] = []

    def on_event(_event: str, told: Mapping[str, Any]) -> None:
        batches.append(told["missing"])
        if len(batches) % _TOLD_BATCHES == 0:
            called.note(f"{count_text(told['missing'], 'part')} without a vector left")

    return await way.call("embed_memories", on_event=on_event)


def _read_each(called: VerbCall, reader: FileReader, what: Sequence[str]) -> Iterator[FoundFile | str]:
    """Yield each file that was named, and each text as it is."""
    for each in what:
        if each == "-":
            limit = called.settings.attachment_bytes
            data = standard_input.read_stdin(limit + 1, "what", called.note)
            yield FoundFile(as_file(standard_input.NAME, data, limit), "")
        elif exists(each):
            yield from reader.read(Path(each))
        elif len(each.split()) > 1:
            yield each
        else:
            raise UsageError(
                f"there is no file {each!r}",
                field="what",
                remedy="Check the path. A text that is to be remembered has several words, in quotes.",
            )


def _batches(found: Iterator[FoundFile | str]) -> Iterator[list[FoundFile] | str]:
    """Yield texts as they are, and files in batches that are remembered together."""
    batch: list[FoundFile] = []
    size = 0
    for each in found:
        if isinstance(each, str):
            yield each
            continue
        if batch and (len(batch) == _BATCH_FILES or size + len(each.file.data) > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(each)
        size += len(each.file.data)
    if batch:
        yield batch


async def _remember_files(
    way: Door, batch: Sequence[FoundFile], about: Mapping[str, Any], own: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Remember files; only the bytes of those that are not known are handed over."""
    digests = list({each.file.ref.sha256 for each in batch})
    asked = {"sha256": digests, "limit": 10_000, "scope": about.get("scope", DEFAULT_SCOPE), "user": about["owner"]}
    known = await way.call("memories", asked)
    there = {each["sha256"]: each for each in known["memories"]}
    lines = [
        {**{name: each[name] for name in ("document", "title", "source", "chunks")}, "state": "known"}
        for each in there.values()
    ]
    fresh = [each for each in batch if each.file.ref.sha256 not in there]
    if not fresh:
        return lines
    refs = await way.attach([each.file for each in fresh])
    files = [{**ref, "source": each.source, **own} for ref, each in zip(refs, fresh, strict=True)]
    told = await way.call("remember", {"files": files, **about})
    return [*lines, *told["remembered"]]
