"""Which requirements have a test: `make requirements`.

Reads the ids of docs/reference/requirements.md and the `@pytest.mark.req("R-XXX-NN")` marks of the
tests, without running or importing them. With `--results` (pytest's `--junit-xml`) an id counts only when a test that
carries it passed and none of that test's cases failed.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

_GROUP = re.compile(r"## (\d+) (.+)")
_REQUIREMENT = re.compile(r"- `(R-[A-Z]+-\d+)` ")
_ID = re.compile(r"R-[A-Z]+-\d+")


@dataclass(frozen=True)
class Group:
    """A numbered heading of the requirements and the ids under it."""

    number: int
    title: str
    ids: tuple[str, ...]


@dataclass(frozen=True)
class Mark:
    """An id on a test: which one, and where it is written."""

    requirement: str
    test: str
    place: str


class Problem(Exception):
    """Something in the requirements, the tests or the results that has to be put right."""


def read_groups(document: Path) -> list[Group]:
    """The groups in order; an id that stands twice is a problem."""
    groups: list[Group] = []
    ids: list[str] = []
    seen: set[str] = set()
    for line in document.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            ids = []
            if heading := _GROUP.fullmatch(line.strip()):
                groups.append(Group(int(heading[1]), heading[2], ()))
        elif (entry := _REQUIREMENT.match(line)) and groups:
            if entry[1] in seen:
                raise Problem(f"{document}: {entry[1]} stands twice")
            seen.add(entry[1])
            ids.append(entry[1])
            groups[-1] = Group(groups[-1].number, groups[-1].title, tuple(ids))
    if not seen:
        raise Problem(f"{document} holds no requirement")
    return groups


def read_marks(tests: Path) -> list[Mark]:
    """Every mark in every file under the folder."""
    return [mark for path in sorted(tests.rglob("*.py")) for mark in _marks_of_file(path, tests)]


def read_passed(results: Path) -> set[str]:
    """The tests that passed: at least one case did, and none failed."""
    passed: set[str] = set()
    failed: set[str] = set()
    # The file is one that pytest wrote on this machine a moment ago, not one that came from outside.
    for case in ET.parse(results).iter("testcase"):
        test = f"{case.get('classname', '')}.{case.get('name', '').partition('[')[0]}"
        outcomes = {child.tag for child in case}
        if outcomes & {"failure", "error"}:
            failed.add(test)
        elif "skipped" not in outcomes:
            passed.add(test)
    return passed - failed


def covered_ids(marks: Sequence[Mark], passed: set[str] | None) -> set[str]:
    """The ids that count: all that are marked, or those on a test that passed."""
    return {mark.requirement for mark in marks if passed is None or mark.test in passed}


def _marks_of_file(path: Path, tests: Path) -> Iterator[Mark]:
    text = path.read_text(encoding="utf-8")
    if ".req(" not in text:  # most files: parsing them takes most of the time
        return
    tree = ast.parse(text, str(path))
    module = ".".join(path.relative_to(tests.parent).with_suffix("").parts)
    placed: set[ast.Call] = set()
    for test, calls in _marked_tests(tree.body, module, []):
        for call in calls:
            placed.add(call)
            for requirement in _literal_ids(call, path):
                yield Mark(requirement, test, f"{path}:{call.lineno}")
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_mark(node) and node not in placed:
            raise Problem(f"{path}:{node.lineno}: a req mark must decorate a test or stand in pytestmark")


def _marked_tests(
    body: Sequence[ast.stmt], scope: str, inherited: list[ast.Call]
) -> Iterator[tuple[str, list[ast.Call]]]:
    here = inherited + [call for node in body if _is_pytestmark(node) for call in _calls(node)]
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            own = [call for decorator in node.decorator_list for call in _calls(decorator)]
            yield f"{scope}.{node.name}", here + own
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            own = [call for decorator in node.decorator_list for call in _calls(decorator)]
            yield from _marked_tests(node.body, f"{scope}.{node.name}", here + own)


def _is_pytestmark(node: ast.stmt) -> bool:
    match node:
        case ast.Assign(targets=[ast.Name(id="pytestmark")]):
            return True
        case ast.AnnAssign(target=ast.Name(id="pytestmark")):
            return True
    return False


def _calls(node: ast.AST) -> list[ast.Call]:
    return [found for found in ast.walk(node) if isinstance(found, ast.Call) and _is_mark(found)]


def _is_mark(call: ast.Call) -> bool:
    match call.func:
        case ast.Attribute(attr="req", value=ast.Attribute(attr="mark")):
            return True
        case ast.Attribute(attr="req", value=ast.Name(id="mark")):
            return True
    return False


def _literal_ids(call: ast.Call, path: Path) -> list[str]:
    ids = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
    literal = [value for value in ids if isinstance(value, str) and _ID.fullmatch(value)]
    if not literal or len(literal) != len(call.args) or call.keywords:
        raise Problem(f'{path}:{call.lineno}: a req mark takes ids written out, such as "R-EVL-25"')
    return literal


def _as_json(groups: Sequence[Group], covered: set[str]) -> str:
    listed = [
        {
            "number": group.number,
            "title": group.title,
            "total": len(group.ids),
            "covered": len(covered.intersection(group.ids)),
            "missing": [requirement for requirement in group.ids if requirement not in covered],
        }
        for group in groups
    ]
    total = sum(len(group.ids) for group in groups)
    return json.dumps({"total": total, "covered": len(covered), "groups": listed}, indent=2)


def _as_text(groups: Sequence[Group], covered: set[str], *, missing: bool) -> str:
    width = max(len(group.title) for group in groups)
    lines = []
    for group in groups:
        done = len(covered.intersection(group.ids))
        lines.append(f"{group.number:>2} {group.title:<{width}} {done:>3} of {len(group.ids):>3}")
        rest = " ".join(requirement for requirement in group.ids if requirement not in covered)
        if missing and rest:
            lines.append(
                textwrap.fill(rest, 100, initial_indent="     ", subsequent_indent="     ", break_on_hyphens=False)
            )
    total = sum(len(group.ids) for group in groups)
    lines.append(f"   {'all':<{width}} {len(covered):>3} of {total:>3}")
    return "\n".join(lines)


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    root = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description="Which requirements have a test.")
    parser.add_argument(
        "--document", type=Path, default=root / "docs" / "reference" / "requirements.md", help="the requirements"
    )
    parser.add_argument("--tests", type=Path, default=root / "tests", help="the folder with the tests")
    parser.add_argument(
        "--results", type=Path, nargs="+", help="junit xml of a run, or several: only passing tests count"
    )
    parser.add_argument("--missing", action="store_true", help="list the ids without a test")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--check", action="store_true", help="print nothing unless a mark is wrong")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the coverage; 1 when a mark names an id that does not exist."""
    options = _arguments(arguments)
    try:
        groups = read_groups(options.document)
        marks = read_marks(options.tests)
        passed = {test for path in options.results for test in read_passed(path)} if options.results else None
    except (Problem, OSError, SyntaxError, ET.ParseError) as error:
        print(error, file=sys.stderr)
        return 1
    known = {requirement for group in groups for requirement in group.ids}
    unknown = [mark for mark in marks if mark.requirement not in known]
    for mark in unknown:
        print(f"{mark.place}: {mark.requirement} is not in {options.document}", file=sys.stderr)
    covered = covered_ids(marks, passed) & known
    if options.json:
        print(_as_json(groups, covered))
    elif not options.check:
        print(_as_text(groups, covered, missing=options.missing))
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
