"""What each rule of the checks is worth: macro-F1 on claims and statements with one rule or file switched off.

A rule is a function of `ragstone.answer.verify` or `ragstone.answer.check`, or one of `ragstone.language` that they
import, that finds or denies something. Switched off, it finds nothing. Searches and vectors are made once, and an item
is checked again only without the rules that found something in it: without any other the outcome is the same. What
the rules for other languages than English are for, no labelled item here shows. Of SciFact, only training claims are
read.
"""

from __future__ import annotations

import asyncio
import inspect
import multiprocessing
import pkgutil
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType, NoneType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from bench.answers.collection import FITTED, LabelledClaim, LabelledStatement, load_collection
from bench.answers.doubles import ScriptedLLM
from bench.answers.grade import words_of
from bench.answers.knowledge import ingest_pages, open_knowledge
from bench.answers.measure import as_hit
from bench.claims import label_of
from bench.claims_data import Claim, read_abstracts, read_claims
from bench.claims_data import as_hit as as_abstract
from ragstone.answer import check as answer_check
from ragstone.answer import verify as rules_package
from ragstone.answer.ask import Judge
from ragstone.answer.check import Checker
from ragstone.answer.compose import Composition, ReplyLimits
from ragstone.answer.pack import pack
from ragstone.answer.verify import ClaimVerifier
from ragstone.answer.verify.objections import Objection
from ragstone.core.model_types import EmbeddingModel, Embeddings, WordTokenizer
from ragstone.core.protocols import Embedder
from ragstone.core.search import SearchQuery, SearchResult
from ragstone.core.types import Hit, Role, Vector
from ragstone.engine.engine import Engine
from ragstone.engine.workspace import Workspace

NO_RULES = ("objections", "pipeline", "reading", "judging", "statements")
"""Modules of the package that combine what rules find."""
SCIFACT_EVERY = 6
"""Of so many training claims of SciFact one is read: with all of them a table would take hours."""
PROCESSES = 2
SUPPORTED = ("SUPPORT", "True")
ERRORS = ("wrongly supported", "wrongly refuted or not supported")
Search = Callable[[str], Awaitable[SearchResult]]
Labels = list[tuple[str, str]]
"""What is true and what was said, for each item."""


@dataclass(frozen=True)
class Rule:
    """A function, and what it returns when it is switched off."""

    function: FunctionType
    off: Callable[..., Any]

    @property
    def name(self) -> str:
        module = self.function.__module__.removeprefix("ragstone.").removeprefix("answer.")
        return f"{module}.{self.function.__name__}"


