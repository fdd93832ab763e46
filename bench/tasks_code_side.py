"""Runs the function of an answer in a child with limits, and compares the values of JSON as the checks of tasks do."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tasks_texts_side import find, fold, numbers

SECONDS = 3
#: Runs in the child, keeps the pipe for itself before the answer's code runs, and lets that write nowhere.
_DRIVER = """
import json, os, sys
out = os.fdopen(os.dup(1), "w", encoding="utf-8")
null = os.open(os.devnull, os.O_RDWR)
for number in (0, 1, 2):
    os.dup2(null, number)
try:
    import resource as r
    limits = ((r.RLIMIT_CPU, 3), (r.RLIMIT_AS, 1 << 30), (r.RLIMIT_FSIZE, 0), (r.RLIMIT_NPROC, 0))
    [r.setrlimit(kind, (most, most)) for kind, most in limits]
except (ImportError, ValueError, OSError):
    pass
given = json.loads(sys.argv[1])
try:
    names = {}
    exec(compile(given["code"], "answer", "exec"), names)
    said = {"values": [names[given["function"]](*each) for each in given["cases"]]}
    text = json.dumps(said)
except BaseException as error:
    text = json.dumps({"error": f"{type(error).__name__}: {error}"[:160]})
out.write(text)
out.flush()
os._exit(0)
"""


def code_of(text: str) -> str:
    """Return the code of an answer: its fenced blocks, else all of it."""
    blocks = re.findall(r"```[^\n]*\n(.*?)(?:```|\Z)", text, re.DOTALL)
    return "\n\n".join(blocks) if blocks else text


def run_cases(answer: str, check: Mapping[str, Any], seconds: float = SECONDS) -> tuple[bool, str]:
    """Return if an answer's function gives the wanted values in so many seconds, and the reason if not."""
    cases: Sequence[Sequence[Any]] = check["cases"]
    code = f"{check.get('setup', '')}\n{code_of(answer)}"
    given = {"code": code, "function": check["function"], "cases": [arguments for arguments, _ in cases]}
    with tempfile.TemporaryDirectory(prefix="batos-answer-") as folder:
        found = _run(json.dumps(given), Path(folder), seconds)
    if "values" not in found:
        return False, str(found.get("error", "no output"))
    for (arguments, wanted), value in zip(cases, found["values"], strict=True):
        if not same(wanted, value):
            return False, f"{arguments!r:.80} gave {value!r:.80}, not {wanted!r:.80}"
    return True, ""


def _run(given: str, folder: Path, seconds: float) -> dict[str, Any]:
    """Run the driver; return what it says, or the reason why it said nothing. Nothing that it began goes on."""
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    try:
        with subprocess.Popen(
            [sys.executable, "-I", "-c", _DRIVER, given], stdin=null, stdout=pipe, stderr=null, cwd=folder,
            env={"PATH": "/usr/bin:/bin"}, start_new_session=True,
        ) as process:  # fmt: skip
            try:
                said, _ = process.communicate(timeout=seconds)
            finally:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
        found = json.loads(said)
    except subprocess.TimeoutExpired:
        return {"error": f"took longer than {seconds:g} s"}
    except (OSError, ValueError, RecursionError):  # a limit ended it, or its code cannot be handed over
        return {"error": "no output"}
    return found if isinstance(found, dict) else {}


def same(wanted: Any, value: Any) -> bool:
    """Test if two values of JSON are equal: numbers nearly, texts folded, and an object may have more."""
    if isinstance(wanted, bool) or isinstance(value, bool):
        return wanted is value
    if isinstance(wanted, int | float):
        return _same_number(wanted, value)
    if isinstance(wanted, str):
        return isinstance(value, str | int | float) and _same_text(wanted, fold(str(value)))
    if isinstance(wanted, list):
        return isinstance(value, list) and len(wanted) == len(value) and all(map(same, wanted, value))
    if isinstance(wanted, dict):
        return isinstance(value, dict) and all(key in value and same(wanted[key], value[key]) for key in wanted)
    return bool(wanted == value)


def _same_number(wanted: float, value: Any) -> bool:
    """Test if a value is the number, or a text that has it and hardly more."""
    if isinstance(value, str):
        return any(abs(wanted - each) < 1e-6 for each in numbers(value)) and len(value.split()) <= 2
    return isinstance(value, int | float) and abs(wanted - value) < 1e-6


def _same_text(wanted: str, folded: str) -> bool:
    if wanted.startswith("re:"):
        return find(wanted, folded) >= 0
    return folded.rstrip(".") == fold(wanted).rstrip(".")


def json_of(text: str) -> Any:
    """Return the first JSON object or list of an answer, or None."""
    reader = json.JSONDecoder()
    for source in (code_of(text), text):
        for at in (found.start() for found in re.finditer(r"[{\[]", source)):
            try:
                return reader.raw_decode(source[at:])[0]
            except (ValueError, RecursionError):  # no JSON begins here
                continue
    return None
