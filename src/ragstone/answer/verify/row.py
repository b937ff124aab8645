"""A row of a table read beside a claim: its cells as one statement, its figures each in their column."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from ragstone.answer.cite import Quote
from ragstone.answer.rows import Cell, caption, is_figure, is_prose, meant_cells, named_columns
from ragstone.answer.verify.checks import Findings, check
from ragstone.answer.verify.opposites import direction
from ragstone.answer.verify.quantities import quantities
from ragstone.answer.verify.quantity import Outcome, Quantity
from ragstone.core.analyzer import analyze, analyze_query

_UNSAID = "it does not say the number"
_OTHER = "it says another number"


def row_statement(row: Quote, terms: AbstractSet[str]) -> str:
    """The cells of a row that a claim is about, in words that the checks take for one statement."""
    cells = meant_cells(row, terms)
    return ", ".join(value if is_prose(value) else f"{name} {value}".strip() for name, value in cells)


def check_row(claim: str, row: Quote, terms: AbstractSet[str], headings: str) -> Findings:
    """What a row says for and against a claim."""
    said = row_statement(row, terms)
    above = f"{headings}\n{caption(row.head)}" if row.head else headings
    found = check(claim, said, above, said)
    claimed = quantities(claim)
    plain = all(one.bound in ("is", "about") for one in claimed)
    if (any(one.move for one in claimed) or (plain and direction(claim))) and not direction(said):
        found = replace(found, voids=(*found.voids, "it does not say that it changed"))
    told = [_told(one, row, terms) for one in claimed]
    if "differs" in told:
        conflicts = (*(one for one in found.conflicts if one != _OTHER), _OTHER)
        return replace(_with_figures(found), conflicts=conflicts)
    return _with_figures(found) if claimed and set(told) == {"same"} else found


def states(row: Quote, claim: str, said: str) -> bool:
    """Whether all words of a claim, or of it in the row's figures, are those of a row and of what stands over it."""
    above = f"{row.hit.title}\n{row.hit.section}\n{caption(row.head) if row.head else ''}"
    known = set(analyze(f"{row_statement(row, frozenset(analyze_query(claim)))}\n{above}"))
    return any(known.issuperset(analyze_query(words)) for words in (claim, said))


def _with_figures(found: Findings) -> Findings:
    return replace(
        found,
        gaps=tuple(gap for gap in found.gaps if gap != _UNSAID),
        voids=tuple(void for void in found.voids if void != _UNSAID),
    )


def _told(claimed: Quantity, row: Quote, terms: AbstractSet[str]) -> Outcome:
    """What a row says of a figure: another one only in the one column that the claim names."""
    if any(claimed.fits(one) for cell in meant_cells(row, terms) for one in _quantities(cell)):
        return "same"
    figures = [cell for cell in named_columns(row, terms) if is_figure(cell[1])]
    if len(figures) == 1 and any(_rivals(claimed, one) for one in _quantities(figures[0])):
        return "differs"
    return "absent"


def _quantities(cell: Cell) -> Sequence[Quantity]:
    """The figures of a cell, by themselves and of what its column is named after: 120 are 120 employees."""
    name, value = cell
    return [one for words in ("", *name.split()) for one in quantities(f"{value} {words}".strip())]


def _rivals(claimed: Quantity, stated: Quantity) -> bool:
    return claimed.rivals(stated if claimed.dimension else replace(stated, lead=claimed.lead or stated.lead))
