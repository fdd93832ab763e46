"""What nobody sees of an HTML page."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory.growing import MOST, growth

from batos.memory.reading.web_pages import text_of

SEEN = "<p>Oil is dear.</p>"
STYLES = (
    "display:none|DISPLAY : None !important|visibility:hidden|visibility: collapse|font-size:0|font-size: 0px;|"
    "font-size:1px|opacity:0|opacity: .01|position:absolute; left:-9999px|text-indent:-999em|height:0; overflow:hidden|"
    "clip:rect(0 0 0 0)|clip-path: inset(50%)|transform:scale(0)|color:#fff|color:white|color:rgb(255, 255, 255)|"
    "color:#fefefe|color:transparent|color:#111;background:#121212"
).split("|")
SHOWN = (
    "display:block|font-size:0.9em|font-size:10px|font-size:1em|opacity:0.5|opacity:1|left:-100px|margin-left:-480px|"
    "color:#000|color:red|background:#fff|height:0|color:#fff;background:#000"
).split("|")


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("tag", ["p", "div", "span", "td"])
def test_what_its_style_hides_is_no_text(style: str, tag: str) -> None:
    """Whatever the element is."""
    around = "<table><tr>{}</table>" if tag == "td" else "{}"
    hidden = f"""<{tag} style="{style}">The gate <b>closes</b> at six.</{tag}>"""
    assert text_of(SEEN + around.format(hidden)).text == "Oil is dear."


@pytest.mark.parametrize("style", SHOWN)
def test_what_its_style_shows_is_text(style: str) -> None:
    """Sizes, colours and places that a person can see."""
    assert text_of(f'<p style="{style}">Oil is dear.</p>').text == "Oil is dear."


@pytest.mark.parametrize(
    ("styles", "page", "text"),
    [
        (".h{display:none}", "<p class='a h'>no<p class=a>yes", "yes"),
        ("/* .a{ */ p.h , #i { visibility : hidden }", "<p class=h>no<p id=i>no<p class=a>yes", "yes"),
        ("@media print{.h{display:none}}", "<p class=h>yes", "yes"),
        (".h{display:none}.h{display:block}", "<p class=h>yes", "yes"),
        (".h{display:none}", "<p class=h style='display:block'>yes", "yes"),
        ("div .h{display:none}", "<p class=h>yes", "yes"),
        ("}}{{.h", "<p class=h>yes", "yes"),
    ],
)
def test_rules_for_a_class_or_a_name_hide(styles: str, page: str, text: str) -> None:
    """A rule for one of these alone counts, the last of several, and none for paper."""
    assert text_of(f"<style>{styles}</style>{page}").text == text


@pytest.mark.parametrize(
    "page",
    [
        "<table bgcolor=black><tr><td><font color=white>seen</font></table>",
        "<div style='background:#000'><p style='color:#fff'>seen</div>",
        "<div style='color:#fff'><p style='background-color: navy'>seen</div>",
        "<div style='background:url(night.png)'><p style='color:#fff'>seen</div>",
        "<style>.dark{background:#000}</style><div class=dark><p style='color:#fff'>seen</div>",
        "<style>body{background-color:#000}</style><p style='color:#fff'>seen",
        "<link rel=stylesheet href=a.css><div class=dark><p style='color:#fff'>seen</div>",
    ],
)
def test_white_words_on_another_ground_are_seen(page: str) -> None:
    """A ground that is dark, or that the page does not tell, hides nothing."""
    assert "seen" in text_of(page).text


@pytest.mark.parametrize(
    "page",
    ["<div style='color:#fff'><b>no</b></div>", "<font color=#fffffe>no</font>", "<p class=a style='color:#fff'>no"],
)
def test_white_words_on_white_are_not(page: str) -> None:
    """Nor within other elements, nor where a class has no rule."""
    assert text_of(SEEN + page).text == "Oil is dear."


def test_what_is_hidden_for_programs_alone_is_seen() -> None:
    """`aria-hidden` hides nothing from a person's eyes."""
    assert text_of("<p aria-hidden=true>Oil is dear.").text == "Oil is dear."


@given(style=st.text(max_size=60), rules=st.text(st.sampled_from(".a#{}@;:,*/ display:none<"), max_size=60))
def test_any_style_is_read(style: str, rules: str) -> None:
    """Styles of any letters leave a text or none."""
    escaped = style.replace("&", "&amp;").replace('"', "&quot;")
    assert text_of(f'<style>{rules}</style><p class=a style="{escaped}">Oil</p>').text in {"Oil", ""}


def test_many_rules_take_time_by_their_number() -> None:
    """So do braces that are never closed, and colours within colours."""
    assert growth(lambda size: text_of(f"<style>{'.a,p{color:red}@x{' * size}</style><p class=a>Oil"), 400) < MOST
    assert growth(lambda size: text_of("<div style='color:#fff'>" * size + "Oil"), 100) < MOST
