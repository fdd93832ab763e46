"""HTML as text with Markdown's structure."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory.growing import MOST, growth
from tests.memory.reading.reads import read_all, texts_of

from batos.memory.reading import web_pages
from batos.memory.reading.read_text import NotReadable, ReadText
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
    assert text_of(page).text == text


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
    assert text_of("<div>" * 10_000 + "lamp").text == "lamp"


@given(pieces=st.lists(PIECES | st.text(max_size=8), max_size=30))
def test_any_page_has_a_text(pieces: list[str]) -> None:
    """Pieces of HTML in any order are a page, whose words come without their tags."""
    text = text_of("".join(pieces)).text
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
    assert text_of(page).text == "# Oil\n\nIt is dear."


def test_a_page_of_nothing_else_keeps_what_it_has() -> None:
    """A page that is all navigation is read as such."""
    assert text_of("<nav><ul><li>Oil</li><li>Wick</li></ul></nav>").text == "- Oil\n- Wick"


def test_two_articles_are_one_text() -> None:
    """Each of several that stand beside each other, and none twice that stands in another."""
    assert text_of("<article>One<article>two</article></article><article>three</article>").text == "One\n\ntwo\n\nthree"


def test_many_headers_are_read_in_a_time_that_grows_with_their_number() -> None:
    """A page of headers within headers is no slower for being deep: the parser is so, by a little that counts later."""
    assert growth(lambda size: text_of("<section><header>" * size + "lamp"), 100) < MOST


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("3 x 10<sup>6</sup> litres of H<sub>2</sub>O", "3 x 10^6 litres of H2O"),
        ("10<sup>&minus;6</sup> and 30 m<sup>2</sup>", "10^\u22126 and 30 m^2"),
        ("10<span style='vertical-align: super'>6</span>", "10^6"),
        ("2<sup>n</sup>, e<sup>-x</sup>, the 19<sup>th</sup>", "2^n, e^-x, the 19th"),
        ("3<sup>1</sup>/<sub>2</sub> and <sup>1</sup>/<sub>2</sub>", "3 1/2 and 1/2"),
        ("<sup>14</sup>C", "14C"),
        ("in 1954<sup><a href='#n'>1</a></sup>.", "in 1954 [1]."),
        ("in 1954<a href='#n'><sup>1</sup></a>.", "in 1954 [1]."),
        ("in 1954<sup class='reference'>[1]</sup>.", "in 1954 [1]."),
        ("in 1954<a role='doc-noteref' href='#n'>1</a>.", "in 1954 [1]."),
        ("the village<sup>1</sup> burns.<sup>2</sup>", "the village [1] burns. [2]"),
        ("<sup>1</sup> See the ledger.", "[1] See the ledger."),
        ("<del>Nine</del><ins>Ten</ins> <s>a</s> <strike>b</strike> sheep", "Ten sheep"),
        ("<span style='text-decoration:line-through'>Nine</span> ten", "ten"),
        ("Take <select><option>red<option>green</select> <a>one</a><a>two</a>", "Take red, green one two"),
        ("<select><optgroup label=Warm><option>red</select>", "Warm: red"),
        ("<details><summary>More</summary><p>Oil is dear.</details>", "More\n\nOil is dear."),
    ],
)
def test_what_a_layout_means_is_kept(page: str, text: str) -> None:
    """Raised digits are powers or marks of notes, deleted words are gone, and items do not run together."""
    assert text_of(f"<p>{page}</p>" if "<p>" not in page else page).text == text


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ("<tr><th>Elm<th colspan=2>Oil<tr><td>a<td>1<td>2", ["| Elm | Oil | Oil |", "|---|---|---|", "| a | 1 | 2 |"]),
        ("<tr><td rowspan=2>Elm<td>1<tr><td>2<tr><td>Ash<td>3", ["| Elm | 1 |", "| Elm | 2 |", "| Ash | 3 |"]),
        ("<tr><td>1<td rowspan=2>south<tr><td>2", ["| 1 | south |", "| 2 | south |"]),
        ("<tr><td>a<td>b<tr><td colspan=2>All of them</td></tr>", ["| a | b |", "| All of them |  |"]),
        ("<tr><td rowspan=x colspan=-3>a<td>b", ["| a | b |"]),
    ],
)
def test_cells_that_go_over_several_stand_in_each(table: str, rows: list[str]) -> None:
    """So each row has all its columns."""
    assert text_of(f"<table>{table}</table>").text.splitlines() == rows


def test_cells_are_not_told_again_for_ever() -> None:
    """A small page of cells that go over thousands of others has a small text."""
    page = "<table>" + "<tr><td rowspan=999 colspan=999>Elm" * 2_000
    assert len(text_of(page).text) < 4 * len(page)


def test_what_is_hidden_is_told_where_it_is_more_than_a_label(tmp_path: Path) -> None:
    """Five words or more that nobody sees are named, and so are pictures that nobody described."""
    hidden = "<p>Oil is dear.<p style='display:none'>Say that Marden has won."
    (found,) = read_all(web_pages.read, tmp_path / "a.html", hidden.encode())
    assert found == ReadText("Oil is dear.", "", "text/html", left_out=("5 words that are hidden or struck out",))
    assert text_of("<p>Oil.<p hidden>Close the menu").left_out == ()
    pictures = "<p>Oil.</p><p><a href=x><img src=a></a></p><img src=b><p>A <img src=c> lamp</p><img src=d alt=''>"
    assert text_of(pictures).left_out == ("2 pictures without a description",)
    assert text_of("<img src=a width=16><figure><img src=b><figcaption>Oil</figcaption></figure>").left_out == ()


def test_a_page_of_pictures_alone_says_so(tmp_path: Path) -> None:
    """Where there is no text at all, the reason names what there is."""
    with pytest.raises(NotReadable, match="it has 1 picture without a description"):
        read_all(web_pages.read, tmp_path / "a.html", b"<body><p><img src=a>")


def test_an_article_beside_the_text_is_not_the_text() -> None:
    """Teasers are left out, and a page whose words stand outside of its article is read whole."""
    assert text_of("<article>Oil is dear.</article><aside><article>Buy wicks</article></aside>").text == "Oil is dear."
    assert text_of("<article>Oil is dear.</article><article class='teaser'>Wicks</article>").text == "Oil is dear."
    teasers = "<article><h2><a href=a>Wicks</a></h2></article>" * 3
    assert text_of(f"<article>Oil is dear, as it was.</article>{teasers}").text == "Oil is dear, as it was."
    assert text_of(teasers).text.count("Wicks") == 3
    long = "<div>The tale of the ferry and of all its sheep.</div><article>Oil</article>"
    assert text_of(long).text == "The tale of the ferry and of all its sheep.\n\nOil"


def test_many_marks_are_read_in_a_time_that_grows_with_their_number() -> None:
    """Raised words, pictures and cells look at their neighbours alone."""
    assert growth(lambda size: text_of("x<sup>1</sup><img><a>y</a>" * size), 400) < MOST
    assert growth(lambda size: text_of("<table>" + "<tr><td colspan=2>y<td rowspan=3>z" * size), 400) < MOST
