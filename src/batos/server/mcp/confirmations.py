"""A person's word for one deed: asked for by the client, bound to the exact call, of use once."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Final

#: Seconds that a question stands, and the answers that are remembered as used.
_STANDS: Final = 600.0
_USED: Final = 4_096


class Confirmations:
    """Makes and takes back the marks of questions to a person; those of another process are not known.

    A mark names nothing: a moment, a number of use once, and a digest of both with client, tool and arguments.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._secret = clock, secrets.token_bytes(32)
        self._used: OrderedDict[str, None] = OrderedDict()

    def ask(self, client: str, tool: str, args: Mapping[str, object]) -> str:
        """Return the mark of a question that is asked now."""
        number, until = secrets.token_hex(8), f"{self._clock() + _STANDS:.0f}"
        return f"{until}.{number}.{self._sign(until, number, client, tool, args)}"

    def take(self, mark: object, client: str, tool: str, args: Mapping[str, object]) -> bool:
        """Test if a mark is that of this very call, in time and for the first time."""
        until, _, rest = mark.partition(".") if isinstance(mark, str) else ("", "", "")
        number, _, given = rest.partition(".")
        signed = self._sign(until, number, client, tool, args)
        if not hmac.compare_digest(given.encode(), signed.encode()) or self._clock() > float(until):
            return False
        if number in self._used:
            return False
        self._used[number] = None
        if len(self._used) > _USED:
            self._used.popitem(last=False)
        return True

    def _sign(self, until: str, number: str, client: str, tool: str, args: Mapping[str, object]) -> str:
        meant = json.dumps([until, number, client, tool, args], sort_keys=True)
        return hmac.new(self._secret, meant.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
