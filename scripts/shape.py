"""Print the shape of `src`: sizes, names, docstrings, layers, and the modules that one document and one question pass.

`--check` fails where a rule of CONTRIBUTING.md is broken; `--src` measures another checkout of Ragstone.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST_FILES = 25
MOST_FILE_LINES = 450
MOST_PARTICIPLES = 0.01
SLICE_LINES = 70
OPENINGS = re.compile(r"(What|Whether|Who|Whoever|Whom|Whose|How|Where)\b")
IRREGULAR = re.compile(
    "begun|borne|bought|bound|brought|built|caught|chosen|done|drawn|driven|fallen|felt|found|frozen|given|gone|grown|"
    "heard|held|hidden|kept|known|laid|learnt|led|left|lent|lost|made|meant|met|paid|rewritten|risen|said|seen|sent|"
    "shown|shut|sought|spent|spoken|standing|stood|struck|taken|taught|thought|told|torn|understood|undone|unread|"
    "woken|won|worn|woven|written"
)
IMPERATIVE = re.compile("bleed|breed|embed|exceed|feed|need|proceed|reembed|seed|shed|speed|succeed|weed")
PROTOCOL_FAMILIES = ("stores/vectors/", "stores/lexical/", "serve/mcp", "testing/")


@dataclass
class Shape:
    """Counts over the source files below one folder."""

    files: int = 0
    lines: int = 0
    function_lines: list[int] = field(default_factory=list)
    participles: list[str] = field(default_factory=list)
    docstrings: int = 0
    openings: list[str] = field(default_factory=list)
    classes: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    folders: Counter[str] = field(default_factory=Counter)
    long_files: list[str] = field(default_factory=list)
    slices: list[str] = field(default_factory=list)
    """Short modules that only one other imports: most likely a part of it that was cut off."""

    @property
    def participle_share(self) -> float:
        return len(self.participles) / max(1, len(self.function_lines))

    @property
    def shared_class_names(self) -> dict[str, list[str]]:
        """Return the class names that are defined in more than one module, with those modules."""
        return {name: homes for name, homes in sorted(self.classes.items()) if len(homes) > 1}

    @property
    def crowded_folders(self) -> list[str]:
        return [f"{folder} ({count})" for folder, count in self.folders.most_common() if count > MOST_FILES]


def measure(package: Path) -> Shape:
    """Return the counts over all modules of a package."""
    shape = Shape()
    importers: dict[str, set[str]] = defaultdict(set)
    short: list[str] = []
    for path in sorted(package.rglob("*.py")):
        text = path.read_text("utf-8")
        name = path.relative_to(package.parent).as_posix()
        shape.files += 1
        lines = text.count("\n")
        shape.lines += lines
        if lines > MOST_FILE_LINES:
            shape.long_files.append(f"{name} ({lines})")
        shape.folders[path.parent.relative_to(package.parent).as_posix()] += 1
        tree = ast.parse(text)
        _measure_module(shape, name, tree)
        if lines < SLICE_LINES and path.stem != "__init__":
            short.append(name)
        for module in imported_modules(tree):
            importers[module].add(name)
    shape.slices = [name for name in short if len(importers[name.removesuffix(".py").replace("/", ".")]) == 1]
    return shape


def imported_modules(tree: ast.Module) -> Iterator[str]:
    """Yield what a module imports: the modules themselves, and names in them as if they were modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def _measure_module(shape: Shape, name: str, tree: ast.Module) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            shape.function_lines.append((node.end_lineno or node.lineno) - node.lineno + 1)
            if is_participle(node.name):
                shape.participles.append(f"{name}:{node.lineno} {node.name}")
        # Of modules, classes and functions, and of the fields and constants that a string stands under.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            docstring = node.value.value.strip()
            shape.docstrings += 1
            if OPENINGS.match(docstring):
                shape.openings.append(f"{name}:{node.lineno} {docstring.splitlines()[0]}")
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            shape.classes[node.name].append(name)


def is_participle(name: str) -> bool:
    """Return whether a function is named by a bare participle, such as `told` or `_opened`."""
    word = name.strip("_")
    if "_" in word or IMPERATIVE.fullmatch(word):
        return False
    return IRREGULAR.fullmatch(word) is not None or (word.endswith("ed") and len(word) > 3)


