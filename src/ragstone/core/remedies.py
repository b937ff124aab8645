"""Remedies: what to do about a problem, as a code with arguments.

Nothing below `serve` knows how its user acts. A remedy names the action; the command line renders it as a command,
tools for agents as a sentence. `docs/reference/remedies.md` has a section for each code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum

_DETAIL = re.compile(r"\[([^]]*\{(\w+)\}[^]]*)\]")


class Action(StrEnum):
    """Something that a user can do, and the sentence that asks for it."""

    sentence: str
    pattern: str
    """The sentence with its details in brackets; each is said only when its argument is known."""

    def __new__(cls, code: str, pattern: str) -> Action:
        action = str.__new__(cls, code)
        action._value_ = code
        action.sentence, action.pattern = _DETAIL.sub("", pattern), pattern
        return action

    def describe(self, arguments: Mapping[str, str]) -> str:
        """Return the sentence with those of its details that are known."""
        return _DETAIL.sub(lambda part: part[1].format(**arguments) if part[2] in arguments else "", self.pattern)

    INGEST = "ingest", "ingest documents[ into the knowledge base '{kb}'][ for the tenant '{tenant}']"
    INGEST_AGAIN = "ingest_again", "ingest the documents again[ into the knowledge base '{kb}']"
    CREATE_DATA = "create_data", "ingest documents, or name another data folder"
    CREATE_TENANT = (
        "create_tenant",
        "choose one of the tenants, or ingest documents for a new one[ with the name '{tenant}']",
    )
    LIST_DOCUMENTS = "list_documents", "list the documents"
    LIST_PASSAGES = "list_passages", "search for the passage to see its chunk_id"
    LIST_JOBS = "list_jobs", "list the jobs"
    LIST_FAILED_JOBS = "list_failed_jobs", "list the jobs that failed"
    LIST_SOURCES = "list_sources", "list the sources"
    LIST_TENANTS = "list_tenants", "list the tenants"
    LIST_KEYS = "list_keys", "list the API keys"
    LIST_KBS = "list_kbs", "list the knowledge bases"
    LIST_MODELS = "list_models", "list the models"
    LIST_CONVERSATIONS = "list_conversations", "list the conversations"
    LIST_PRODUCTS = "list_products", "list the products of the shop"
    LIST_SERVICES = "list_services", "list the services of the shop"
    LIST_APPOINTMENTS = "list_appointments", "list the appointments"
    LIST_GOLDEN = "list_golden", "list the golden queries"
    MAKE_GOLDEN = "make_golden", "make golden queries"
    REMOVE_GOLDEN = "remove_golden", "remove all golden queries"
    ADD_FEEDBACK = "add_feedback", "vote for a passage"
    ADD_SOURCE = "add_source", "set up a source"
    REMOVE_SOURCE = "remove_source", "remove the source[ '{source}'], with or without its documents"
    DELETE_KB = "delete_kb", "delete the knowledge base[ '{kb}']"
    RESUME_TENANT = "resume_tenant", "resume the tenant[ '{tenant}']"
    FINISH_TENANT_DELETION = "finish_tenant_deletion", "delete the tenant[ '{tenant}'] again to finish it"
    REEMBED = (
        "reembed",
        "re-embed the knowledge base[ '{kb}'][ with the model '{model}'][, or set embedding.model to {current_model}]",
    )
    FORCE_REEMBED = (
        "force_reembed",
        "re-embed the knowledge base[ '{kb}'][ with the model '{model}'] and make it live even though it finds less",
    )
    IMPROVE_SEARCH = (
        "improve_search",
        "compare fresh embeddings, look at the gaps, and tune the search[ of the knowledge base '{kb}']",
    )
    PULL_MODEL = "pull_model", "download the model[ '{model}']"
    USE_OWN_KB = "use_own_kb", "let the data set have a knowledge base of its own"
    REPLACE_COLLECTION = "replace_collection", "replace the collection, or choose another name"
    RENAME_COLLECTION = "rename_collection", "choose another name for the collection, or delete this one first"
    PLACE_CORPUS = (
        "place_corpus",
        "put it into the folder that ingestion.corpus_root names, by default the data folder; or name another root",
    )
    BUILD_CORPUS = "build_corpus", "build the collection again from its corpus file"
    SHOW_SETTINGS = "show_settings", "look at the settings and their values"
    CREATE_KEY = "create_key", "make an encryption key"
    CHECK_STORES = "check_stores", "check the stores[; until then search with arms set to {arms}]"
    REPAIR_STORES = "repair_stores", "check the stores and repair them"
    FINISH_LEFT_STORE = (
        "finish_left_store",
        "configure the store[ '{store}'] again and repair it, or empty it by hand and have it forgotten",
    )
    EXPORT = "export", "export an archive"
    MERGE_ARCHIVES = "merge_archives", "export one and import it into the other"
    SEARCH = "search", "search for some words[, for example: {query}]"
    ASK = "ask", "ask a question[, for example: {question}]"
    RESEARCH = "research", "name a topic[, for example: {topic}]"
    VERIFY = "verify", "state a claim as a full sentence[, such as “{claim}”], or name a receipt"
    CREATE_RECEIPT = "create_receipt", "ask a question and have its receipt written"


@dataclass(frozen=True, slots=True, init=False)
class Remedy:
    """An action and what it needs to know, such as `Remedy(Action.PULL_MODEL, model="bge-small")`."""

    action: Action
    arguments: tuple[tuple[str, str], ...]
    """Names and values in the order of the names."""

    def __init__(self, action: Action, /, **arguments: str) -> None:
        object.__setattr__(self, "action", action)
        object.__setattr__(self, "arguments", tuple(sorted(arguments.items())))

    def to_json(self) -> dict[str, str]:
        """Return the form in which a ledger keeps it."""
        return {"action": self.action.value, **dict(self.arguments)}

    @classmethod
    def from_json(cls, stored: Mapping[str, str] | None) -> Remedy | None:
        """Return the remedy that `to_json` wrote; None for one that this version does not know."""
        arguments = dict(stored or {})
        try:
            action = _ACTIONS[arguments.pop("action", "")]
        except KeyError:
            return None
        return cls(action, **arguments)


_ACTIONS = {action.value: action for action in Action}
Renderer = Callable[[str, Remedy], str]
"""Makes one text of a hint, which may be empty, and a remedy."""


def render_sentence(hint: str, remedy: Remedy) -> str:
    """Return the hint and the remedy as a sentence, for readers who have no shell."""
    return join_advice(hint, remedy.action.describe(dict(remedy.arguments)))


def join_advice(hint: str, remedy: str, *, bare: bool = False) -> str:
    """Return a hint and a rendered remedy as one text; a hint that ends with "or" is continued by the remedy.

    A `bare` remedy is nothing but a command.
    """
    if not hint:
        return remedy
    separator = ": " if bare else " " if hint.endswith(" or") else "; "
    return f"{hint}{separator}{remedy}"


_renderer: ContextVar[Renderer] = ContextVar("ragstone_remedy_renderer", default=render_sentence)


@contextmanager
def render_with(renderer: Renderer) -> Iterator[None]:
    """Render the remedies of the block in the way of its user."""
    token = _renderer.set(renderer)
    try:
        yield
    finally:
        _renderer.reset(token)


def advise(hint: str, remedy: Remedy | None) -> str:
    """Return what to do about a problem, in the words of the surface that is in use."""
    return _renderer.get()(hint, remedy) if remedy else hint
