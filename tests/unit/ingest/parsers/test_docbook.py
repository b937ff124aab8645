from __future__ import annotations

import pytest

from ragstone.core.errors import ParseError
from ragstone.ingest.parsers.dispatch import parse
from ragstone.ingest.parsers.draft import broken_rules

PAGE = """<?xml version="1.0"?>
<!DOCTYPE article PUBLIC "-//OASIS//DTD DocBook XML V4.3//EN" "x.dtd" [ <!ENTITY secret SYSTEM "file:///etc/passwd"> ]>
<article><articleinfo><author>Unseen</author></articleinfo><title>The Ferry</title>
<!-- hidden -->
<sect1><title>Fares &amp; times</title>
<para>A <emphasis>ticket</emphasis> is 4 francs.<indexterm><primary>ticket</primary></indexterm> &secret;</para>
<variablelist><varlistentry><term>--return</term>
<listitem><para>There and back.</para></listitem></varlistentry></variablelist>
<informaltable><tgroup cols="2"><thead><row><entry>Deck</entry><entry>Seats</entry></row></thead>
<tbody><row><entry>Upper</entry><entry>40</entry></row></tbody></tgroup></informaltable>
<procedure><step><para>Pay.</para></step><step><para>Go on board.</para></step></procedure>
<note><para>No dogs.</para></note>
<programlisting><![CDATA[ferry <now>]]></programlisting>
</sect1></article>
"""


@pytest.mark.req("R-EXT-08")
@pytest.mark.parametrize("name", ["ferry.xml", "ferry.docbook"])
def test_a_manual_reads_as_its_page_would(name: str) -> None:
    parsed = parse(PAGE.encode(), name)
    assert broken_rules(parsed) == []
    assert (parsed.title, parsed.media_type) == ("The Ferry", "application/docbook+xml")
    assert [(block.level, block.label) for block in parsed.blocks if block.kind == "heading"] == [
        (1, "The Ferry"),
        (2, "Fares & times"),
    ]
    assert "A ticket is 4 francs. secret" in parsed.text
    assert "--return\n  There and back." in parsed.text
    assert "| Deck | Seats |\n| --- | --- |\n| Upper | 40 |" in parsed.text
    assert "1. Pay.\n2. Go on board." in parsed.text
    assert "Note:" in parsed.text
    assert "ferry <now>" in parsed.text
    assert not any(word in parsed.text for word in ("Unseen", "hidden", "passwd"))


@pytest.mark.parametrize("before", ["", '<?xml version="1.0"?>\n<!-- of the manual -->\n'])
def test_a_part_of_a_manual_needs_no_document_type(before: str) -> None:
    part = f"{before}<sect1 id='x'><title>Leap Years</title><para>&kstars; &amp; the &amp;copy; sky.</para></sect1>"
    parsed = parse(part.encode(), "leap.xml")
    assert (parsed.title, parsed.media_type) == ("Leap Years", "application/docbook+xml")
    assert "kstars & the &copy; sky." in parsed.text


@pytest.mark.parametrize("text", ["<section><p>A web page.</p></section>", "<rows><para>Rows.</para></rows>"])
def test_other_xml_is_no_manual(text: str) -> None:
    assert parse(text.encode(), "other.xml").media_type != "application/docbook+xml"


def test_what_is_nested_without_end_is_refused() -> None:
    with pytest.raises(ParseError, match="nested too deep"):
        parse((PAGE[:200] + "<para>" * 1000).encode(), "ferry.docbook")


BOOK = """<!-- <!DOCTYPE book PUBLIC "-//OASIS//DTD DocBook XML V4.5//EN" "x.dtd"> to edit this -->
<!DOCTYPE book PUBLIC "-//OASIS//DTD DocBook XML V4.5//EN" "x.dtd" [
  <!-- <!ENTITY boat "Raft"> --> <!ENTITY % Swedish "INCLUDE"> <!ENTITY boat 'Sula &amp; <em>Son</em>'>
  <!ENTITY name "&boat;, the > ferry"> <!ENTITY loop "&loop;"> <!ENTITY far SYSTEM "far.xml">
]>
<book><bookinfo><title>The &name;</title><subtitle>Unseen</subtitle></bookinfo>
<chapter><info><author>Unseen</author><title>Fares</title><indexterm><primary><title>Unseen</title></primary></indexterm>
</info><para>Ask &name;, &far; or &loop;.</para></chapter></book>
"""


def test_titles_that_stand_in_the_information_head_their_sections() -> None:
    parsed = parse(BOOK.encode(), "index.docbook")
    assert [(block.level, block.label) for block in parsed.blocks if block.kind == "heading"] == [
        (1, "The Sula & Son, the > ferry"),
        (2, "Fares"),
    ]
    assert parsed.title == "The Sula & Son, the > ferry"


def test_entities_of_the_file_read_as_what_they_stand_for() -> None:
    assert parse(BOOK.encode(), "index.docbook").text.endswith("Ask Sula & Son, the > ferry, far or loop.")


def test_entities_that_stand_for_ever_longer_ones_stay_short() -> None:
    bomb = "".join(f'<!ENTITY ferry{number + 1} "{f"&ferry{number}; " * 10}">' for number in range(9))
    page = f'<!DOCTYPE article [<!ENTITY ferry0 "Sula"> {bomb}]><article><para>{"&ferry9; " * 9999}</para></article>'
    text = parse(page.encode(), "bomb.docbook").text
    assert len(text) < 1_010_000
    assert text.endswith("ferry9 ferry9")


def test_menus_and_keys_keep_their_words_apart() -> None:
    page = """<sect1><para>Choose <menuchoice><shortcut><keycombo action="simul"><keycap>Ctrl</keycap><keycap>N</keycap>
    </keycombo></shortcut><guimenu>File</guimenu><guimenuitem>New</guimenuitem></menuchoice>, or press
    <keycombo>&Alt;<keycap>F4</keycap> </keycombo>.</para></sect1>"""
    parsed = parse(page.encode(), "keys.docbook")
    assert parsed.text == "Choose File → New (Ctrl+N), or press Alt+F4."


def test_what_an_example_shows_of_comments_and_menus_stays() -> None:
    shown = "<?xml version='1.0'?><!-- a comment --><menuchoice><guimenu>File</guimenu></menuchoice>"
    page = f"<sect1><para>So:</para><programlisting><![CDATA[{shown}]]></programlisting></sect1>"
    assert parse(page.encode(), "example.docbook").text == f"So:\n\n{shown}"


def test_a_title_that_is_given_twice_is_read_once() -> None:
    page = (
        "<article><title>Ferry</title><articleinfo><title>Ferry</title></articleinfo><para>It leaves.</para></article>"
    )
    assert parse(page.encode(), "twice.docbook").text == "Ferry\n\nIt leaves."
