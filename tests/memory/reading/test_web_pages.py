"""HTML as text with Markdown's structure."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory.growing import MOST, growth
from tests.memory.reading.reads import read_all, texts_of

from batos.memory.reading import web_pages
from batos.memory.reading.read_text import NotReadable
from batos.memory.reading.web_pages import text_of

PIECES = st.sampled_from(
    ["<p>", "</p>", "<ul><li>", "<table><tr><td>", "<th>", "</tr>", "<pre>", "lamp", " oil ", "<br>", "<h2>", "<!--",
     "-->", "<script>", "</script>", "&amp;", "&#0;", "<svg>", "<template>", "<select><option>", "</table>", "<"]
)  # fmt: skip


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<p>One<br>two</p><p>three", "One\ntwo\n\nthree"),
        ("<h1>Lamp</h1>Oil<h3>Wick</h3>", "# Lamp\n\nOil\n\n### Wick"),
        ("<ul><li>a<ul><li>b</ul><li>c</ul>", "- a\n  - b\n- c"),
        ("<table><tr><th>Lamp<th>Oil<tr><td>big<td>2 l</table>", "| Lamp | Oil |\n|---|---|\n| big | 2 l |"),
        ("<pre>if lit:\n    wind()</pre>", "```\nif lit:\n    wind()\n```"),
        ("<script>x()</script><style>p{}</style><p hidden>no</p><p>yes", "yes"),
        ("<p>the <b>big</b>  <i>lamp</i>", "the big lamp"),
        ('<img alt="A lamp"> burns', "A lamp burns"),
    ],
)
def test_structure_is_kept(page: str, text: str) -> None:
    """Headings, lists, tables and code are as Markdown has them, and what nobody sees is gone."""
    assert text_of(page)[1] == text


def test_a_page_is_read_in_its_own_encoding(tmp_path: Path) -> None:
    """The declaration inside the page counts where it is not UTF-8."""
    page = '<meta charset="windows-1251"><title>Маяк</title><p>Лампа горит.'.encode("cp1251")
    assert texts_of(read_all(web_pages.read, tmp_path / "a.html", page)) == ["Лампа горит."]


def test_a_page_without_text_is_told(tmp_path: Path) -> None:
    """An application that draws itself has none."""
    with pytest.raises(NotReadable):
        read_all(web_pages.read, tmp_path / "a.html", b"<body><div id=app></div><script>draw()</script>")


def test_a_deep_page_is_read_without_depth() -> None:
    """Elements that stand ten thousand deep are walked, not recursed into."""
    assert text_of("<div>" * 10_000 + "lamp")[1] == "lamp"


@given(pieces=st.lists(PIECES | st.text(max_size=8), max_size=30))
def test_any_page_has_a_text(pieces: list[str]) -> None:
    """Pieces of HTML in any order are a page, whose words come without their tags."""
    _, text = text_of("".join(pieces))
    assert text == text.strip()
    assert "\0" not in text


@pytest.mark.parametrize(
    "page",
    [
        "<nav>Home | About</nav><h1>Oil</h1><p>It is dear.</p>",
        "<header><a>Home</a></header><article><h1>Oil</h1><p>It is dear.</p></article><footer>Imprint</footer>",
        "<div class='site-menu'><ul><li>Home</li></ul></div><h1>Oil</h1><p>It is dear.<aside>Read on</aside>",
        "<div role=navigation>Home</div><main><h1>Oil</h1>It is dear.<form>Your mail</form></main><p>Imprint",
        "<p>Home</p><article><header><h1>Oil</h1></header>It is dear.</article>",
        "<div id=cookie-banner>We use cookies</div><section><header><h1>Oil</h1></header><p>It is dear.</section>",
    ],
)
def test_what_leads_through_a_page_is_left_out(page: str) -> None:
    """Menus, banners and feet are no text of a page; the header of an article is."""
    assert text_of(page)[1] == "# Oil\n\nIt is dear."


def test_a_page_of_nothing_else_keeps_what_it_has() -> None:
    """A page that is all navigation is read as such."""
    assert text_of("<nav><ul><li>Oil</li><li>Wick</li></ul></nav>")[1] == "- Oil\n- Wick"


def test_two_articles_are_one_text() -> None:
    """Each of several that stand beside each other, and none twice that stands in another."""
    assert text_of("<article>One<article>two</article></article><article>three</article>")[1] == "One\n\ntwo\n\nthree"


def test_many_headers_are_read_in_a_time_that_grows_with_their_number() -> None:
    """A page of headers within headers is no slower for being deep: the parser is so, by a little that counts later."""
    assert growth(lambda size: text_of("<section><header>" * size + "lamp"), 100) < MOST
