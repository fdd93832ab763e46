"""What benches see of a terminal, what stands beside an answer there, and how a recording of it is drawn."""

from __future__ import annotations

import sys
from xml.etree import ElementTree

import first_minute
import recording_side
from terminal_side import Screen, TerminalRun, on_a_terminal


def _screen(text: str, columns: int = 20) -> Screen:
    found = Screen(columns)
    for at in range(0, len(text), 3):  # in pieces that cut codes in two
        found.feed(text[at : at + 3])
    return found


def test_a_screen_shows_what_stands_in_the_end() -> None:
    """Lines that were erased or written over are gone; a line that is too long goes on below."""
    assert _screen("one\r\ntwo\r\x1b[1A\x1b[Jthree\r\n").text == ["three", ""]
    assert _screen("working\r\x1b[Kdone").text == ["done"]
    assert _screen("a" * 25).text == ["a" * 20, "a" * 5]
    assert _screen("\x1b[2mdim\x1b[0m plain").lines[0][0] == ("d", "2")


def test_a_process_runs_on_terminals() -> None:
    """Both are terminals of the width that was asked for; its code, its times and its last words are there."""
    program = (
        "import os, sys; sys.stderr.write('late\\n'); print(sys.stdin.isatty(), sys.stderr.isatty(), "
        "os.get_terminal_size(1).columns); raise SystemExit(3)"
    )
    ran = on_a_terminal([sys.executable, "-c", program], {}, 60)
    assert (ran.code, ran.out.text, ran.err.text) == (3, ["True True 60", ""], ["late", ""])
    assert ran.first_s is not None
    assert 0 < ran.first_s <= ran.seconds


def _ran(out: str, err: str = "") -> TerminalRun:
    return TerminalRun(0, 1.0, _screen(out, 80), _screen(err, 80), 0.5, [(0.5, out), (9.0, err)])


def test_lines_beside_an_answer() -> None:
    """Not the answer, however it is broken, nor footnotes and what goes on below them; everything else counts."""
    notes = '[1] a.txt: "one\r\n    two"\r\n'
    found = first_minute.beside(_ran("The lamp\r\nwas lit.\r\n", f"\r\n{notes}BABS, cycle\r\n"), "The lamp was lit.")
    assert found == ["BABS, cycle"]
    assert first_minute.beside(_ran(f"Yes.\r\n{notes}route\r\n"), "Yes.") == ["route"]


def test_a_recording_is_a_picture_that_ends_as_the_screen_did() -> None:
    """What stays is seen where pictures do not move, what went is hidden there; long silences are shortened."""
    ran = _ran("working\r\x1b[K\x1b[1m<done> & well\x1b[0m\r\n", "said\r\n")
    ran.written.insert(0, (0.1, "asking"))
    lines = recording_side.play([(("ask", "Why not?"), ran), (("missions",), _ran("none\r\n"))])
    assert max(line.since for line in lines) < 8
    picture = ElementTree.fromstring(recording_side.draw(lines))
    shown = [
        "".join(each.itertext()) for each in picture.iter() if each.tag.endswith("}text") and not each.get("class")
    ]
    assert shown == ["$ batos ask 'Why not?'", "<done> & well", "said", "$ batos missions", "none"]
    hidden = ["".join(each.itertext()) for each in picture.iter() if each.tag.endswith("}text") and each.get("class")]
    assert "asking" in hidden
