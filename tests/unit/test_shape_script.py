"""The script that measures the shape of the source."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts.shape import broken_rules, is_participle, measure


@pytest.mark.parametrize("name", ["told", "_opened", "kept", "__closed"])
def test_bare_participles_are_found(name: str) -> None:
    assert is_participle(name)


@pytest.mark.parametrize("name", ["embed", "read", "is_closed", "load_chunks", "feed", "closed_at"])
def test_verbs_and_phrases_are_not_participles(name: str) -> None:
    assert not is_participle(name)


def test_each_broken_rule_is_named(tmp_path: Path) -> None:
    package = tmp_path / "src" / "sample"
    package.mkdir(parents=True)
    (package / "a.py").write_text(
        '"""Whether it rains."""\n\n\nclass Page:\n    pass\n\n\ndef told(): ...\n\n\nMOST = 3\n"""How many."""\n'
    )
    (package / "b.py").write_text("class Page:\n    pass\n" + "\n" * 450)
    for number in range(26):
        (package / f"many{number}.py").write_text("")
    problems = list(broken_rules(measure(package)))
    assert problems == [
        "sample (28): more than 25 files in one folder",
        "sample/b.py (452): more than 450 lines",
        "sample/a.py:1 Whether it rains.: say what is done or returned instead",
        "sample/a.py:12 How many.: say what is done or returned instead",
        "class Page has several meanings: sample/a.py, sample/b.py",
        "sample/a.py:8 told: name functions by a verb",
    ]


def test_a_tidy_package_breaks_no_rule(tmp_path: Path) -> None:
    package = tmp_path / "sample"
    package.mkdir()
    (package / "a.py").write_text('"""Weather."""\n\n\ndef load_forecast():\n    """Return the forecast."""\n')
    assert list(broken_rules(measure(package))) == []


def test_a_short_file_with_one_importer_counts_as_a_slice_of_it(tmp_path: Path) -> None:
    package = tmp_path / "sample"
    package.mkdir()
    (package / "whole.py").write_text("from sample import cut\nfrom sample.shared import page\nimport sample.long\n")
    (package / "other.py").write_text("from sample.shared import page\n")
    (package / "cut.py").write_text("")
    (package / "shared.py").write_text("page = 1\n")
    (package / "long.py").write_text("\n" * 70)
    assert measure(package).slices == ["sample/cut.py"]
