"""Naming the sources of a reply in the style of the tenant; which sources were used is known in every style."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ragstone.agents.service.settings import AgentConfiguration
from ragstone.answer.quotes import Statement
from ragstone.answer.styles import Writer, add_marks, source_line
from ragstone.core.answers import Answer, Citation
from ragstone.settings.answers import CitationStyle

_PART = re.compile(r"\s+[-–—|·:»]\s+")
_LETTERS = re.compile(r"[^a-z0-9]+")


def should_attribute(configuration: AgentConfiguration) -> bool:
    """Return whether replies name their sources."""
    return configuration.enable_source_attribution


def add_attribution(question: str, statements: Sequence[Statement], configuration: AgentConfiguration) -> Answer:
    """Return the reply that some statements make, with its sources named where the tenant wants that."""
    writer = Writer(configuration.style, by_source=True)
    for statement in statements:
        writer.add(statement)
    return writer.finish(question)


def format_citation(source: Citation, citation_style: CitationStyle = "inline") -> str:
    """Return one source as a style names it: `[Source: Product Catalog]`, `[1] Product Catalog - …`, or nothing."""
    match citation_style:
        case "none":
            return ""
        case "footnote":
            return f"[{source.n}] {source_line(source)}"
        case "endnote":
            return f"{source.n}. {source_line(source)}"
        case _:
            return add_marks("", [source], citation_style).strip()


def name_site(host: str, title: str) -> tuple[str, str]:
    """Return the name of a web site and a page's title without it.

    A page may call itself anything: the name is taken from the title only where it is that of the host.
    """
    parts = _PART.split(title)
    labels = host.split(".")
    for place in (-1, 0):
        if len(parts) > 1 and _LETTERS.sub("", parts[place].casefold()) in labels[:-1]:
            rest = parts[:-1] if place else parts[1:]
            return parts[place], " - ".join(rest)
    return host, title
