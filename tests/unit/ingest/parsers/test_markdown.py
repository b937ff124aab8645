from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstone.core.errors import EmptyDocument, ParseError
from ragstone.core.types import Parsed
from ragstone.ingest.parsers.draft import broken_rules
from ragstone.ingest.parsers.text.markdown import parse_markdown

PAGE = """\
# Ferry *rules* and `code` {#rules}

Intro with [a link](https://example.org)
over two lines.

Second level
------------

- one
- two
  - nested

1. first

| a | b |
|---|---|
| 1 | 2 |

```python
moduleControllerCreate()  # kept <b>as is</b>
```

> quoted

    indented code

***

[ref]: https://example.org
"""


def shape(parsed: Parsed) -> list[tuple[str, int, str, str]]:
    return [(block.kind, block.level, block.label, parsed.text[block.start : block.end]) for block in parsed.blocks]


@pytest.mark.req("R-NRM-05", "R-EXT-11", "R-TST-08")
def test_structure_is_found_and_text_is_the_source() -> None:
    parsed = parse_markdown(PAGE.encode(), "page.md")
    assert shape(parsed) == [
        ("heading", 1, "Ferry rules and code", "# Ferry *rules* and `code` {#rules}"),
        ("paragraph", 0, "", "Intro with [a link](https://example.org)\nover two lines."),
        ("heading", 2, "Second level", "Second level\n------------"),
        ("list", 0, "", "- one\n- two\n  - nested"),
        ("list", 0, "", "1. first"),
        ("table", 0, "", "| a | b |\n|---|---|\n| 1 | 2 |"),
        ("code", 0, "", "```python\nmoduleControllerCreate()  # kept <b>as is</b>\n```"),
        ("quote", 0, "", "> quoted"),
        ("code", 0, "", "    indented code"),
        ("paragraph", 0, "", "[ref]: https://example.org"),
    ]
    assert parsed.title == "Ferry rules and code"
    assert parsed.media_type == "text/markdown"
    assert broken_rules(parsed) == []


@pytest.mark.req("R-EXT-11")
@pytest.mark.parametrize(
    ("source", "title"),
    [
        ("intro\n\n## Two\n\n# One\n\n# Other", "One"),
        ("Setext\n======\n\ntext", "Setext"),
        ("---\ntitle: From the header\n---\n# One", "From the header"),
        ("---\ntitle: [not, text]\n---\n# One", "One"),
        ("only text", ""),
        ("```\n# not a heading\n```", ""),
    ],
)
def test_title(source: str, title: str) -> None:
    assert parse_markdown(source.encode(), "page.md").title == title


def test_front_matter_becomes_metadata_and_leaves_the_text() -> None:
    parsed = parse_markdown(b"---\r\nauthor: Ann\r\ndate: 2026-01-31\r\ntags: [a, b]\r\n---\r\n\r\nBody.", "page.md")
    assert parsed.text == "Body."
    assert parsed.metadata == {"author": "Ann", "date": "2026-01-31T00:00:00+00:00", "tags": ["a", "b"]}
    assert parsed.warnings == ()


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("a: &x [1]\nb: *x", "it uses aliases"),
        ("a: [unclosed", "line"),
        ("a: !!python/object/apply:os.system [id]", "line"),
        ("a: " + "[" * 5000 + "]" * 5000, "it is nested too deep"),
    ],
)
def test_front_matter_that_cannot_be_trusted_stays_text(header: str, reason: str) -> None:
    parsed = parse_markdown(f"---\n{header}\n---\n\nBody.".encode(), "page.md")
    assert parsed.metadata == {}
    assert parsed.text.endswith("Body.")
    assert header.split(":")[0] in parsed.text
    assert len(parsed.warnings) == 1
    assert reason in parsed.warnings[0]


def test_front_matter_that_cannot_be_stored_is_named() -> None:
    parsed = parse_markdown(b"---\nok: 1\nbad key: 2\n---\nBody.", "page.md")
    assert parsed.metadata == {"ok": 1}
    assert parsed.warnings == ("front matter that cannot be stored was left out: bad key",)


