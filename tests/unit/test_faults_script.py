from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from scripts import faults
from scripts.faults import FAULTS, Fault, main, read_result

PASSED = """<testsuites><testsuite time="3.5">
<testcase name="a"><properties>
<property name="injected" value="40"/><property name="noted" value="none lost"/>
</properties></testcase>
<testcase name="b"/><testcase name="c"><skipped/></testcase>
</testsuite></testsuites>"""
FAILED = PASSED.replace('<testcase name="b"/>', '<testcase name="b"><failure/></testcase>')


def run_main(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, results: str, wanted: int) -> tuple[int, str]:
    """Run the script with one fault, whose tests leave these results."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    monkeypatch.setattr(faults, "FAULTS", {"kill": Fault("nothing is lost", wanted, "kills", "tests/none.py")})
    monkeypatch.setattr(faults, "current_commit", lambda: "abc")
    place = tmp_path / "x.xml"
    place.write_text(results)
    monkeypatch.setattr(faults, "run_fault", lambda *_: read_result(place, "abc"))
    return main([]), (tmp_path / faults.PAGE).read_text()


def test_recorded_numbers_count_and_a_case_without_one_counts_once(tmp_path: Path) -> None:
    place = tmp_path / "x.xml"
    place.write_text(PASSED)
    result = read_result(place)
    assert (result.injected, result.failed, result.noted, result.seconds) == (41, (), ("none lost",), 4)


@pytest.mark.parametrize(
    ("results", "wanted", "code", "shown"),
    [
        (PASSED, 41, 0, "| 41 kills | 41 | 0 failures | none lost |"),
        (PASSED, 42, 1, "| 41 kills | 42 | **failed**: too few were injected |"),
        (FAILED, 1, 1, "| 40 kills | 1 | **failed**: 1 (`b`) |"),
    ],
)
def test_a_row_that_is_not_met_is_shown_as_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, results: str, wanted: int, code: int, shown: str
) -> None:
    ended, page = run_main(tmp_path, monkeypatch, results, wanted)
    assert ended == code
    assert shown in page


def test_a_run_of_some_rows_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_main(tmp_path, monkeypatch, PASSED, 41)
    monkeypatch.setattr(faults, "FAULTS", faults.FAULTS | {"other": Fault("another", 41, "kills", "tests/none.py")})
    assert main(["other"]) == 0
    assert (tmp_path / faults.PAGE).read_text().count("0 failures") == 2


@pytest.mark.parametrize("left", ["", PASSED], ids=["nothing", "some"])
def test_a_run_that_does_not_end_well_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: str) -> None:
    monkeypatch.chdir(tmp_path)
    faults.RESULTS.mkdir(parents=True)

    def crash(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        if left:
            (faults.RESULTS / "kill.xml").write_text(left)
        return subprocess.CompletedProcess(command, 4)

    monkeypatch.setattr("scripts.faults.subprocess.run", crash)
    result = faults.run_fault("kill", Fault("nothing is lost", 1, "kills", "tests/none.py"), "abc")
    assert (result.failed, result.commit) == (("a run without results",), "abc")


def test_the_tests_of_every_row_exist() -> None:
    root = Path(__file__).parents[2]
    for path, _, name in (test.partition("::") for fault in FAULTS.values() for test in fault.tests.split()):
        assert f"def {name}(" in (root / path).read_text() if name else (root / path).exists()
