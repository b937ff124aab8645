"""A row of a table read beside a claim: its cells as one statement, its figures each in their column."""

from __future__ import annotations

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import lru_cache

from ragstone.answer.quotes import (
    Cell,
    Quote,
    caption,
    drop_number,
    is_figure,
    is_prose,
    label,
    meant_cells,
    named_cells,
    named_columns,
)
from ragstone.answer.verify.binding import is_misbound
from ragstone.answer.verify.checks import check, find_numbered, is_turned_round
from ragstone.answer.verify.objections import Findings, Objection, ObjectionKind, drop_kind, has_kind
from ragstone.language.analyzer import analyze, analyze_query
from ragstone.language.measurements import find_quantities
from ragstone.language.negation import direction, find_denials
from ragstone.language.quantities import Outcome, Quantity
from ragstone.language.synonyms import AlikeWords
from ragstone.language.units import PREFIXES
from ragstone.language.vocabulary import content_words, is_measured

_UNIT = re.compile(
    r"(?:^|\s)[(\[](?:in )?(?P<inside>[^()\[\]]{1,24})[)\]]"
    r"|,?\sin (?P<behind>[^()\[\],]{1,24})$|,\s(?P<last>[^()\[\],]{1,24})$"
)
"""At the name of a column: the unit of its figures."""
_ELSEWHERE = Objection(ObjectionKind.OF_SOMETHING_ELSE)
_YES = frozenset(("yes", "y", "x", "true", "✓", "✔"))
_NO = frozenset(("no", "n", "false", "✗", "✘"))


def render_with_units(row: Quote) -> str:
    """Return a row as an answer says it, with the units of its columns behind its figures."""
    pairs = [f"{name}: {value}" if name else value for name, value in _spell_units(row).values()]
    return "; ".join(pairs)


def _spell_units(row: Quote) -> dict[Cell, Cell]:
    """Return the cells of a row, each as it is read: 36 below "Warranty (months)" as 36 months below "Warranty"."""
    head = row.head.text if row.head else ""
    columns = _read_columns(head)
    return {cell: _spell_unit(cell, *columns.get(cell[0], ("", ""))) for cell in named_cells(row.text, head)}


def _spell_unit(cell: Cell, name: str, unit: str) -> Cell:
    value = cell[1]
    figures = find_quantities(value) if unit else []
    if not figures or any(figure.dimension for figure in figures) or not value.endswith(figures[-1].words):
        return cell
    return name, f"{unit}{value}" if unit in PREFIXES else f"{value} {unit}"


@lru_cache(64)
def _read_columns(head: str) -> dict[str, tuple[str, str]]:
    """Return the columns of a table, each with its name and its unit; beside "(max)", "(min)" is no minute."""
    columns = {column: _split_unit(column) for column, _ in named_cells(head, head)}
    smallest = "min" if "max" in head.lower() else ""
    return {
        column: (name, unit) if unit.lower() != smallest else (column, "") for column, (name, unit) in columns.items()
    }


def _split_unit(column: str) -> tuple[str, str]:
    """Return the name of a column without the unit of its figures, and the unit, or ""."""
    for match in _UNIT.finditer(column):
        unit = next(filter(None, match.groups())).strip()
        figures = find_quantities(f"{unit}2" if unit in PREFIXES else f"2 {unit}")
        is_whole = unit in PREFIXES or (figures and (figures[0].per or figures[0].words.endswith(unit)))
        if is_whole and len(figures) == 1 and is_measured(figures[0]):
            return f"{column[: match.start()]}{column[match.end() :]}".strip(" ,"), unit
    return column, ""


def _own_terms(row: Quote, terms: AbstractSet[str]) -> AbstractSet[str]:
    """Return the terms without those of units, which name no column."""
    columns = _read_columns(row.head.text if row.head else "").values()
    units = {term for _, unit in columns for term in analyze(unit)}
    return terms - (units - {term for name, _ in columns for term in analyze(name)})


def _widen_terms(claim: str, row: Quote, terms: AbstractSet[str]) -> AbstractSet[str]:
    """Return the terms of a claim with those of the columns that it names in other words: it costs, under "Price"."""
    if _read_named(row, terms):
        return terms
    said = AlikeWords(word.folded for word in content_words(claim) if not word.is_name)
    columns = {name for name, _ in _spell_units(row).values()}
    alike = {word.folded for name in columns for word in content_words(f"a {name.lower()}") if said.has(word.folded)}
    return terms | {term for word in alike for term in analyze(word)}


