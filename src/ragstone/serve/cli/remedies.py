"""Remedies as commands: what to type about a problem, with the options of the call that met it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from ragstone.core.remedies import Action, Remedy, join_advice

_SLOT = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Step:
    """A command within a few words, where `{command}` is the whole command and `{name}` an argument of the remedy.

    An option of the command is left out when the remedy has no argument for it, and so is a step that `needs` one.
    A command that lists what there is goes `without` the option that named what is not there.
    """

    words: str
    command: str = ""
    needs: str = ""
    without: tuple[str, ...] = ()

    def render(self, arguments: Mapping[str, str], options: Mapping[str, str]) -> str:
        """Return the step for these arguments; `options` are appended unless the command has them already."""
        if self.needs and self.needs not in arguments:
            return ""
        return self.words.format(command=self.fill(arguments, options), **arguments)

    def fill(self, arguments: Mapping[str, str], options: Mapping[str, str]) -> str:
        """Return the command alone."""
        typed = ["ragstone"]
        for word in self.command.split():
            slot = _SLOT.fullmatch(word)
            if slot is None:
                typed.append(word)
            elif slot[1] in arguments:
                typed.append(shlex.quote(arguments[slot[1]]))
            elif typed[-1].startswith("--"):
                typed.pop()
        missing = (option for name, option in options.items() if f"--{name}" not in typed and name not in self.without)
        return " ".join(typed) + "".join(missing)


LIST = "list them with: {command}"
MAKE = "make one with: {command}"
EXAMPLE = "such as: {command}"
STEPS: Mapping[Action, tuple[Step, ...]] = {
    Action.INGEST: (
        Step("make it with: {command}", "ingest PATH --kb {kb} --tenant {tenant}"),
        Step("list the knowledge bases with: {command}", "kb list", needs="kb", without=("kb",)),
        Step("list the tenants with: {command}", "tenants", needs="tenant", without=("tenant", "kb")),
    ),
    Action.INGEST_AGAIN: (Step("ingest again with: {command}", "ingest PATH --kb {kb}"),),
    Action.CREATE_DATA: (Step("{command} makes it; --data-dir names another folder", "ingest PATH"),),
    Action.CREATE_TENANT: (
        Step(LIST, "tenants", without=("tenant", "kb")),
        Step("make it with: {command}", "ingest PATH --tenant {tenant}"),
    ),
    Action.LIST_DOCUMENTS: (Step(LIST, "documents"),),
    Action.LIST_PASSAGES: (Step("{command} shows the chunk_id of each passage", "search … --json"),),
    Action.LIST_JOBS: (Step(LIST, "jobs"),),
    Action.LIST_FAILED_JOBS: (Step("{command}", "jobs --state failed"),),
    Action.LIST_SOURCES: (Step(LIST, "sources list"),),
    Action.LIST_TENANTS: (Step(LIST, "tenants", without=("tenant", "kb")),),
    Action.LIST_KEYS: (Step(LIST, "keys"),),
    Action.LIST_KBS: (Step(LIST, "kb list", without=("kb",)),),
    Action.LIST_MODELS: (Step("{command} lists some", "models"),),
    Action.LIST_CONVERSATIONS: (Step(LIST, "conversations"),),
    Action.LIST_PRODUCTS: (Step(LIST, "shop products"),),
    Action.LIST_SERVICES: (Step(LIST, "shop services"),),
    Action.LIST_APPOINTMENTS: (Step(LIST, "shop appointments"),),
    Action.LIST_GOLDEN: (Step(LIST, "golden"),),
    Action.MAKE_GOLDEN: (Step("{command}", "golden make"),),
    Action.REMOVE_GOLDEN: (Step("{command}", "golden remove --all"),),
    Action.ADD_FEEDBACK: (Step("{command}", "feedback add NUMBER --vote up"),),
    Action.ADD_SOURCE: (Step("set one up with: {command}", "sources add KIND NAME"),),
    Action.REMOVE_SOURCE: (
        Step("remove it with: {command}", "sources remove {source}"),
        Step("to leave its documents there: {command}", "sources remove {source} --keep-documents"),
    ),
    Action.DELETE_KB: (Step("remove it with: {command}", "kb delete {kb}"),),
    Action.RESUME_TENANT: (Step("{command} ends that", "tenants resume {tenant}"),),
    Action.FINISH_TENANT_DELETION: (Step("{command} finishes it", "tenants delete {tenant} --yes"),),
    Action.REEMBED: (
        Step("move it with: {command}", "reembed --model {model} --kb {kb}"),
        Step("or set embedding.model to {current_model}", needs="current_model"),
    ),
    Action.FORCE_REEMBED: (
        Step("all the same with: {command}", "reembed --model {model} --kb {kb} --mode full --force"),
    ),
    Action.IMPROVE_SEARCH: (
        Step("look closer with: {command}", "reembed --refresh --kb {kb}"),
        Step("{command}", "gaps --kb {kb}"),
        Step("{command}; with --golden if you have golden queries", "tune --from-feedback --kb {kb}"),
    ),
    Action.PULL_MODEL: (Step("{command}", "models pull {model}"),),
    Action.USE_OWN_KB: (Step("leave out --kb: a data set gets a knowledge base of its own"),),
    Action.REPLACE_COLLECTION: (Step("add --overwrite, or name another collection with --kb NAME"),),
    Action.RENAME_COLLECTION: (Step("name another collection with --kb NAME, or delete this one first"),),
    Action.PLACE_CORPUS: (
        Step(
            "put it into the folder that ingestion.corpus_root names, by default the data folder; or give --root FOLDER"
        ),
    ),
    Action.BUILD_CORPUS: (Step("build it again with: {command}", "corpus build PATH --overwrite"),),
    Action.SHOW_SETTINGS: (Step("{command} shows all settings and their values", "config"),),
    Action.CREATE_KEY: (Step(MAKE, "keys encryption"),),
    Action.CHECK_STORES: (
        Step("look at the stores with: {command}", "doctor"),
        Step("until then search with --arms {arms}", needs="arms"),
    ),
    Action.REPAIR_STORES: (Step("{command}", "doctor --repair"),),
    Action.FINISH_LEFT_STORE: (
        Step("set store.vectors to {store} again and run {command}", "doctor --repair"),
        Step("or remove it there by hand, then: {command}", "doctor --repair --forget-store {store}"),
    ),
    Action.EXPORT: (Step(MAKE, "export FILE"),),
    Action.MERGE_ARCHIVES: (
        Step("merge the two with: {command}", "export FILE"),
        Step("and there with: {command}", "import FILE"),
    ),
    Action.SEARCH: (Step(EXAMPLE, "search {query}"),),
    Action.ASK: (Step(EXAMPLE, "ask {question}"),),
    Action.RESEARCH: (Step(EXAMPLE, "research {topic}"),),
    Action.VERIFY: (Step(EXAMPLE, "verify {claim}"),),
    Action.CREATE_RECEIPT: (Step(MAKE, "ask QUESTION --receipt FILE"),),
}


def render_command(hint: str, remedy: Remedy, options: Mapping[str, str]) -> str:
    """Return a hint and what to type, where `options` maps the names of options to how they are typed."""
    arguments = dict(remedy.arguments)
    steps = STEPS[remedy.action]
    rendered = filter(None, (step.render(arguments, options) for step in steps))
    return join_advice(hint, "; ".join(rendered), bare=steps[0].words == "{command}")
