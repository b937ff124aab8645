from __future__ import annotations

import json
from pathlib import Path

import pytest
from scripts.requirements import main

REQUIREMENTS = """# Requirements
- `R-OLD-01` stands before any group and is none.
## 1 Storage & search
- `R-STO-01` First.
- `R-STO-02` Second, see `R-ANS-01`.
## 2 Answers
- `R-ANS-01` Third.
## Conflicts
"""

TESTS = """
import pytest
from pytest import mark

pytestmark = {module}

@pytest.mark.req("R-STO-01")
async def test_function(): ...

@pytest.mark.parametrize("n", [pytest.param(1, marks=mark.req("R-STO-02")), 2])
def test_cases(n): ...

@pytest.mark.req("R-ANS-01")
class TestClass:
    def test_inside(self): ...
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "requirements.md").write_text(REQUIREMENTS)
    (tmp_path / "tests" / "unit").mkdir(parents=True)
    _write_tests(tmp_path, TESTS.format(module="[]"))
    return tmp_path


def _write_tests(project: Path, source: str) -> None:
    (project / "tests" / "unit" / "test_it.py").write_text(source)


def _run(project: Path, *options: str) -> int:
    return main(["--document", str(project / "requirements.md"), "--tests", str(project / "tests"), *options])


def _results(project: Path, **outcomes: str) -> str:
    cases = "".join(
        f'<testcase classname="tests.unit.test_it" name="{name}">{outcome}</testcase>'
        for name, outcome in {"test_function": "", **outcomes}.items()
    )
    path = project / "results.xml"
    path.write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    return str(path)


def _covered(project: Path, capsys: pytest.CaptureFixture[str], *options: str) -> list[int]:
    assert _run(project, "--json", *options) == 0
    return [group["covered"] for group in json.loads(capsys.readouterr().out)["groups"]]


def test_marks_on_functions_cases_and_classes_count(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(project) == 0
    assert capsys.readouterr().out.splitlines() == [
        " 1 Storage & search   2 of   2",
        " 2 Answers            1 of   1",
        "   all                3 of   3",
    ]


@pytest.mark.parametrize("module", ['pytest.mark.req("R-STO-02")', '[mark.slow, mark.req("R-STO-02")]'])
def test_marks_of_a_module_count_for_each_of_its_tests(
    project: Path, capsys: pytest.CaptureFixture[str], module: str
) -> None:
    _write_tests(project, f"import pytest\nfrom pytest import mark\npytestmark = {module}\ndef test_a(): ...\n")
    assert _covered(project, capsys) == [1, 0]


def test_a_module_mark_without_a_test_counts_for_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write_tests(project, 'import pytest\nlater = pytest.mark.req("R-STO-02")\n')
    assert _run(project) == 1
    assert "test_it.py:2: a req mark must decorate a test or stand in pytestmark" in capsys.readouterr().err


def test_missing_ids_are_listed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write_tests(project, "")
    assert _run(project, "--missing") == 0
    assert capsys.readouterr().out.splitlines() == [
        " 1 Storage & search   0 of   2",
        "     R-STO-01 R-STO-02",
        " 2 Answers            0 of   1",
        "     R-ANS-01",
        "   all                0 of   3",
    ]


def test_json(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write_tests(project, 'import pytest\n@pytest.mark.req("R-STO-02")\ndef test_a(): ...\n')
    assert _run(project, "--json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "total": 3,
        "covered": 1,
        "groups": [
            {"number": 1, "title": "Storage & search", "total": 2, "covered": 1, "missing": ["R-STO-01"]},
            {"number": 2, "title": "Answers", "total": 1, "covered": 0, "missing": ["R-ANS-01"]},
        ],
    }


@pytest.mark.parametrize(
    ("outcomes", "covered"),
    [
        ({}, [1, 0]),
        ({"test_cases[1]": "", "test_cases[2]": ""}, [2, 0]),
        ({"test_cases[1]": "", "test_cases[2]": "<failure/>"}, [1, 0]),
        ({"test_cases[1]": "", "test_cases[2]": "<skipped/>"}, [2, 0]),
        ({"test_cases[1]": "<skipped/>"}, [1, 0]),
        ({"test_cases[1]": "<error/>"}, [1, 0]),
    ],
    ids=["not run", "passed", "one case failed", "one case skipped", "skipped", "error"],
)
def test_with_results_only_passing_tests_count(
    project: Path, capsys: pytest.CaptureFixture[str], outcomes: dict[str, str], covered: list[int]
) -> None:
    assert _covered(project, capsys, "--results", _results(project, **outcomes)) == covered


def test_with_results_a_test_of_a_class_is_found(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = project / "results.xml"
    path.write_text('<testsuite><testcase classname="tests.unit.test_it.TestClass" name="test_inside"/></testsuite>')
    assert _covered(project, capsys, "--results", str(path)) == [0, 1]


def test_an_unknown_id_fails_and_says_where(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write_tests(project, 'import pytest\n@pytest.mark.req("R-STO-01", "R-STO-99")\ndef test_a(): ...\n')
    assert _run(project, "--check") == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "test_it.py:2: R-STO-99 is not in" in printed.err


@pytest.mark.parametrize("arguments", ["", "*IDS", "'R-STO-1x'", "ids=['R-STO-01']", "'R-STO-01', ID"])
def test_ids_must_be_written_out(project: Path, capsys: pytest.CaptureFixture[str], arguments: str) -> None:
    _write_tests(project, f"import pytest\n@pytest.mark.req({arguments})\ndef test_a(): ...\n")
    assert _run(project) == 1
    assert "a req mark takes ids written out" in capsys.readouterr().err


def test_an_id_that_stands_twice_is_a_problem(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "requirements.md").write_text(REQUIREMENTS + "## 3 Again\n- `R-STO-01` Copy.\n")
    assert _run(project) == 1
    assert "R-STO-01 stands twice" in capsys.readouterr().err


def test_a_missing_results_file_is_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(project, "--results", str(project / "none.xml")) == 1
    assert "none.xml" in capsys.readouterr().err


def test_the_marks_of_this_project_are_valid(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0
    assert capsys.readouterr().err == ""