def _read_meant(row: Quote, terms: AbstractSet[str]) -> list[Cell]:
    """Return the cells of a row that a claim is about, with the units of their columns."""
    spelt = _spell_units(row)
    return [spelt[cell] for cell in meant_cells(row, _own_terms(row, terms))]


def _read_named(row: Quote, terms: AbstractSet[str]) -> list[Cell]:
    """Return the cells in columns that a claim names, with the units of the columns."""
    spelt = _spell_units(row)
    return [spelt[cell] for cell in named_columns(row, _own_terms(row, terms))]


def row_statement(row: Quote, terms: AbstractSet[str]) -> str:
    """Return the cells of a row that a claim is about, in words that the checks take for one statement."""
    cells = _read_meant(row, terms)
    return ", ".join(value if is_prose(value) else f"{name} {value}".strip() for name, value in cells)


def check_row(claim: str, row: Quote, terms: AbstractSet[str], headings: str) -> Findings:
    """Return the findings of a row read beside a claim."""
    terms = _widen_terms(claim, row, terms)
    names: dict[str, str] = {}
    for known_as in _find_numbered_names(row):
        names[known_as], claim = drop_number(known_as, claim)

    def drop_numbers(text: str) -> str:
        for known_as, name in names.items():
            text = text.replace(known_as, name, 1)
        return text

    said = drop_numbers(row_statement(row, terms))
    above = f"{headings}\n{caption(row.head)}" if row.head else headings
    claimed = find_quantities(claim)
    found = _drop_word_order(check(claim, said, above, said), claim, claimed, row, terms)
    if not claimed and _says_otherwise(row, terms):
        found = replace(found, voids=(*found.voids, _ELSEWHERE))
    if _is_denied(row, terms) and not find_denials(claim):
        found = replace(found, conflicts=(*found.conflicts, Objection(ObjectionKind.DENIED)))
    plain = all(quantity.bound in ("is", "about") for quantity in claimed)
    changes = any(quantity.move in ("by", "to") for quantity in claimed) or (plain and direction(claim))
    if changes and not direction(said):
        found = replace(found, voids=(*found.voids, Objection(ObjectionKind.NO_CHANGE)))
    cells = [(column, drop_numbers(value)) for column, value in _read_meant(row, terms)]
    told = _compare_figures(claimed, cells, _find_named_figures(row, terms))
    if any(outcome == "absent" and _find_alike(figure, cells) for figure, outcome in zip(claimed, told, strict=True)):
        found = replace(found, voids=(*found.voids, Objection(ObjectionKind.NUMBER_MISSING)))
    if claimed and found.conflicts and not _find_named_figures(row, terms):
        # Another table may have the figure in a column of its own.
        found = replace(found, conflicts=drop_kind(found.conflicts, ObjectionKind.OTHER_NUMBER))
    if "differs" in told:
        others = drop_kind(found.conflicts, ObjectionKind.OTHER_NUMBER)
        conflicts = (*others, Objection(ObjectionKind.OTHER_NUMBER))
        return replace(_drop_missing_number(found), conflicts=conflicts)
    return _drop_missing_number(found) if claimed and set(told) == {"same"} else found


def _find_numbered_names(row: Quote) -> list[str]:
    """Return the label of a row, and the names with a number in its other cells: TideLogger 4."""
    cells = [value for _, value in named_cells(row.text, row.head.text if row.head else "")]
    told = [name for value in cells if not is_figure(value) and not is_prose(value) for name in find_numbered(value)]
    return list(dict.fromkeys((label(row), *told)))


def _drop_word_order(
    found: Findings, claim: str, claimed: Sequence[Quantity], row: Quote, terms: AbstractSet[str]
) -> Findings:
    """Return the findings without those from word order, which means nothing between cells."""
    values = [value for _, value in _read_meant(row, terms)]
    conflicts, voids = found.conflicts, found.voids
    if not any(is_turned_round(claim, value) for value in values):
        conflicts = drop_kind(conflicts, ObjectionKind.TURNED_ROUND)
    named = _find_named_figures(row, terms)
    is_elsewhere = has_kind(conflicts, {ObjectionKind.NUMBER_OF_ANOTHER})
    if is_elsewhere and not any(is_prose(value) and is_misbound(claim, value) for value in values):
        if not named:
            voids = (*voids, _ELSEWHERE)
        if not named or all(_fits_column(quantity, named) for quantity in claimed):
            conflicts = drop_kind(conflicts, ObjectionKind.NUMBER_OF_ANOTHER)
    return replace(found, conflicts=conflicts, voids=voids)


