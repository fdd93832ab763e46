"""Records a terminal: a first question in a fresh home against the emulator, drawn as an SVG (scripts/record.sh).

Everything is run as a person runs it; nothing of what is shown is written by hand but the sign before a command. The
picture plays once, with silences shortened; where pictures do not move it is what stands in the end.
"""

from __future__ import annotations

import argparse
import shlex
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from xml.sax.saxutils import escape

from first_minute import Person, emulator
from terminal_side import COLUMNS, Screen, TerminalRun

ROOT = Path(__file__).resolve().parents[1]
ASKED = (
    ("ask", "How was the breach closed?", "--file", "examples/harbour.txt"),
    ("missions",),
)
#: Of the emulator: tokens a second, and seconds of a load.
RATE, LOAD = 60.0, 1.0
#: Seconds that a silence takes at most, that a command stands before it answers, and after it has.
SILENCE, BEFORE, AFTER = 1.0, 0.8, 2.0
_WIDE, _HIGH, _LEFT, _TOP = 8.4, 19, 18, 46
_INK, _DIM, _PAPER = "#d8dee9", "#8791a5", "#1d222b"
_LIGHTS = ("#bf616a", "#ebcb8b", "#a3be8c")


@dataclass(frozen=True, slots=True)
class Line:
    """Lists what stood in a row from one second to another; `until` is None for what stands in the end."""

    row: int
    cells: tuple[tuple[str, str], ...]
    since: float
    until: float | None


def play(commands: Sequence[tuple[Sequence[str], TerminalRun]]) -> list[Line]:
    """Run the commands one after another and return every line that stood on the terminal."""
    now, lines = 0.0, list[Line]()
    top = 0
    for words, ran in commands:
        prompt = tuple((sign, "1") for sign in f"$ batos {shlex.join(words)}")
        lines.append(Line(top, prompt, now, None))
        now += BEFORE
        found, now = _lines_on(ran, top + 1, now)
        lines += found
        top = max(line.row for line in lines) + 2
        now += AFTER
    return lines


def _lines_on(ran: TerminalRun, top: int, now: float) -> tuple[list[Line], float]:
    """Return the lines of one command from a row on, and when it had ended."""
    screen, before = Screen(COLUMNS), 0.0
    standing: dict[int, tuple[tuple[tuple[str, str], ...], float]] = {}
    lines: list[Line] = []
    for at, text in ran.written:
        now += min(at - before, SILENCE)
        before = at
        screen.feed(text)
        shown = {row: tuple(cells) for row, cells in enumerate(screen.lines) if any(sign != " " for sign, _ in cells)}
        for row, (cells, since) in list(standing.items()):
            if shown.get(row) != cells:
                lines.append(Line(top + row, cells, since, now))
                del standing[row]
        standing |= {row: (cells, now) for row, cells in shown.items() if row not in standing}
    lines += (Line(top + row, cells, since, None) for row, (cells, since) in standing.items())
    return [line for line in lines if line.until is None or line.until - line.since > 0.04], now


def draw(lines: Sequence[Line]) -> str:
    """Return the picture."""
    height = _TOP + _HIGH * (max(line.row for line in lines) + 2)
    width = round(2 * _LEFT + _WIDE * COLUMNS)
    title = "A first question, recorded against the emulator: the wire is Ollama's, the words are no model's."
    return "\n".join((
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">',
        f"<title>{title}</title>",
        "<style>",
        f"text {{ font: 14px ui-monospace, Menlo, Consolas, monospace; fill: {_INK}; white-space: pre }}",
        f".dim {{ fill: {_DIM} }} .bold {{ font-weight: bold }} .gone {{ visibility: hidden }}",
        "@keyframes hidden { from, to { visibility: hidden } } @keyframes shown { from, to { visibility: visible } }",
        "</style>",
        f'<rect width="{width}" height="{height}" rx="9" fill="{_PAPER}"/>',
        *(f'<circle cx="{20 + 20 * at}" cy="18" r="6" fill="{fill}"/>' for at, fill in enumerate(_LIGHTS)),
        *map(_text, lines),
        "</svg>",
        "",
    ))  # fmt: skip


def _text(line: Line) -> str:
    if line.until is None:
        kind, moving = "", f"animation: hidden {line.since:.2f}s"
    else:
        kind, moving = ' class="gone"', f"animation: shown {line.until - line.since:.2f}s {line.since:.2f}s"
    return f'<text y="{_TOP + _HIGH * line.row}" style="{moving}"{kind}>{"".join(_spans(line.cells))}</text>'


def _spans(cells: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield the runs of one style, each in its column, so that no font moves the next one."""
    column = 0
    for style, some in groupby(cells, key=lambda cell: cell[1]):
        text = "".join(sign for sign, _ in some)
        kind = {"1": "bold", "2": "dim"}.get(style.rpartition(" ")[2], "")
        if text.strip():
            place = f'x="{_LEFT + _WIDE * column:.1f}" textLength="{_WIDE * len(text):.1f}"'
            yield f"<tspan {place}{f' class={chr(34)}{kind}{chr(34)}' if kind else ''}>{escape(text)}</tspan>"
        column += len(text)


def record() -> list[tuple[Sequence[str], TerminalRun]]:
    """Run the commands after genesis and return each with its output."""
    with tempfile.TemporaryDirectory(prefix="batos-recording-") as folder, emulator(Path(folder), RATE, LOAD) as host:
        person = Person(Path(folder, "home"), host)
        person.run("genesis")
        return [(words, person.run(*words, together=True)) for words in ASKED]


def main() -> None:
    """Record, and write the picture."""
    parser = argparse.ArgumentParser(description="Record a first question as a picture.")
    parser.add_argument("file", type=Path, nargs="?", default=ROOT / "docs" / "first-question.svg")
    options = parser.parse_args()
    options.file.write_text(draw(play(record())), encoding="utf-8")


if __name__ == "__main__":
    main()
