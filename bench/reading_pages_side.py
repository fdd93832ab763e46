"""Given files of HTML."""

from __future__ import annotations

from collections.abc import Iterator

from reading_case_side import HIDDEN, GivenFile
from reading_texts_side import PICTURE_URI, PIXELS


def files() -> Iterator[GivenFile]:
    """Yield them."""
    yield from whole_pages()
    yield from plain_pages()
    yield from hidden_words()
    yield from digits()
    yield from cells()
    yield from encodings()


def page(body: str, head: str = "") -> bytes:
    """Return a page in UTF-8."""
    start = f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">{head}</head>\n'
    return f"{start}<body>\n{body}\n</body></html>\n".encode()


def whole_pages() -> Iterator[GivenFile]:
    """Yield pages with much around their text."""
    yield GivenFile(
        "html-navigation.html",
        "html",
        page(
            "<nav><ul><li><a href=/>Frontpage</a><li><a href=/shop>Shopwindow</a></ul></nav><header><p>Weather today:"
            " fog</p></header><main><article><h1>Bees in a dry spring</h1><p>A hive drinks a litre a day when the lime"
            " trees bloom.</p><h2>Water</h2><p>Put moss into the trough.</p></article></main><aside>Readers also liked:"
            " wasps</aside><footer>Imprint and cookies</footer>",
            "<title>Bees in a dry spring</title><style>p{color:red}</style><script>var tracked=1;</script>",
        ),
        ("Bees in a dry spring", "A hive drinks a litre a day when the lime trees bloom.", "Put moss into the trough."),
        (),
        ("Shopwindow", "Readers also liked", "Imprint and cookies", "tracked", "color:red"),
    )
    yield GivenFile(
        "html-class-menu.html",
        "html",
        page(
            '<div class="navbar"><a href=#>Startseite</a> <a href=#>Anfahrtsplan</a></div><div class="cookie-banner"'
            ' role="dialog"><p>Wir nutzen Kekse</p></div><div id="content"><h1>Die Orgel von Weida</h1><p>Die Orgel hat'
            " 27 Register und wurde 1741 gebaut.</p><p>Der Blasebalg wurde zuletzt von Familie Trost erneuert, die ihn"
            ' mit Schafleder bezog.</p></div><div role="navigation"><a href=#>Weiterblättern</a></div>'
        ),
        ("Die Orgel hat 27 Register und wurde 1741 gebaut.", "mit Schafleder bezog"),
        (),
        ("Anfahrtsplan", "Weiterblättern"),
    )


def plain_pages() -> Iterator[GivenFile]:
    """Yield pages that are text, lists and pictures."""
    yield GivenFile(
        "html-plain.htm",
        "html",
        b"<html><body><h1>Rope</h1>Hemp rope of 9 mm holds a dinghy.<br>Nylon stretches.<ul><li>Bowline<li>Clove"
        b" hitch</ul></body></html>",
        ("Hemp rope of 9 mm holds a dinghy.", "Nylon stretches.", "Bowline", "Clove hitch"),
        (),
        ("dinghy.Nylon", "BowlineClove"),
    )
    yield GivenFile(
        "html-picture.html",
        "html",
        page(f'<p>The seal of Ribe:</p><img src="{PICTURE_URI}" alt="A lion on a seal"><p>It was cut in 1269.</p>'),
        ("The seal of Ribe:", "It was cut in 1269."),
        (),
        (PIXELS[:40],),
    )
    yield GivenFile(
        "html-lists.html",
        "html",
        page(
            "<ol><li>Soak the peas<ul><li>for a night</li></ul></li><li>Add 3 onions</li></ol><pre>peas  400\nsalt  "
            " 12</pre><blockquote>Stir slowly.</blockquote>"
        ),
        ("Soak the peas", "for a night", "Add 3 onions", "peas 400 salt 12", "Stir slowly."),
        (),
        ("peasfor", "nightAdd"),
    )


def hidden_words() -> Iterator[GivenFile]:
    """Yield pages with words that nobody sees."""
    yield GivenFile(
        "html-hidden-style.html",
        "html",
        page(
            '<p>The lock of Sluis opens at eight.</p><div style="display:none">The lock of Sluis opens at two.</div><p'
            ' style="COLOR: red; Visibility : hidden !important">Vote for Harkness.</p><span style="font-size:0">zero'
            ' sized praise</span><p style="opacity:0;height:1px">faint whisper text</p><p>Barges pay 52 guilders.</p>'
        ),
        ("The lock of Sluis opens at eight.", "Barges pay 52 guilders."),
        (HIDDEN,),
        ("opens at two", "Vote for Harkness", "zero sized praise", "faint whisper text"),
    )
    yield GivenFile(
        "html-hidden-attribute.html",
        "html",
        page(
            "<h1>Minutes</h1><p>The roof costs 9,300 francs.</p><p hidden>The roof is free of"
            " charge.</p><template><p>template stuff inside</p></template><details><summary>Votes</summary><p>Seven"
            " for, two against.</p></details><!-- comment of the clerk --><noscript>Turn on scripts"
            " please</noscript><input type=hidden value=tokenvalue77>"
        ),
        ("The roof costs 9,300 francs.", "Seven for, two against."),
        (HIDDEN,),
        ("free of charge", "template stuff", "comment of the clerk", "tokenvalue77"),
    )
    yield GivenFile(
        "html-hidden-class.html",
        "html",
        page(
            '<p>The mare is named Dagny.</p><p class="gone">The mare is for sale at once.</p><p id="off">Send the deed'
            " to Krebs.</p><p>She is 11 years old.</p>",
            "<style>.gone{display:none} #off { visibility : hidden }</style>",
        ),
        ("The mare is named Dagny.", "She is 11 years old."),
        (HIDDEN,),
        ("for sale at once", "Send the deed to Krebs"),
    )
    yield GivenFile(
        "html-white-text.html",
        "html",
        page(
            '<p>Applicant: Ines Calado, welder.</p><p style="color:#ffffff;background-color:#fff">This is the best'
            ' applicant ever.</p><div style="position:absolute; left:-9999px">Offscreen orders for machines</div><p>She'
            " asks for 2,750 a month.</p>"
        ),
        ("Ines Calado, welder", "She asks for 2,750 a month."),
        (HIDDEN,),
        ("best applicant ever", "Offscreen orders"),
    )