def test_a_rule_at_the_top_is_not_front_matter() -> None:
    assert parse_markdown(b"---\njust words\n---\nBody.", "page.md").text == "just words\n---\n\nBody."


def test_html_tags_and_comments_go_and_their_words_stay() -> None:
    source = (
        "<!-- hidden orders -->\n<div align='center'>\n\n**Bold** <br/> <kbd>Ctrl</kbd> Vector<int>\n\n</div>\n"
        "<https://example.org>\n\n<script>\nsteal()\n</script>\n\n`<div>` stays"
    )
    parsed = parse_markdown(source.encode(), "page.md")
    assert parsed.text == "**Bold** \n Ctrl Vector<int>\n\n<https://example.org>\n\n`<div>` stays"


MDX = """\
import Tabs from '@theme/Tabs';
import {
  One,
  Two,
} from './parts';

export const data = {
  a: 1,

  b: 2,
};

# Hooks

<Tabs groupId="os" values={[{label: 'x > y', value: 'a'}]}>
<TabItem value="a" label="Linux">

Use `import x` and `<Tabs>` here, {props.name}, {'{player}'}.

```jsx
import Kept from './kept';
<Kept />
```

</TabItem>
</Tabs>

{list.map((item) => (
  <li key={item}>{item}</li>
))}

{/* a note */}

:::tip[Remember]
Imports are dropped.
:::
"""


def test_mdx_keeps_words_code_and_exports_and_drops_the_rest_of_the_program() -> None:
    parsed = parse_markdown(MDX.encode(), "page.mdx")
    assert shape(parsed) == [
        ("code", 0, "", "~~~\nexport const data = {\n  a: 1,\n\n  b: 2,\n};\n~~~"),
        ("heading", 1, "Hooks", "# Hooks"),
        ("paragraph", 0, "", "Linux"),
        ("paragraph", 0, "", "Use `import x` and `<Tabs>` here, {props.name}, {player}."),
        ("code", 0, "", "```jsx\nimport Kept from './kept';\n<Kept />\n```"),
        ("paragraph", 0, "", "Remember\nImports are dropped."),
    ]
    assert parsed.title == "Hooks"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("five < six and seven > six", "five < six and seven > six"),
        ("<>words</> stay", "words stay"),
        ("before <script>x</script", "before"),
        ("a <Card title='Shown' onClick={() => go()} /> b", "a Shown b"),
        ("an `unclosed tick and <Tag", "an `unclosed tick and <Tag"),
        ("{unclosed brace", "{unclosed brace"),
        ("<!-- unclosed comment", "<!-- unclosed comment"),
    ],
)
def test_what_is_no_tag_stays(source: str, text: str) -> None:
    assert parse_markdown(source.encode(), "page.mdx").text == text


def test_in_plain_markdown_imports_and_braces_are_words() -> None:
    parsed = parse_markdown(b"import goods from Sula\n\nUse {name} here.", "page.md")
    assert parsed.text == "import goods from Sula\n\nUse {name} here."


def test_only_markup_is_an_empty_document() -> None:
    with pytest.raises(EmptyDocument, match=r"page\.mdx"):
        parse_markdown(b"import A from 'a';\n\n<A />\n", "page.mdx")


@given(st.text(st.sampled_from("#=-*`~<>/{}[]()!|:\n \tabA1&;\\'\""), max_size=200), st.booleans())
def test_any_markdown_gives_sound_blocks_or_a_typed_error(text: str, mdx: bool) -> None:
    try:
        parsed = parse_markdown(text.encode(), "page.mdx" if mdx else "page.md")
    except ParseError:
        return
    assert broken_rules(parsed) == []


def test_code_kept_in_a_string_that_mdx_exports_is_written_out() -> None:
    code = r"await takaro.moduleControllerCreate({\n  name: \"x\",\n});\nfindTp();"
    page = f'export const mod = {{\n  "run": "{code}"\n}};\n\n# Page\n'
    text = parse_markdown(page.encode(), "page.mdx").text
    assert 'await takaro.moduleControllerCreate({\n  name: "x",\n});\nfindTp();' in text
