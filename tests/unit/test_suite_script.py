"""The groups that all tests are run in."""

from __future__ import annotations

from pathlib import Path

from scripts.suite import list_groups

ROOT = Path(__file__).parents[2]


def is_run(path: Path, arguments: list[str]) -> bool:
    """Return whether pytest runs a file when it is told this."""
    left_out = [argument.removeprefix("--ignore=") for argument in arguments if argument.startswith("--")]
    named = [argument for argument in arguments if not argument.startswith("--")]
    return any(path.is_relative_to(ROOT / name) for name in named) and not any(
        path.is_relative_to(ROOT / name) for name in left_out
    )


def test_every_test_is_in_one_group() -> None:
    groups = list_groups()
    for path in (ROOT / "tests").rglob("test_*.py"):
        assert len([name for name, arguments in groups.items() if is_run(path, arguments)]) == 1, path