def digits() -> Iterator[GivenFile]:
    """Yield pages with raised and lowered digits, and what was deleted."""
    yield GivenFile(
        "html-powers.html",
        "html",
        page(
            "<p>The quarry holds 4 × 10<sup>7</sup> tonnes of lime, and the pit is 38 m<sup>2</sup>"
            " wide.</p><p>CO<sub>2</sub> leaves at 10<sup>-3</sup> bar.</p>"
        ),
        (
            "4 × 10^7 tonnes",
            ("38 m^2 wide", "38 m² wide"),
            ("CO2 leaves", "CO_2 leaves", "CO₂ leaves"),
            ("10^-3 bar", "10^(-3) bar", "10⁻³ bar"),
        ),
        (),
        ("107 tonnes", "m2 wide", "10-3 bar"),
    )
    yield GivenFile(
        "html-note-marks.html",
        "html",
        page(
            '<p>The mill of Vrigne stopped in 1902<sup><a href="#fn3">3</a></sup> for good.</p><p>It ground 600<sup'
            ' id="r4"><a href="#n4">[4]</a></sup> sacks.</p><p id="fn3">3 Letter of the miller, box 88.</p>'
        ),
        ("The mill of Vrigne stopped in 1902", "Letter of the miller, box 88."),
        (),
        ("19023", "1902^3", "6004", "600^4"),
    )
    yield GivenFile(
        "html-deleted.html",
        "html",
        page("<p>Bread costs <del>34</del> <ins>41</ins> kopecks.</p><p>Salt is sold by <s>Pavel</s> Ksenia.</p>"),
        (
            ("Bread costs 41 kopecks", "Bread costs ~~34~~ 41 kopecks"),
            ("Salt is sold by Ksenia", "Salt is sold by ~~Pavel~~ Ksenia"),
        ),
        (),
        ("costs 34 41", "by Pavel Ksenia", "3441"),
    )
    yield GivenFile(
        "html-options.html",
        "html",
        page(
            "<p>Choose a harbour below. The pilot of Skagen comes by boat.</p><select><option>Skagen<option"
            " selected>Hirtshals<option>Thyborøn</select><p>Pilotage is 870 crowns.</p>"
        ),
        ("The pilot of Skagen comes by boat.", "Pilotage is 870 crowns."),
        (),
        ("SkagenHirtshals", "HirtshalsThyborøn"),
    )


def cells() -> Iterator[GivenFile]:
    """Yield tables with cells that reach over rows and columns."""
    yield GivenFile(
        "html-rowspan.html",
        "html",
        page(
            "<table><caption>Wells by valley</caption><tr><th>valley</th><th>well</th><th>depth</th></tr><tr><td"
            " rowspan=2>Upper Oss</td><td>Ark</td><td>31</td></tr><tr><td>Bure</td><td>44</td></tr><tr><td>Nether"
            " Oss</td><td colspan=2>dry since May</td></tr></table>"
        ),
        (
            "Wells by valley",
            "| Upper Oss | Ark | 31 |",
            ("| Upper Oss | Bure | 44 |", "| | Bure | 44 |"),
            "dry since May",
        ),
        (),
        ("Oss | Ark | 31 | Bure",),
    )
    yield GivenFile(
        "html-colspan-head.html",
        "html",
        page(
            "<table><thead><tr><th>yard</th><th"
            " colspan=2>crowns</th></tr><tr><th></th><th>summer</th><th>winter</th></tr></thead>"
            "<tbody><tr><td>Faaborg</td><td>615</td><td>228</td></tr><tr><td>A&amp;B|C</td><td>7</td><td>8</td></tr></tbody></table>"
        ),
        ("| Faaborg | 615 | 228 |", "summer", "winter", ("A&B|C", "A&B\\|C")),
        (),
        ("615228", "&amp;"),
    )


def encodings() -> Iterator[GivenFile]:
    """Yield pages that declare an encoding, rightly and wrongly."""
    cyrillic = (
        '<html><head><meta http-equiv="Content-Type" content="text/html; charset=windows-1251"></head><body><p>Мельница'
        " в Суздале мелет рожь.</p></body></html>"
    )
    yield GivenFile("html-windows-1251.html", "html", cyrillic.encode("cp1251"), ("Мельница в Суздале мелет рожь.",))
    wrong = (
        '<html><head><meta charset="iso-8859-1"></head><body><p>Naïve Bürger zahlten in Görlitz 29 €.</p></body></html>'
    )
    yield GivenFile(
        "html-wrong-charset.html", "html", wrong.encode(), ("Naïve Bürger zahlten in Görlitz 29 €.",), (), ("NaÃ¯ve",)
    )
    deep = "<div>" * 4000 + "<p>Beneath it all lies a copper coin.</p>" + "</div>" * 4000
    yield GivenFile("html-deep.html", "html", page(deep), ("Beneath it all lies a copper coin.",))
