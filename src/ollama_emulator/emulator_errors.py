"""Every error that the emulator raises for its callers, in one tree.

EmulatorError
├── OptionError       an option, a fault or a registry entry is wrong: nothing was started or changed (field, remedy)
├── ApiError          the daemon refuses a request (HTTP status, text)
│   └── RefusedLate   the same after the work began and before a byte was sent
└── Cut               the connection must be closed without an answer, as by a daemon that dies
"""

from __future__ import annotations


class EmulatorError(Exception):
    """Base of all errors of the emulator."""


class OptionError(EmulatorError):
    """An option, a fault or a registry entry is invalid; `field` names it and `remedy` says what is allowed."""

    def __init__(self, message: str, *, field: str, remedy: str = "The option --help lists what can be given.") -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.remedy = remedy


class ApiError(EmulatorError):
    """A refusal by the daemon: an HTTP status, and the text of `error`. Within a stream only the text is sent."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class RefusedLate(ApiError):
    """A refusal after the work began and before the first line; the daemon sends it with other headers."""

    def __init__(self, fault: ApiError, *, chunked: bool) -> None:
        super().__init__(fault.status, fault.text)
        self.chunked = chunked


class Cut(EmulatorError):
    """Raised to close the connection at once, as a dying daemon does."""
