from __future__ import annotations

import ast
from pathlib import Path

import pytest
from scripts import mutants
from scripts.mutants import PARTS, Case, draw_sample, find_cases
from scripts.mutate import apply_mutant, find_mutants

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("source", "changed"),
    [
        ("x = a < b", {"x = a <= b"}),
        ("x = a in b", {"x = a not in b"}),
        ("x = a and b", {"x = a or b"}),
        ("x = not a", {"x = a"}),
        ("x = a if b else c", {"x = c if b else a"}),
        ("x = a + b", {"x = a - b"}),
        ("x = a + 'text'", set()),
        ("x = True", {"x = False"}),
        ("x = 4", {"x = 5"}),
        ("x = 'text'", set()),
        ("def f():\n    return a", {"def f():\n    return None"}),
        ("def f():\n    return None", set()),
        ("if a:\n    f()", {"if not a:\n    f()", "if a:\n    pass"}),
        ("raise E(a)", {"pass"}),
        ("logger.info('said', 4)", set()),
        ("x: Field(ge=1) = a", set()),
        ("@cache(4)\ndef f():\n    pass", set()),
        ("if TYPE_CHECKING:\n    x = 1", set()),
        ("x = f'{4}'", set()),
    ],
)
def test_changes_of_code(source: str, changed: set[str]) -> None:
    assert {ast.unparse(apply_mutant(source, mutant)) for mutant in find_mutants(source)} == changed


def test_a_sample_is_the_same_every_time_and_has_its_share_of_every_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    cases = find_cases(list(PARTS))
    sample = draw_sample(cases, 100)
    assert sample == draw_sample(cases, 100)
    assert {case.part for case in sample} == set(PARTS)
    assert 95 <= len(set(sample)) <= 105
    assert draw_sample(cases[:5], 100) == cases[:5]


def test_a_mutant_is_killed_when_its_tests_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [Case("gate", "a.py", mutant) for mutant in find_mutants("x = 1 < 2")]
    ends = iter([(1, 0), (2, 256), (3, 9)])
    started = iter((1, 2, 3))
    monkeypatch.setattr(mutants, "run_case", lambda case, part: next(started))
    monkeypatch.setattr("os.wait", lambda: next(ends))
    killed = mutants.run_all(cases, 1, float("inf"))
    assert [killed[case] for case in cases] == [False, True, True]
    assert mutants.run_all(cases, 1, 0.0) == {}


def test_the_files_of_every_part_exist() -> None:
    modules = [ROOT / mutants.SOURCE / module for part in PARTS.values() for module in part.modules]
    tests = [ROOT / test for part in PARTS.values() for test in part.tests]
    assert [path for path in (*modules, *tests) if not path.exists()] == []