class RememberingEmbedder:
    """Embeds each text once."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[tuple[Role, str], Vector] = {}

    @property
    def model(self) -> EmbeddingModel:
        return self._embedder.model

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        if missing := [text for text in dict.fromkeys(texts) if (role, text) not in self._known]:
            made = await self._embedder.embed(missing, role)
            self._known |= {(role, text): row for text, row in zip(missing, made.vectors, strict=True)}
        return Embeddings(np.stack([self._known[role, text] for text in texts]), self.model.id)

    async def close(self) -> None:
        """Nothing is held."""


def find_rules() -> list[Rule]:
    """Return every rule that can be switched off."""
    found: dict[FunctionType, Rule] = {}
    for module in _rule_modules():
        for value in vars(module).values():
            function = inspect.unwrap(value) if callable(value) else None
            if not isinstance(function, FunctionType) or not _is_of_rules(function, module):
                continue
            if (off := _switch_off(function)) is not None:
                found.setdefault(value, Rule(value, off))
    return sorted(found.values(), key=lambda rule: rule.name)


def _rule_modules() -> list[ModuleType]:
    names = [module.name for module in pkgutil.iter_modules(rules_package.__path__) if module.name not in NO_RULES]
    return [import_module(f"{rules_package.__name__}.{name}") for name in names] + [answer_check]


def _is_of_rules(function: FunctionType, module: ModuleType) -> bool:
    """Return whether a function is a rule: what only helps one is switched off with it."""
    home = function.__module__
    if home.startswith("ragstone.language.") and home != "ragstone.language.grammar":
        return True
    is_named = not function.__name__.startswith("_") or home.endswith((".check", ".checks"))
    return home == module.__name__ and is_named


def _switch_off(function: FunctionType) -> Callable[..., Any] | None:
    """Return a function that finds nothing, or None where a function only computes something."""
    result = get_type_hints(function).get("return")
    if result is bool:
        return lambda *_, **__: False
    if NoneType in get_args(result):
        return lambda *_, **__: None
    if "" in get_args(result) or (result is str and function.__name__.lstrip("_").startswith("find_")):
        return lambda *_, **__: ""
    if Objection in get_args(result):
        return lambda *_, **__: [] if get_origin(result) is list else ()
    return (lambda claim: [claim]) if function.__name__ == "split_claim" else None


@contextmanager
def switched_off(rules: Sequence[Rule]) -> Iterator[None]:
    """Let rules find nothing within a block."""
    with replaced({id(rule.function): rule.off for rule in rules}):
        yield


@contextmanager
def replaced(others: Mapping[int, Callable[..., Any]]) -> Iterator[None]:
    """Replace functions, by their ids, in every module that has them, and forget what was computed with them."""
    modules = [module for name, module in sys.modules.items() if name.startswith("ragstone.")]
    places = [
        (module, name, value) for module in modules for name, value in vars(module).items() if id(value) in others
    ]
    try:
        for module, name, value in places:
            setattr(module, name, others[id(value)])
        forget()
        yield
    finally:
        for module, name, value in places:
            setattr(module, name, value)
        forget()


def forget() -> None:
    """Clear what the rules have computed before."""
    for module in [module for name, module in sys.modules.items() if name.startswith("ragstone.")]:
        for value in list(vars(module).values()):
            if hasattr(value, "cache_clear") and "answer" in module.__name__ + getattr(value, "__module__", ""):
                value.cache_clear()


def macro_f1(labels: Labels) -> float:
    """Return the mean F1 of the labels that are true of some item."""
    scores = []
    for label in sorted({true for true, _ in labels}):
        both = sum(true == said == label for true, said in labels)
        either = sum(true == label for true, _ in labels) + sum(said == label for _, said in labels)
        scores.append(2 * both / either)
    return float(np.mean(scores)) if scores else 0.0


@dataclass(frozen=True)
class Item:
    """Something to check: its group, what is true of it, and how to find out what is said of it."""

    group: str
    true: str
    check: Callable[[], Awaitable[str]]


@dataclass
class Subjects:
    """What is checked with each set of rules."""

    verifier: ClaimVerifier
    claims: Sequence[tuple[LabelledClaim, Search]]
    statements: Sequence[LabelledStatement]
    scifact: Sequence[tuple[Claim, Sequence[Hit]]]

    def list_items(self) -> list[Item]:
        """Return each claim and statement; a statement is verified, and said by a model."""
        items = []
        for claim, search in self.claims:
            true = "SUPPORT" if claim.is_true else "REFUTE"
            items.append(Item("claims", true, partial(self._label, claim.text, search)))
        for statement in self.statements:
            hit, true = as_hit(statement.document, statement.passage), str(statement.is_true)
            items.append(Item("statements verified", true, partial(self._is_verified, statement.text, give([hit]))))
            items.append(Item("statements said", true, partial(_is_said, statement, hit)))
        for known, hits in self.scifact:
            items.append(Item("SciFact", known.label, partial(self._label, known.text, give(hits))))
        return items

    async def _label(self, text: str, search: Search) -> str:
        return label_of(await self.verifier.verify(text, search))

    async def _is_verified(self, text: str, search: Search) -> str:
        return str((await self.verifier.verify(text, search)).status != "UNVERIFIED")


@contextmanager
def trace_findings(rules: Sequence[Rule], found: set[str]) -> Iterator[None]:
    """Collect the names of the rules that find something within a block."""

    def trace(rule: Rule) -> Callable[..., Any]:
        def call(*values: Any, **named: Any) -> Any:
            result = rule.function(*values, **named)
            if result != rule.off(*values, **named):
                found.add(rule.name)
            return result

        return call

    with replaced({id(rule.function): trace(rule) for rule in rules}):
        yield


def give(hits: Sequence[Hit]) -> Search:
    """Return a search that finds these hits."""

    async def search(query: str) -> SearchResult:
        return SearchResult(query, query, "balanced", tuple(hits), (), (), 0.0)

    return search


async def _is_said(statement: LabelledStatement, hit: Hit) -> str:
    """Tell whether a statement of a model comes out of the composition of an answer."""
    passages = pack([hit], 4000, WordTokenizer())
    checker = Checker({passage.number: passage.hit for passage in passages}, Judge().relations)
    composition = Composition(ScriptedLLM(f"{statement.text} [1]"), passages, checker, ReplyLimits(9, 1000, 60))
    kept = [said.text async for said in composition.statements(statement.text)]
    return str(words_of(statement.text) in words_of(" ".join(kept)))


@asynccontextmanager
async def open_subjects(kept: Path | None, scifact: Path, every: int) -> AsyncIterator[Subjects]:
    """Give the labelled items of the half to develop on, claims on further manuals, and SciFact where it is there."""
    collections = [load_collection(half) for half in FITTED]
    claims: list[tuple[LabelledClaim, Search]] = []
    async with AsyncExitStack() as stack:
        for collection in collections:
            data = await stack.enter_async_context(ingest_pages(collection.pages, kept))
            components = await stack.enter_async_context(open_knowledge(data))
            search = remember_searches(Engine(components).workspace("default"))
            claims += [(claim, search) for claim in collection.claims]
        verifier = ClaimVerifier(RememberingEmbedder(components.embedder))
        statements = [statement for collection in collections for statement in collection.statements]
        labelled = _read_scifact(scifact)[:: SCIFACT_EVERY * every]
        yield Subjects(verifier, claims[::every], statements[::every], labelled)


def remember_searches(workspace: Workspace) -> Search:
    """Return a search that asks a workspace once for each text."""
    found: dict[str, SearchResult] = {}

    async def search(text: str) -> SearchResult:
        if text not in found:
            found[text] = await workspace.search(SearchQuery(text, k=10))
        return found[text]

    return search


def _read_scifact(folder: Path) -> list[tuple[Claim, Sequence[Hit]]]:
    if not folder.is_dir():
        return []
    abstracts = read_abstracts(folder)
    claims = read_claims(folder, "train", {document: told for document, (_, told) in abstracts.items()})
    return [(claim, [as_abstract(document, *abstracts[document]) for document in claim.cited]) for claim in claims]


def measure_ablation(kept: Path | None, scifact: Path, *, every: int = 1, by_rule: bool = False) -> list[str]:
    """Return the lines of a table: macro-F1 with all rules, and what is lost without each file, or also each rule."""
    one = partial(_measure_share, kept=kept, scifact=scifact, every=every, by_rule=by_rule)
    with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as pool:
        shares = list(pool.map(one, range(PROCESSES)))
    whole = shares[0][0]
    lines = [f"| without | {' | '.join(whole)} | {' | '.join(ERRORS)} | |", f"|---|{'---|' * len(whole)}---|---|---|"]
    lines.append(f"| (all rules) | {' | '.join(f'{value:.3f}' for value in whole.values())} | | | |")
    return lines + sorted(line for _, share in shares for line in share)


def _measure_share(share: int, **options: Any) -> tuple[dict[str, float], list[str]]:
    return asyncio.run(_measure_groups(share, **options))


async def _measure_groups(
    share: int, kept: Path | None, scifact: Path, every: int, by_rule: bool
) -> tuple[dict[str, float], list[str]]:
    """Return macro-F1 with all rules, and the lines of one process's share of the groups of rules."""
    rules = find_rules()
    groups: dict[str, list[Rule]] = defaultdict(list)
    for rule in rules:
        groups[f"**{rule.name.rpartition('.')[0]}**"].append(rule)
    if by_rule:
        groups |= {rule.name: [rule] for rule in rules}
    async with open_subjects(kept, scifact, every) as subjects:
        items = subjects.list_items()
        said = [await item.check() for item in items]  # makes the searches and vectors
        finders = []
        for item in items:
            found: set[str] = set()
            with trace_findings(rules, found):
                await item.check()
            finders.append(found)
        whole, lines = score(items, said), []
        for name, off in list(groups.items())[share::PROCESSES]:
            without, names = list(said), {rule.name for rule in off}
            with switched_off(off):
                for place, item in enumerate(items):
                    if not names.isdisjoint(finders[place]):
                        without[place] = await item.check()
            changed = [
                after - before
                for before, after in zip(count_errors(items, said), count_errors(items, without), strict=True)
            ]
            lines.append(_render_loss(name, whole, score(items, without), changed))
            print(lines[-1], file=sys.stderr, flush=True)
    return whole, lines


