from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstone.core.errors import AddressRefused
from ragstone.fetch.urls import canonical_url, parse_url, redact_url


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        ("HTTP://Example.COM", "http://example.com/"),
        ("http://example.com:80/a", "http://example.com/a"),
        ("https://example.com:443/a", "https://example.com/a"),
        ("https://example.com:80/a", "https://example.com:80/a"),
        ("http://example.com./a", "http://example.com/a"),
        ("http://example.com/a/../b/./c#part", "http://example.com/b/c"),
        ("http://example.com/%7euser/%e4%2f", "http://example.com/~user/%E4%2F"),
        ("http://example.com/a?utm_source=x&id=3&fbclid=y", "http://example.com/a?id=3"),
        ("http://example.com/a?utm_source=x", "http://example.com/a"),
        ("http://example.com/a?", "http://example.com/a"),
        ("http://bücher.example/ä", "http://xn--bcher-kva.example/%C3%A4"),
        ("http://[2606:4700::1111]/", "http://[2606:4700::1111]/"),
    ],
)
def test_one_page_has_one_spelling(given: str, canonical: str) -> None:
    assert canonical_url(given) == canonical
    assert canonical_url(canonical) == canonical


def test_a_link_is_read_from_where_it_stands() -> None:
    assert canonical_url("../b?x=1#y", "http://example.com/a/c/") == "http://example.com/a/b?x=1"
    assert canonical_url("//cdn.example/x", "https://example.com/") == "https://cdn.example/x"


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "/path", "//example.com/", "http:", "http://", "http:///x", "http://./x", "http:example.com",
        "mailto:a@b",
        "ftp://example.com/", "file:///etc/passwd", "javascript:alert(1)", "data:text/html,x", "gopher://example.com/",
        "http://user@example.com/", "http://user:pw@example.com/", "http://:@example.com/", "http://a\\@example.com/",
        "http://example.com:0/", "http://example.com:99999/", "http://example.com:-1/", "http://example.com:x/",
        "http://example.com/\n", "http://exa\x00mple.com/", "http://example.com/\ud800", "http://[::1", "http://[v1.x]/",
        "http://example.com/" + "a" * 8000,
    ],
)  # fmt: skip
def test_anything_but_a_plain_web_address_is_refused(text: str) -> None:
    with pytest.raises(AddressRefused):
        parse_url(text)


@pytest.mark.parametrize(
    ("address", "safe"),
    [
        ("http://example.com/a?id=3", "http://example.com/a?id=3"),
        ("http://example.com/a?id=3&api_key=s3cret", "http://example.com/a?id=3&api_key=…"),
        ("http://example.com/a?X-Amz-Signature=s3cret&token", "http://example.com/a?X-Amz-Signature=…&token"),
        ("http://example.com/a#access_token=s3cret", "http://example.com/a"),
        ("http://user:s3cret@example.com/", "http://…@example.com/"),
        ("http://a@s3cret@example.com/", "http://…@example.com/"),
        ("http://example.com/\n\u202ea", "http://example.com/��a"),
    ],
)
def test_secrets_are_masked(address: str, safe: str) -> None:
    assert redact_url(address) == safe


@given(st.text(max_size=60), st.sampled_from(["", "http://", "https://a.example/", "http://a.example/?key="]))
def test_any_text_is_read_or_refused(text: str, before: str) -> None:
    assert len(redact_url(before + text)) <= 301
    try:
        canonical = canonical_url(before + text)
    except AddressRefused:
        return
    assert canonical.isascii()
    assert canonical_url(canonical) == canonical
