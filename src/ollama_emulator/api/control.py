"""Handle the emulator's own endpoints: faults to inject, the log of requests, the state, and the registry."""

from __future__ import annotations

import json

from ollama_emulator.daemon import EmulatedDaemon, reply
from ollama_emulator.emulator_errors import ApiError, OptionError
from ollama_emulator.http.incoming import Answer, HttpRequest


async def fault(daemon: EmulatedDaemon, request: HttpRequest) -> Answer:
    """Handle /_emulator/fault: POST adds a fault or a list, DELETE removes all, GET returns them with their counts."""
    faults = daemon.faults
    if request.method == "GET":
        return reply({"faults": [order.as_dict() for order in faults.orders]})
    if request.method == "DELETE":
        faults.clear()
        return reply({"faults": 0})
    try:
        faults.add(json.loads(request.body))
    except OptionError as wrong:
        raise ApiError(400, f"{wrong.message}. {wrong.remedy}") from None
    except (ValueError, RecursionError) as wrong:
        raise ApiError(400, f"a fault is a JSON object: {wrong}") from None
    return reply({"faults": len(faults.orders)})


async def log(daemon: EmulatedDaemon, request: HttpRequest) -> Answer:
    """Handle GET /_emulator/log: return the requests so far, the oldest first."""
    return reply({"requests": list(daemon.requests)})


async def state(daemon: EmulatedDaemon, request: HttpRequest) -> Answer:
    """Handle GET /_emulator/state: return runners, queue, number of loads, bytes pulled by layer, and settings."""
    settings = daemon.settings
    return reply(
        {
            **daemon.scheduler.state(),
            "voice": daemon.notice,
            "vram": daemon.scheduler.vram,
            "pulled": dict(daemon.registry.pulled),
            "settings": {
                "max_queue": settings.max_queue,
                "parallel": settings.parallel,
                "max_loaded": settings.max_loaded,
                "window": settings.window or daemon.scheduler.default_window,
                "keep_alive_s": settings.keep_alive_ns / 10**9,
                "load_timeout_s": settings.load_timeout_ns / 10**9,
                "cache_type": settings.cache_type or "f16",
            },
            "warnings": list(settings.warnings),
        }
    )


async def registry(daemon: EmulatedDaemon, request: HttpRequest) -> Answer:
    """Handle /_emulator/registry: POST changes the registry by a document, GET returns it with the bytes pulled."""
    if request.method == "POST":
        try:
            daemon.registry.lay(json.loads(request.body))
        except OptionError as wrong:
            raise ApiError(400, wrong.message) from None
        except (ValueError, RecursionError) as wrong:
            raise ApiError(400, f"a registry is a JSON object: {wrong}") from None
    return reply(daemon.registry.as_dict())
