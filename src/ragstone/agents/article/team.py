"""The agents of the pipeline as data: role, persona, model, tools and budgets, read from YAML."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Literal, Self, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ragstone.agents.budget import MOST_CALLS
from ragstone.agents.roles import ROLES
from ragstone.core.errors import SettingsError
from ragstone.core.types import Mode

AgentName = Literal["research", "writer", "editor", "style_enforce", "critic", "fact_verify"]
Rubric = Literal["grounded", "sourced", "shaped"]


class Spec(BaseModel):
    """A part of the file; a key that it does not know is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class AgentSpec(Spec):
    """One agent."""

    role: str
    title: str
    persona: str
    task: str
    provider: str = ""
    model: str | None = None
    tools: tuple[str, ...] = ()
    temperature: float = Field(default=0.7, ge=0, le=2)
    calls: int = Field(default=MOST_CALLS, ge=0, le=MOST_CALLS)
    seconds: float = Field(default=30.0, gt=0, le=600)

    @model_validator(mode="after")
    def _has_only_tools_of_its_role(self) -> Self:
        if self.role not in ROLES:
            raise ValueError(f"there is no role '{self.role}'; the roles are {', '.join(ROLES)}")
        foreign = [tool for tool in self.tools if tool not in ROLES[self.role].tools]
        if foreign:
            raise ValueError(f"a {self.role} may not call {', '.join(foreign)}")
        return self

    @property
    def mode(self) -> Mode:
        """Return how thoroughly it searches."""
        return ROLES[self.role].mode


class PanelSpec(Spec):
    """A member of the panel: a rubric that is checked, or a model that is asked."""

    name: str
    rubric: Rubric | None = None
    persona: str = ""
    provider: str = ""
    model: str | None = None

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        if bool(self.rubric) == bool(self.persona):
            raise ValueError(f"the member '{self.name}' needs a rubric or a persona, and not both")
        return self


class VoiceSpec(Spec):
    """Limits of the voice of an article."""

    most_words: int = Field(default=45, ge=5)
    """Words of a sentence."""
    banned: tuple[str, ...] = ()
    """Phrases, in lower case."""


class LimitSpec(Spec):
    """Limits of a run."""

    rounds: int = Field(default=2, ge=0, le=10)
    """The most times that a text goes back to the editor with claims that do not hold."""
    claims: int = Field(default=300, ge=1, le=500)
    context_chars: int = Field(default=8000, ge=500)
    """Characters of facts that a prompt has."""
    least_cited: int = Field(default=5, ge=0, le=100)
    """With fewer cited sentences left, the article is filled up with sentences of the sources."""
    least_words: int = Field(default=40, ge=0)


class Team(Spec):
    """All agents, the panel, and the limits of a run."""

    agents: dict[AgentName, AgentSpec]
    panel: tuple[PanelSpec, ...] = Field(min_length=1)
    voice: VoiceSpec = VoiceSpec()
    limits: LimitSpec = LimitSpec()

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        missing = sorted(set(get_args(AgentName)) - self.agents.keys())
        if missing:
            raise ValueError(f"there is no agent for {', '.join(missing)}")
        return self


def load_team(path: Path | None = None) -> Team:
    """Return the agents of a file, or those that come with Ragstone. Raises `SettingsError`."""
    try:
        text = (path or files("ragstone.agents.article") / "agents.yaml").read_text(encoding="utf-8")
        return Team.model_validate(yaml.safe_load(text))
    except OSError as error:
        raise SettingsError(f"cannot read agents.file {path}: {error.strerror}") from error
    except (yaml.YAMLError, ValidationError, UnicodeDecodeError) as error:
        raise SettingsError(f"the agents in {path} cannot be used: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        fault = error.errors()[0]
        place = ".".join(map(str, fault["loc"]))
        return f"{place}: {fault['msg']}" if place else fault["msg"]
    return str(error).partition("\n")[0]
