"""Fewer cases of the vector suites: all of them with one isolation, and with the others those that depend on it.

`RAGSTONE_ISOLATIONS=1 pytest tests/conformance` runs every case with every isolation.
"""

from __future__ import annotations

import pytest
from tests.long_runs import take_rounds

from ragstone.testing.suites.provider_cases import OpensProvider

ALL = take_rounds("RAGSTONE_ISOLATIONS", 0) > 0
DEPENDING = frozenset(
    {
        "test_it_says_what_it_is",
        "test_a_place_may_be_opened_again",
        "test_the_nearest_come_first_with_their_cosine",
        "test_a_point_is_replaced",
        "test_a_place_that_was_never_opened_is_empty",
        "test_every_id_comes_once",
        "test_a_dropped_place_is_empty_and_may_be_used_again",
        "test_a_place_of_another_dimension_is_refused",
        "test_tenants_and_spaces_are_kept_apart",
        "test_the_filter_acts_before_the_cut",
        "test_all_is_there_after_close_and_open",
    }
)


class FewIsolations(OpensProvider):
    """Inherit before the suite: what does not depend on the isolation runs with the last one, where tenants share."""

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "isolation" in metafunc.fixturenames:
            depends = ALL or metafunc.function.__name__ in DEPENDING
            metafunc.parametrize("isolation", self.isolations if depends else self.isolations[-1:])
