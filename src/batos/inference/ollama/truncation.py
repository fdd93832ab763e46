"""Detects a prompt that the daemon cut silently, by the number of tokens that the daemon says it read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from batos.inference.ollama.chat import Answer, ChatRequest
from batos.protocol.errors import ContextOverflow

#: Words that at least one token stands for. Byte pair vocabularies have no token for two words; a few others have.
WORDS_A_TOKEN = 2
_WORD = re.compile(r"\S*\w\S*")
#: All blanks among the characters of ASCII.
_BLANKS = " \n\t\r\v\f\x1c\x1d\x1e\x1f"


def least_tokens(messages: Iterable[Mapping[str, str]]) -> int:
    """Count the fewest tokens that a prompt can have, by words between blanks.

    This is no estimate: a text without blanks, as in Chinese, counts as one word.

    >>> least_tokens([{"role": "user", "content": "Who closed the breach, and when?"}])
    3
    """
    return sum(len(_WORD.findall(each["content"])) for each in messages) // WORDS_A_TOKEN


def _most_parts(text: str) -> int:
    """Return the most parts between blanks that a text can have, by a count that takes a tenth of a split."""
    return 1 + sum(map(text.count, _BLANKS)) if text.isascii() else (len(text) + 1) // 2


def refuse_cut(request: ChatRequest, answer: Answer) -> Answer:
    """Give the answer back, unless it is one to a part of the prompt: then raise ContextOverflow.

    `truncate: false` forbids the daemon to cut; one that does not know it, or a proxy before it, may do so anyway. A
    count of 0 is none: the daemon leaves it out.
    """
    if answer.prompt_tokens >= sum(_most_parts(each["content"]) for each in request.messages) // WORDS_A_TOKEN:
        return answer
    # Hardly any part between blanks is no word: only where there are too many to have been read are the words among
    # them counted.
    parts = sum(len(each["content"].split()) for each in request.messages)
    if not 0 < answer.prompt_tokens < parts // WORDS_A_TOKEN:
        return answer
    least = least_tokens(request.messages)
    if answer.prompt_tokens < least:
        told = f"{request.model} read {answer.prompt_tokens} tokens of a prompt that has at least {least}: it was cut"
        raise ContextOverflow(None, None, told)
    return answer
