"""Says what passages mean for a claim: a local model for natural-language inference, or an LLM as judge."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from ragstone.core.errors import ModelError, SettingsError
from ragstone.core.model_types import Entailment, Relation
from ragstone.core.protocols import LLM, Entailer
from ragstone.core.types import Vector
from ragstone.models.runtime.inference import LocalModel, ModelInput
from ragstone.models.weights.folder import ModelFolder
from ragstone.settings.answers import EntailmentSettings
from ragstone.settings.tree import LLMSettings

RELATIONS: dict[str, Relation] = {"entail": "entails", "contradict": "contradicts", "neutral": "neutral"}
"""By what the labels of published models begin with."""
_HINT = "use a model such as cross-encoder/nli-distilroberta-base"


def build_entailer(settings: EntailmentSettings, llm: LLM | None, llm_settings: LLMSettings) -> Entailer | None:
    """Return the checker that the settings ask for; None when explicit checks have to do."""
    if settings.kind == "none":
        return None
    if settings.kind == "nli":
        return NliModel.open(settings.model, path=settings.path)
    if llm is None:
        raise SettingsError(
            "entailment.kind is 'llm', but no LLM is configured",
            hint="set llm.model, or entailment.kind to nli or none",
        )
    from ragstone.models.entailment.llm_judge import LlmJudge

    return LlmJudge(llm, max_tokens=llm_settings.max_tokens, seconds=llm_settings.timeout)


class NliModel:
    """A three-class cross-encoder from a local folder or a model pulled before."""

    def __init__(self, local: LocalModel) -> None:
        self._local = local

    @classmethod
    def open(cls, model: str, *, path: Path | None = None, cache_dir: Path | None = None) -> NliModel:
        """Return a model by name. It is looked for, and loaded, when it is first used."""
        return cls(LocalModel(model, path=path, cache_dir=cache_dir, head=True))

    @property
    def name(self) -> str:
        return self._local.name

    async def label(self, premises: Sequence[str], hypothesis: str) -> Sequence[Entailment]:
        """Return the likeliest class of each premise; a long premise is read up to half the model's window."""
        if not premises:
            return []
        await self._local.load()
        relations = self._relations
        rows = await self._local.tokenize(self._rows, premises, hypothesis)
        return [self._judge(output, relations) for output in await self._local.run(rows)]

    async def close(self) -> None:
        """End the threads and release the model."""
        await self._local.close()

    @cached_property
    def _relations(self) -> tuple[Relation, ...]:
        """Return the classes in the order of the model's outputs, which its config.json tells: models differ in it."""
        weights = self._local.weights
        labels = weights.labels if isinstance(weights, ModelFolder) else ()
        found = tuple(
            relation for label in labels for start, relation in RELATIONS.items() if label.lower().startswith(start)
        )
        if len(labels) != len(RELATIONS) or set(found) != set(RELATIONS.values()):
            told = ", ".join(labels) or "none"
            raise ModelError(
                f"{self.name} does not name the classes entailment, neutral and contradiction (it names {told})",
                hint=_HINT,
            )
        return found

    def _rows(self, premises: Sequence[str], hypothesis: str) -> list[ModelInput]:
        longest = self._local.weights.max_tokens
        pairs = (self._local.tokenizer.pairs(premise, [hypothesis], longest)[0] for premise in premises)
        return [ModelInput(ids, types) for ids, types in pairs]

    def _judge(self, output: Vector | ModelError, relations: Sequence[Relation]) -> Entailment:
        if isinstance(output, ModelError):
            raise ModelError(f"{self.name} could not judge a passage") from output
        if len(output) != len(relations):
            raise ModelError(f"{self.name} tells {len(output)} classes apart instead of 3", hint=_HINT)
        logits = output.astype(np.float64)
        shares = np.exp(logits - np.logaddexp.reduce(logits))
        best = int(np.argmax(shares))
        return Entailment(relations[best], float(shares[best]))