PASSES = """
import sys
import threading
from pathlib import Path

package, folder = sys.argv[1], Path(sys.argv[2])
executed = set()


def watch(frame, event, argument):
    code = frame.f_code
    # Bodies of modules and classes run once, on import; only functions have optimized locals.
    if event != "call" or not code.co_flags & 1 or not code.co_filename.startswith(package):
        return
    outer = frame.f_back
    while outer is not None:
        if outer.f_code.co_name == "<module>" and outer.f_code.co_filename.startswith(package):
            return
        outer = outer.f_back
    executed.add(code.co_filename[len(package) + 1 :])


threading.setprofile(watch)
sys.setprofile(watch)
from ragstone import Ragstone

PAGES = (
    "# Ferry\\n\\nThe ferry to Gull Island leaves at 7:40 from pier two.\\n",
    "# Dogs\\n\\nDogs travel free of charge on every boat of the line.\\n",
    "# Lockers\\n\\nSuitcases go into the lockers behind the ticket hall.\\n",
    "# Breakfast\\n\\nThe cook serves porridge until half past ten.\\n",
)
QUESTIONS = (
    "When does the ferry leave?", "What do dogs pay?", "Where do suitcases go?", "Until when is porridge served?"
)
for number, page in enumerate(PAGES):
    (folder / f"{number}.md").write_text(page)
with Ragstone(data_dir=folder / "data") as stone:
    for name, step in (
        ("document", lambda number: stone.ingest(folder / f"{number}.md")),
        ("question", lambda number: stone.ask(QUESTIONS[number])),
    ):
        step(0)  # the first also loads the model and creates the tenant's file
        runs = []
        for number in (1, 2, 3):
            executed.clear()
            step(number)
            runs.append(set(executed))
        # What only some of them pass is work in the background, such as writing the log of searches.
        for module in sorted(set.intersection(*runs)):
            print(name, module)
"""


def count_modules(source: Path) -> dict[str, list[str]]:
    """Return the modules with an executed frame while one document is ingested and one question is asked."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": str(source)}
        package = str(source / "ragstone")
        run = subprocess.run(
            [sys.executable, "-c", PASSES, package, folder], env=environment, capture_output=True, text=True, check=True
        )
    passes: dict[str, list[str]] = {"document": [], "question": []}
    for line in run.stdout.splitlines():
        kind, _, module = line.partition(" ")
        if kind in passes:
            passes[kind].append(module)
    return passes


def print_shape(shape: Shape, passes: dict[str, list[str]]) -> None:
    """Print the table of counts."""
    largest = ", ".join(str(count) for _, count in shape.folders.most_common(5))
    rows = {
        "files / lines": f"{shape.files} / {shape.lines:,}",
        "median function, lines": f"{statistics.median(shape.function_lines):.0f}",
        "functions named by a participle": f"{len(shape.participles)} ({shape.participle_share:.1%})",
        "docstrings opening What / Whether / Who / How": f"{len(shape.openings)}",
        "class names with two meanings": f"{len(shape.shared_class_names)}",
        "most files in one folder": largest,
        "files over 450 lines": f"{len(shape.long_files)}",
        "files under 70 lines with one importer": f"{len(shape.slices)}",
        "modules passed by a document / a question": f"{len(passes['document'])} / {len(passes['question'])}",
    }
    for name, value in rows.items():
        print(f"{name:<48}{value}")


def broken_rules(shape: Shape) -> Iterator[str]:
    """Yield a line for each broken rule that a program can check."""
    for folder in shape.crowded_folders:
        yield f"{folder}: more than {MOST_FILES} files in one folder"
    for file in shape.long_files:
        yield f"{file}: more than {MOST_FILE_LINES} lines"
    for place in shape.openings:
        yield f"{place}: say what is done or returned instead"
    for name, homes in shape.shared_class_names.items():
        if not _is_protocol_family(homes):
            yield f"class {name} has several meanings: {', '.join(homes)}"
    if shape.participle_share > MOST_PARTICIPLES:
        for place in shape.participles:
            yield f"{place}: name functions by a verb"


def _is_protocol_family(homes: list[str]) -> bool:
    return any(all(family in home for home in homes) for family in PROTOCOL_FAMILIES)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail where a rule is broken")
    parser.add_argument("--list", action="store_true", help="name each place and each module")
    parser.add_argument("--src", type=Path, default=ROOT / "src", help="the source folder to measure")
    arguments = parser.parse_args()
    shape = measure(arguments.src / "ragstone")
    if arguments.check:
        problems = list(broken_rules(shape))
        print("\n".join(problems))
        return bool(problems)
    passes = count_modules(arguments.src.resolve())
    print_shape(shape, passes)
    if arguments.list:
        for place in (*shape.participles, *shape.openings):
            print(place)
        for name, homes in shape.shared_class_names.items():
            print(f"class {name}: {', '.join(homes)}")
        print(f"files under 70 lines with one importer: {' '.join(shape.slices)}")
        for kind, modules in passes.items():
            print(f"{kind}: {' '.join(modules)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
