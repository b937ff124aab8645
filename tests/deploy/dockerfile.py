"""A Dockerfile, read into stages and instructions."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "deploy" / "Dockerfile"


@dataclass
class ImageStage:
    """One stage: what it is built on, and its instructions in order."""

    base: str
    steps: list[tuple[str, str]] = field(default_factory=list)

    def all(self, word: str) -> list[str]:
        return [rest for name, rest in self.steps if name == word]

    def one(self, word: str) -> str:
        (rest,) = self.all(word)
        return rest

    @property
    def environment(self) -> dict[str, str]:
        """The variables that the stage sets."""
        return dict(pair.split("=", 1) for rest in self.all("ENV") for pair in rest.split())


def read_stages(text: str) -> list[ImageStage]:
    """The stages of a Dockerfile."""
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    stages: list[ImageStage] = []
    for line in filter(None, (line.strip() for line in lines)):
        word, rest = line.split(None, 1)
        if word == "FROM":
            stages.append(ImageStage(rest))
        else:
            stages[-1].steps.append((word, rest))
    return stages


def command_of(rest: str) -> list[str]:
    """The words of a command in its JSON form, which needs no shell."""
    words = json.loads(rest[rest.index("[") :])
    assert all(isinstance(word, str) for word in words)
    return list(words)


STAGES = read_stages(DOCKERFILE.read_text(encoding="utf-8"))
