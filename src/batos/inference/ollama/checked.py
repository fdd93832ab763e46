"""Numbers and names from the daemon, checked: they are within bounds, or WireError is raised."""

from __future__ import annotations

from batos.protocol.errors import WireError

#: The largest whole number that every JSON reader holds exactly; no count, size or duration (ns) comes near it.
MOST = 2**53


def check_count(value: int | None, what: str) -> int:
    """Return a count from the daemon, 0 if it names none.

    Raises: WireError: the count is negative or beyond 2**53.
    """
    if value is None:
        return 0
    if 0 <= value <= MOST:
        return int(value)
    raise WireError(f"Ollama reports an impossible {what}: {'less than 0' if value < 0 else 'more than 2**53'}")


def clean(text: str | None) -> str:
    """Replace lone surrogates, which no file or terminal can hold, by U+FFFD; return "" for None."""
    if not text or text.isascii():
        return text or ""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
