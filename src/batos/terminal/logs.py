"""Structured logs: lines for people or machines on stderr, and all of them as JSON in a rotated file of the home."""

from __future__ import annotations

import errno
import json
import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, Final

import structlog

from batos.terminal.console import pour

_LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40}
_OURS: Final = "batos"
_FILE_BYTES, _FILES = 2_000_000, 5

_log = structlog.get_logger("batos")


@contextmanager
def configure(level: str, form: str, folder: Path) -> Iterator[None]:
    """Send log lines of `level` and above to stderr, in `form` (auto, console, json), and info to `folder`.

    Where there can be no such folder or file, a warning says so once and the lines go to stderr alone. At the end the
    file is closed, and the logs of this process go again where they went before.
    """
    as_json = form == "json" or (form == "auto" and not sys.stderr.isatty())
    file = _File(folder / "batos.log", maxBytes=_FILE_BYTES, backupCount=_FILES, encoding="utf-8", delay=True)
    file.setFormatter(_JsonLines())
    root, was_configured, before = logging.getLogger(), structlog.is_configured(), structlog.get_config()
    handlers, threshold = root.handlers, root.level
    try:
        # ZODB logs through the standard library: its warnings belong to the same file.
        root.handlers = [file]
        root.setLevel(logging.WARNING)
        structlog.configure(
            processors=[
                structlog.contextvars.merge_contextvars,
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                structlog.processors.format_exc_info,
                _Split(_LEVELS[level], file, as_json),
            ],
            wrapper_class=structlog.make_filtering_bound_logger(min(_LEVELS["info"], _LEVELS[level])),
            cache_logger_on_first_use=False,
        )
        yield
    finally:
        root.handlers = handlers
        root.setLevel(threshold)
        structlog.reset_defaults()
        if was_configured:
            structlog.configure(**before)
        with suppress(OSError):  # a full disk, of which its lines have warned
            file.close()


def drop_lines(folder: Path, is_kept: Callable[[str], bool]) -> int:
    """Take lines out of the files of a folder for good, and return how many went.

    Lines of this process wait meanwhile; a file stays the same one, so that whoever writes it goes on.
    """
    with ExitStack() as stack:
        for each in logging.getLogger().handlers:
            if isinstance(each, _File):
                stack.enter_context(_hold(each))
        return sum(drop_lines_of(path, is_kept) for path in sorted(folder.glob("batos.log*")))


def drop_lines_of(path: Path, is_kept: Callable[[str], bool]) -> int:
    """Take lines out of a file for good, and return how many went."""
    if not path.is_file():
        return 0
    with path.open("r+", encoding="utf-8", errors="surrogateescape", newline="") as file:
        lines = file.readlines()
        kept = [each for each in lines if is_kept(each)]
        if len(kept) < len(lines):
            file.seek(0)
            file.writelines(kept)
            file.truncate()
            file.flush()
            os.fsync(file.fileno())
    return len(lines) - len(kept)


@contextmanager
def _hold(handler: logging.Handler) -> Iterator[None]:
    handler.acquire()
    try:
        handler.flush()
        yield
    finally:
        handler.release()


def fault(error: Exception, *, loud: bool) -> None:
    """Keep the traceback of an error that nobody foresaw: in the file, and on stderr where that shows debug.

    Outside of `configured` there is no file: then it is on stderr if `loud`.
    """
    if structlog.is_configured():
        _log.error("internal error", exc_info=error, shown_at="debug")
    elif loud:
        traceback.print_exception(error)


class _File(RotatingFileHandler):
    """A file of lines in a folder that is made for it; what cannot be written there is lost, and nothing else is."""

    _warned = False
    stream: Any  # opened by logging with the first line

    def _open(self) -> TextIOWrapper:
        path = Path(self.baseFilename)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        if path.exists() and not path.is_file():
            raise OSError(errno.EINVAL, "the path is not a file")  # a pipe would be waited for
        return super()._open()

    def shouldRollover(self, record: logging.LogRecord) -> int:  # noqa: N802 - logging's name
        """Test if the line no longer fits. Logging's own looks at the path too, again for every line."""
        if self.stream is None:
            self.stream = self._open()
        size = os.fstat(self.stream.fileno()).st_size
        return size > 0 and size + len(self.format(record)) >= self.maxBytes

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Warn once: a log must never break what it tells of."""
        if not self._warned:
            self._warned = True
            _log.warning("no log file", file=self.baseFilename, reason=str(sys.exc_info()[1]))


class _JsonLines(logging.Formatter):
    """A JSON object a line: ours are JSON already, a library's record is made into one."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        if record.name == _OURS:
            return record.getMessage()
        level, moment = record.levelname.lower(), datetime.fromtimestamp(record.created, UTC)
        told = {"event": record.getMessage(), "logger": record.name, "level": level, "timestamp": moment.isoformat()}
        if record.exc_info:
            told["exception"] = self.formatException(record.exc_info)
        return json.dumps(told, ensure_ascii=False)


class _Split:
    """The last processor: writes every line to the file, and passes on what stderr is to show."""

    def __init__(self, threshold: int, file: RotatingFileHandler, as_json: bool) -> None:
        self._threshold = threshold
        self._file = file
        self._json = structlog.processors.JSONRenderer(default=str)
        self._shown = self._json if as_json else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())

    def __call__(self, logger: object, name: str, event: MutableMapping[str, Any]) -> str:
        shown_at = event.pop("shown_at", event["level"])
        line = str(self._json(logger, name, dict(event)))
        # Not `emit`: the commit thread logs too, and `handle` lets one in at a time.
        self._file.handle(logging.makeLogRecord({"name": _OURS, "msg": line}))
        if _LEVELS.get(shown_at, 20) >= self._threshold:
            with suppress(OSError):  # nobody reads it any more
                pour(sys.stderr, f"{self._shown(logger, name, event)!s}\n")
        raise structlog.DropEvent
