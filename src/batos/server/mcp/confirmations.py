"""A person's word for one deed: asked for by the client, bound to the exact call, of use once."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Callable
from typing import Final

#: Seconds that a question stands.
_STANDS: Final = 600.0


class Confirmations:
    """Makes and takes back the marks of questions to a person; those of another process are not known.

    A mark names nothing: a moment, a number of use once, and a digest of both with the client, the tool, its arguments
    and what the person was shown, so that a yes is for just that.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._secret = clock, secrets.token_bytes(32)
        #: The numbers that were used, with the moments until which their marks would stand.
        self._used: dict[str, float] = {}

    def ask(self, client: str, *meant: object) -> str:
        """Return the mark of a question that is asked now; `meant` is all that a yes is to be for."""
        number, until = secrets.token_hex(8), f"{self._clock() + _STANDS:.0f}"
        return f"{until}.{number}.{self._sign(until, number, client, meant)}"

    def take(self, mark: object, client: str, *meant: object) -> bool:
        """Test if a mark is that of this very question, in time and for the first time."""
        until, _, rest = mark.partition(".") if isinstance(mark, str) else ("", "", "")
        number, _, given = rest.partition(".")
        signed, now = self._sign(until, number, client, meant), self._clock()
        if not hmac.compare_digest(given.encode("utf-8", "replace"), signed.encode()) or now > float(until):
            return False
        self._used = {each: end for each, end in self._used.items() if end >= now}
        if number in self._used:
            return False
        self._used[number] = float(until)
        return True

    def _sign(self, until: str, number: str, client: str, meant: tuple[object, ...]) -> str:
        text = json.dumps([until, number, client, meant], sort_keys=True)
        return hmac.new(self._secret, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