def _says_otherwise(row: Quote, terms: AbstractSet[str]) -> bool:
    """Return whether no column that the claim names holds a word of it, apart from the row's own label."""
    first, *_ = _spell_units(row).values()
    own = terms - set(analyze(first[1]))
    values = [cell[1] for cell in _read_named(row, terms) if cell != first]
    return bool(values) and not any(
        is_prose(value) or value.lower() in _YES or own & set(analyze(value)) for value in values
    )


def _is_denied(row: Quote, terms: AbstractSet[str]) -> bool:
    """Return whether the one column that a claim names, apart from the row's own label, says no."""
    first, *_ = _spell_units(row).values()
    values = [value.lower() for name, value in _read_named(row, terms) if (name, value) != first]
    return len(values) == 1 and values[0] in _NO


def _find_named_figures(row: Quote, terms: AbstractSet[str]) -> list[Cell]:
    return [cell for cell in _read_named(row, terms) if is_figure(cell[1]) or _tells_period(cell[1])]


def _tells_period(value: str) -> bool:
    return not is_prose(value) and any(quantity.is_period for quantity in find_quantities(value))


def is_stated_by(row: Quote, claim: str, said: str) -> bool:
    """Return whether a row and its headings hold all words of a claim, or of the claim in the row's figures."""
    above = f"{row.hit.title}\n{row.hit.section}\n{caption(row.head) if row.head else ''}"
    known = set(analyze(f"{row_statement(row, frozenset(analyze_query(claim)))}\n{above}"))
    return any(known.issuperset(analyze_query(words)) for words in (claim, said))


def _drop_missing_number(found: Findings) -> Findings:
    return replace(
        found,
        gaps=drop_kind(found.gaps, ObjectionKind.NUMBER_MISSING),
        voids=drop_kind(found.voids, ObjectionKind.NUMBER_MISSING),
    )


def _compare_figures(claimed: Sequence[Quantity], cells: Sequence[Cell], named: Sequence[Cell]) -> list[Outcome]:
    """Return what a row says of each figure: another one only in the one column that the claim names."""
    bound = [any(_fits(quantity, cell) for cell in named) for quantity in claimed]
    # Of what its other cells say nothing is claimed until the column that is named has a figure, too.
    readable = cells if any(bound) or not named else named
    return [_compare_figure(quantity, readable, named) for quantity in claimed]


def _compare_figure(claimed: Quantity, cells: Sequence[Cell], named: Sequence[Cell]) -> Outcome:
    if any(_fits(claimed, cell) for cell in _find_alike(claimed, cells) or cells):
        return "same"
    if len(named) == 1 and any(_is_rival(claimed, stated) for stated in _quantities(named[0])):
        return "differs"
    return "absent"


def _find_alike(claimed: Quantity, cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells with figures in a unit of the same kind, for a figure with a unit: £36 is no warranty of 36."""
    if not is_measured(claimed):
        return []
    return [cell for cell in cells if any(told.dimension == claimed.dimension for told in _quantities(cell))]


def _fits_column(claimed: Quantity, named: Sequence[Cell]) -> bool:
    """Return whether a figure stands in the column that the word before it names, or in one that the claim names."""
    own = [cell for cell in named if claimed.lead and claimed.lead in analyze(cell[0])]
    return any(_fits(claimed, cell) for cell in own or named)


def _fits(claimed: Quantity, cell: Cell) -> bool:
    return any(claimed.fits(quantity) for quantity in _quantities(cell))


def _quantities(cell: Cell) -> Sequence[Quantity]:
    """Return the figures of a cell, by themselves and of what its column is named after: 120 are 120 employees."""
    name, value = cell
    return [quantity for words in ("", *name.split()) for quantity in find_quantities(f"{value} {words}".strip())]


def _is_rival(claimed: Quantity, stated: Quantity) -> bool:
    return claimed.rivals(stated if claimed.dimension else replace(stated, lead=claimed.lead or stated.lead))
