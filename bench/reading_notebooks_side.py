"""Given files of notebooks, as Jupyter writes them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reading_case_side import PICTURE, GivenFile
from reading_texts_side import PIXELS


def files() -> Iterator[GivenFile]:
    """Yield them."""
    yield from notebooks()
    yield from odd_notebooks()
    yield from old_notebooks()


def notebook(cells: Sequence[Mapping[str, Any]], **more: Any) -> bytes:
    """Return a notebook as Jupyter writes it."""
    about = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return json.dumps(
        {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5, **more}, indent=1, ensure_ascii=False
    ).encode()


def code(source: str, *outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return a cell of code with what it gave."""
    return {
        "cell_type": "code",
        "execution_count": 4,
        "metadata": {},
        "source": source.splitlines(keepends=True),
        "outputs": outputs,
    }


def notebooks() -> Iterator[GivenFile]:
    """Yield notebooks with texts, code, and pictures in base64."""
    heading = {
        "cell_type": "markdown",
        "metadata": {},
        "source": ["# Yield of the vineyard\n", "\n", "The best slope was number 6.\n"],
    }
    picture = {
        "output_type": "display_data",
        "metadata": {},
        "data": {"image/png": PIXELS, "text/plain": ["<Figure size 640x480>"]},
    }
    printed = {"output_type": "stream", "name": "stdout", "text": ["84 casks of ", "Riesling\n"]}
    yield GivenFile(
        "notebook-picture.ipynb",
        "notebook",
        notebook([heading, code("casks = 12 * 7\nprint(casks)", printed, picture)]),
        (
            "Yield of the vineyard",
            "The best slope was number 6.",
            "casks = 12 * 7 print(casks)",
            "84 casks of Riesling",
        ),
        (PICTURE,),
        (PIXELS[:40], '"cell_type"', "output_type", "kernelspec"),
    )
    frame = {
        "output_type": "execute_result",
        "execution_count": 4,
        "metadata": {},
        "data": {
            "text/html": ["<table><tr><td>Mosel</td></tr></table>"],
            "text/plain": ["   river  km\n", "0  Mosel  544"],
        },
    }
    yield GivenFile(
        "notebook-frame.ipynb",
        "notebook",
        notebook([code("rivers.head()", frame)]),
        ("rivers.head()", "Mosel", "544"),
        (),
        ("<td>", "text/plain"),
    )


def odd_notebooks() -> Iterator[GivenFile]:
    """Yield notebooks with errors, attached pictures, and of an old form."""
    error = {
        "output_type": "error",
        "ename": "ZeroDivisionError",
        "evalue": "no geese were counted",
        "traceback": ["\x1b[0;31mZeroDivisionError\x1b[0m: no geese were counted"],
    }
    yield GivenFile(
        "notebook-error.ipynb",
        "notebook",
        notebook([code("1 / geese", error)]),
        ("1 / geese", "ZeroDivisionError", "no geese were counted"),
        (),
        ("[0;31m",),
    )
    cell = {
        "cell_type": "markdown",
        "metadata": {},
        "source": "Sketch of the ness: ![s](attachment:ness.png)\n\nSeals lie on its lee.",
        "attachments": {"ness.png": {"image/png": PIXELS}},
    }
    raw = {"cell_type": "raw", "metadata": {}, "source": ["Raw words on otters"]}
    yield GivenFile(
        "notebook-attachment.ipynb",
        "notebook",
        notebook([cell, raw]),
        ("Sketch of the ness", "Seals lie on its lee.", "Raw words on otters"),
        (PICTURE,),
        (PIXELS[:40],),
    )


def old_notebooks() -> Iterator[GivenFile]:
    """Yield a notebook of an old form."""
    old = {
        "nbformat": 3,
        "nbformat_minor": 0,
        "metadata": {"name": "old"},
        "worksheets": [
            {
                "metadata": {},
                "cells": [
                    {"cell_type": "heading", "level": 2, "metadata": {}, "source": ["Tar kilns of Oulu"]},
                    {
                        "cell_type": "code",
                        "collapsed": False,
                        "input": ["kilns = 33"],
                        "language": "python",
                        "metadata": {},
                        "outputs": [{"output_type": "pyout", "prompt_number": 1, "text": ["33 kilns"], "metadata": {}}],
                    },
                ],
            }
        ],
    }
    yield GivenFile(
        "notebook-third-form.ipynb",
        "notebook",
        json.dumps(old).encode(),
        ("Tar kilns of Oulu", "kilns = 33", "33 kilns"),
        (),
        ("prompt_number", "worksheets"),
    )
