"""The shipped suites against the stores in the box."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conformance.suites.ledgers import LedgerSuite

from ragstone.core.ledger import Ledger
from ragstone.core.protocols import LexicalIndex, VectorIndex
from ragstone.stores.indexes import IndexCache
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.lexical.sqlite import Fts5Writer, SqliteLexicalIndex
from ragstone.stores.vectors.sqlite import SqliteVectorIndex
from ragstone.testing.suites.lexical import WordWeightSuite
from ragstone.testing.suites.vectors import VectorSuite


def open_ledger(folder: Path) -> SqliteLedger:
    return SqliteLedger(folder, [Fts5Writer()])


class TestSqliteLedger(LedgerSuite):
    async def open(self, folder: Path) -> Ledger:
        return open_ledger(folder)

    @pytest.mark.req("R-DOM-43", "R-CHK-16", "R-ING-41")
    async def test_what_was_put_is_read_back(self, ledger: Ledger) -> None:
        await super().test_what_was_put_is_read_back(ledger)

    @pytest.mark.req("R-SEC-11")
    async def test_nothing_of_a_deleted_document_remains(self, ledger: Ledger) -> None:
        await super().test_nothing_of_a_deleted_document_remains(ledger)

    @pytest.mark.req("R-REL-14")
    async def test_two_tenants_never_see_each_other(self, ledger: Ledger) -> None:
        await super().test_two_tenants_never_see_each_other(ledger)

    @pytest.mark.req("R-TEN-16")
    async def test_a_name_that_is_unsafe_in_a_path_is_refused(self, ledger: Ledger) -> None:
        await super().test_a_name_that_is_unsafe_in_a_path_is_refused(ledger)

    @pytest.mark.req("R-STO-25")
    async def test_stats_count_live_content_only(self, ledger: Ledger) -> None:
        await super().test_stats_count_live_content_only(ledger)

    @pytest.mark.req("R-DOM-35")
    async def test_known_vectors_are_those_of_equal_text(self, ledger: Ledger) -> None:
        await super().test_known_vectors_are_those_of_equal_text(ledger)


class TestSqliteVectorIndex(VectorSuite):
    async def open(self, folder: Path) -> tuple[Ledger, VectorIndex]:
        ledger = open_ledger(folder)
        return ledger, SqliteVectorIndex(ledger, IndexCache(64))

    @pytest.mark.req("R-STO-13")
    async def test_the_nearest_come_in_order(self, stores: tuple[Ledger, VectorIndex]) -> None:
        await super().test_the_nearest_come_in_order(stores)

    @pytest.mark.req("R-STO-31")
    async def test_the_filter_acts_before_the_cut(self, stores: tuple[Ledger, VectorIndex]) -> None:
        await super().test_the_filter_acts_before_the_cut(stores)

    @pytest.mark.req("R-REL-14", "R-TST-52")
    async def test_tenants_and_kbs_are_searched_apart(self, stores: tuple[Ledger, VectorIndex]) -> None:
        await super().test_tenants_and_kbs_are_searched_apart(stores)


class TestSqliteLexicalIndex(WordWeightSuite):
    async def open(self, folder: Path) -> tuple[Ledger, LexicalIndex]:
        ledger = open_ledger(folder)
        return ledger, SqliteLexicalIndex(ledger, IndexCache(64))

    @pytest.mark.req("R-STO-35")
    async def test_any_term_is_enough(self, stores: tuple[Ledger, LexicalIndex]) -> None:
        await super().test_any_term_is_enough(stores)

    @pytest.mark.req("R-HYB-17")
    async def test_identifiers_are_found_whole_and_by_part(self, stores: tuple[Ledger, LexicalIndex]) -> None:
        await super().test_identifiers_are_found_whole_and_by_part(stores)

    @pytest.mark.req("R-REL-14", "R-TST-52")
    async def test_tenants_are_searched_apart(self, stores: tuple[Ledger, LexicalIndex]) -> None:
        await super().test_tenants_are_searched_apart(stores)
