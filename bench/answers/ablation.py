"""What each rule of the checks is worth: macro-F1 on claims and statements with one rule or file switched off.

A rule is a function of `ragstone.answer.verify` or `ragstone.answer.check`, or one of `ragstone.language` that they
import, that finds or denies something. Switched off, it finds nothing. Searches and vectors are made once. What the
rules for other languages than English are for, no labelled item here shows. Of SciFact only training claims are read.
"""

from __future__ import annotations

import inspect
import pkgutil
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType, NoneType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from bench.answers.collection import LabelledClaim, LabelledStatement, load_collection
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

NO_RULES = ("objections", "pipeline", "reading", "judging", "statements")
"""Modules of the package that combine what rules find."""
SCIFACT_EVERY = 6
"""Of so many training claims of SciFact one is read: with all of them a table would take hours."""
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
    """Replace rules in every module that has them, and forget what was computed with them."""
    offs = {id(rule.function): rule.off for rule in rules}
    modules = [module for name, module in sys.modules.items() if name.startswith("ragstone.")]
    places = [(module, name, value) for module in modules for name, value in vars(module).items() if id(value) in offs]
    try:
        for module, name, value in places:
            setattr(module, name, offs[id(value)])
        _forget(modules)
        yield
    finally:
        for module, name, value in places:
            setattr(module, name, value)
        _forget(modules)


def _forget(modules: Sequence[ModuleType]) -> None:
    for module in modules:
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


@dataclass
class Subjects:
    """What is checked with each set of rules."""

    verifier: ClaimVerifier
    search: Search
    claims: Sequence[LabelledClaim]
    statements: Sequence[LabelledStatement]
    scifact: Sequence[tuple[Claim, Sequence[Hit]]]

    async def measure(self) -> dict[str, float]:
        """Return macro-F1 of each group."""
        labels: dict[str, Labels] = defaultdict(list)
        for claim in self.claims:
            verdict = await self.verifier.verify(claim.text, self.search)
            labels["claims"].append(("SUPPORT" if claim.is_true else "REFUTE", label_of(verdict)))
        for statement in self.statements:
            hit, true = as_hit(statement.document, statement.passage), str(statement.is_true)
            verdict = await self.verifier.verify(statement.text, give([hit]))
            labels["statements verified"].append((true, str(verdict.status != "UNVERIFIED")))
            labels["statements said"].append((true, str(await _is_said(statement, hit))))
        for known, hits in self.scifact:
            labels["SciFact"].append((known.label, label_of(await self.verifier.verify(known.text, give(hits)))))
        return {group: macro_f1(found) for group, found in labels.items()}


def give(hits: Sequence[Hit]) -> Search:
    """Return a search that finds these hits."""

    async def search(query: str) -> SearchResult:
        return SearchResult(query, query, "balanced", tuple(hits), (), (), 0.0)

    return search


async def _is_said(statement: LabelledStatement, hit: Hit) -> bool:
    """Return whether a statement of a model comes out of the composition of an answer."""
    passages = pack([hit], 4000, WordTokenizer())
    checker = Checker({passage.number: passage.hit for passage in passages}, Judge().relations)
    composition = Composition(ScriptedLLM(f"{statement.text} [1]"), passages, checker, ReplyLimits(9, 1000, 60))
    kept = [said.text async for said in composition.statements(statement.text)]
    return words_of(statement.text) in words_of(" ".join(kept))


@asynccontextmanager
async def open_subjects(kept: Path | None, scifact: Path, every: int) -> AsyncIterator[Subjects]:
    """Give the labelled items of the half to develop on, and of SciFact where it is there."""
    collection = load_collection("develop")
    async with ingest_pages(collection.pages, kept) as data, open_knowledge(data) as components:
        workspace, found = Engine(components).workspace("default"), dict[str, SearchResult]()

        async def search(text: str) -> SearchResult:
            if text not in found:
                found[text] = await workspace.search(SearchQuery(text, k=10))
            return found[text]

        verifier = ClaimVerifier(RememberingEmbedder(components.embedder))
        labelled = _read_scifact(scifact)[:: SCIFACT_EVERY * every]
        yield Subjects(verifier, search, collection.claims[::every], collection.statements[::every], labelled)


def _read_scifact(folder: Path) -> list[tuple[Claim, Sequence[Hit]]]:
    if not folder.is_dir():
        return []
    abstracts = read_abstracts(folder)
    claims = read_claims(folder, "train", {document: told for document, (_, told) in abstracts.items()})
    return [(claim, [as_abstract(document, *abstracts[document]) for document in claim.cited]) for claim in claims]


async def measure_ablation(kept: Path | None, scifact: Path, *, every: int = 1, by_rule: bool = False) -> list[str]:
    """Return the lines of a table: macro-F1 with all rules, and what is lost without each file, or also each rule."""
    rules = find_rules()
    groups: dict[str, list[Rule]] = defaultdict(list)
    for rule in rules:
        groups[f"**{rule.name.rpartition('.')[0]}**"].append(rule)
    if by_rule:
        groups |= {rule.name: [rule] for rule in rules}
    async with open_subjects(kept, scifact, every) as subjects:
        await subjects.measure()  # makes the searches and vectors
        whole = await subjects.measure()
        lines = [f"| without | {' | '.join(whole)} | |", f"|---|{'---|' * len(whole)}---|"]
        lines.append(f"| (all rules) | {' | '.join(f'{value:.3f}' for value in whole.values())} | |")
        for name, off in groups.items():
            with switched_off(off):
                lines.append(_render_loss(name, whole, await subjects.measure()))
                print(lines[-1], file=sys.stderr, flush=True)
    return lines


def _render_loss(name: str, whole: Mapping[str, float], without: Mapping[str, float]) -> str:
    changes = {group: without[group] - value for group, value in whole.items()}
    worth = "" if min(changes.values()) < 0 else "buys nothing"
    return f"| {name} | {' | '.join(f'{change:+.3f}' for change in changes.values())} | {worth} |"
