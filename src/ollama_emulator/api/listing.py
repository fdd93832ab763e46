"""Handle the routes about models and blobs: version, tags, ps, show, pull, create, copy, delete, blobs."""

from __future__ import annotations

from ollama_emulator.api import create as making
from ollama_emulator.api import pull as pulls
from ollama_emulator.daemon import EmulatedDaemon, Lines, reply, status_line, stream, whole
from ollama_emulator.emulator_errors import ApiError
from ollama_emulator.go.json import quote
from ollama_emulator.http.incoming import Answer, HttpRequest
from ollama_emulator.library import model_tags, models
from ollama_emulator.library.model_tags import Name
from ollama_emulator.library.store import digest_in
from ollama_emulator.replies import HttpReply


async def version(daemon: EmulatedDaemon, request: HttpRequest) -> Answer:
    """Handle GET /api/version."""
    daemon.note(request)
    return reply({"version": daemon.options.version})


async def tags(daemon: EmulatedDaemon, request: HttpRequest) -> Answer:
    """Handle GET /api/tags."""
    daemon.note(request)
    await daemon.strike(request)
    return reply({"models": [models.tag_row(model) for model in daemon.all()]})


async def ps(daemon: EmulatedDaemon, request: HttpRequest) -> Answer:
    """Handle GET /api/ps."""
    daemon.note(request)
    await daemon.strike(request)
    return reply({"models": daemon.scheduler.rows()})


async def show(daemon: EmulatedDaemon, request: HttpRequest) -> HttpReply:
    """Handle POST /api/show."""
    fields, _ = await daemon.open(request, "ShowRequest")
    asked = str(fields.get("model") or fields.get("name") or "")
    try:
        name = daemon.store.with_stored_spelling(model_tags.select(asked, "details are"))
    except ApiError as fault:
        raise ApiError(fault.status, model_tags.REQUIRED if not asked else fault.text) from None
    model = daemon.find(name)
    if model is None:
        raise ApiError(404, f"model '{name.display}' not found")
    if model.remote:
        raise ApiError(403, model_tags.NO_CLOUD.format("details are"))
    return reply(models.show(model, daemon.store, fields.given))


async def pull(daemon: EmulatedDaemon, request: HttpRequest) -> Answer:
    """Handle POST /api/pull."""
    fields, fault = await daemon.open(request, "PullRequest")
    try:
        name = model_tags.stored_name(str(fields.get("model") or fields.get("name") or ""))
    except ApiError as wrong:
        raise ApiError(400, model_tags.INVALID if wrong.text == model_tags.REQUIRED else wrong.text) from None
    lines = _pull_lines(daemon, daemon.store.with_stored_spelling(name), insecure=bool(fields.get("insecure")))
    return await (stream(lines, fault, daemon.clock) if fields.get("stream", True) else whole(lines))


async def _pull_lines(daemon: EmulatedDaemon, name: Name, *, insecure: bool) -> Lines:
    """Pull a model; yield its progress lines up to `success`."""
    yield []
    async for some in pulls.pulling(daemon, name, insecure=insecure):
        yield some
    yield [status_line("success")]


async def create(daemon: EmulatedDaemon, request: HttpRequest) -> Answer:
    """Handle POST /api/create."""
    fields, fault = await daemon.open(request, "CreateRequest")
    lines = making.creating(making.check(daemon, fields))
    return await (stream(lines, fault, daemon.clock) if fields.get("stream", True) else whole(lines))


async def delete(daemon: EmulatedDaemon, request: HttpRequest) -> Answer:
    """Handle DELETE /api/delete. A model that is loaded stays loaded."""
    fields, _ = await daemon.open(request, "DeleteRequest")
    asked = str(fields.get("model") or fields.get("name") or "")
    try:
        name = model_tags.stored_name(asked)
    except ApiError as fault:
        raise ApiError(
            400, f"name {quote(asked)} is invalid" if fault.text == model_tags.INVALID else fault.text
        ) from None
    if daemon.store.find(name) is None:
        raise ApiError(404, f"model '{asked}' not found")
    daemon.store.remove(name)
    return HttpReply(200, content_type="")


async def copy(daemon: EmulatedDaemon, request: HttpRequest) -> Answer:
    """Handle POST /api/copy."""
    fields, _ = await daemon.open(request, "CopyRequest")
    found = {}
    for side in ("source", "destination"):
        raw = str(fields.get(side, ""))
        name = model_tags.parse(raw)
        if name is None:
            raise ApiError(400, f"{side} {quote(raw)} is invalid")
        found[side] = name
    manifest = daemon.store.find(found["source"])
    if manifest is None:
        raise ApiError(404, f"model {quote(str(fields.get('source')))} not found")
    if found["source"].key != found["destination"].key:
        daemon.store.copy(manifest, found["destination"])
    return HttpReply(200, content_type="")


async def blob(daemon: EmulatedDaemon, request: HttpRequest) -> Answer:
    """Handle HEAD and POST /api/blobs/:digest."""
    daemon.note(request)
    await daemon.strike(request)
    claimed = request.path.rpartition("/")[2]
    digest = digest_in(claimed)
    if not digest:
        raise ApiError(400, "invalid digest format")
    if request.method == "HEAD":
        if digest not in daemon.store.blobs:
            raise ApiError(404, f"blob {quote(claimed)} not found")
        return HttpReply(200, content_type="")
    if request.upload is None:
        raise ApiError(400, "missing request body")
    # a digest written with a dash finds its blob, but an upload under it never matches
    wanted = digest if digest in daemon.store.blobs else claimed
    return HttpReply(await daemon.store.receive(wanted, request.upload), content_type="")