def score(items: Sequence[Item], said: Sequence[str]) -> dict[str, float]:
    """Return macro-F1 of each group."""
    labels: dict[str, Labels] = defaultdict(list)
    for item, label in zip(items, said, strict=True):
        labels[item.group].append((item.true, label))
    return {group: macro_f1(found) for group, found in labels.items()}


def count_errors(items: Sequence[Item], said: Sequence[str]) -> tuple[int, int]:
    """Return how many items are wrongly supported, and how many wrongly refuted or not supported."""
    wrong = [(item.true, label) for item, label in zip(items, said, strict=True) if item.true != label]
    supported = sum(label in SUPPORTED for _, label in wrong)
    return supported, sum(true in SUPPORTED or label == "REFUTE" for true, label in wrong)


def _render_loss(name: str, whole: Mapping[str, float], without: Mapping[str, float], errors: Sequence[int]) -> str:
    """Return a line; a rule buys nothing if nothing is worse without it: a mean may hide what it keeps out."""
    changes = [without[group] - value for group, value in whole.items()]
    worth = "" if min(changes) < 0 or max(errors) > 0 else "buys nothing"
    told = [*(f"{change:+.3f}" for change in changes), *(f"{count:+d}" for count in errors)]
    return f"| {name} | {' | '.join(told)} | {worth} |"
