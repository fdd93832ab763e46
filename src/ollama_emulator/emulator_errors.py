"""Every error that the emulator raises for others to catch, in one tree.

EmulatorError
├── OptionError       an option, a fault or a registry entry is wrong: nothing was started or changed (field, remedy)
├── ApiError          the daemon refuses a request (HTTP status, text)
│   └── Begun         the same after the work began and before a byte was sent
└── Cut               the connection is to be closed without an answer, as by a daemon that dies
"""

from __future__ import annotations


class EmulatorError(Exception):
    """The root of the tree."""


class OptionError(EmulatorError):
    """An option, a fault or a registry entry cannot be used; `field` names it and `remedy` says what is allowed."""

    def __init__(self, message: str, *, field: str, remedy: str = "The option --help lists what can be given.") -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.remedy = remedy


class ApiError(EmulatorError):
    """The daemon refuses: an HTTP status and the text of its `error` field; inside a stream the text alone is sent."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class RefusedLate(ApiError):
    """A refusal after the work began and before anything was said: the daemon sends it with other headers."""

    def __init__(self, fault: ApiError, *, chunked: bool) -> None:
        super().__init__(fault.status, fault.text)
        self.chunked = chunked


class Cut(EmulatorError):
    """The connection is to be closed at once, as a dying daemon does."""
