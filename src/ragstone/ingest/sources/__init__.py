"""Sources of documents: their kinds, and building one from its configuration."""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ragstone.core.documents import MAX_DEPTH
from ragstone.core.errors import AccessDenied, InputError, SettingsError
from ragstone.core.protocols import Source
from ragstone.core.registry import Registry
from ragstone.ingest.sources.config import SourceContext, explain_config_error
from ragstone.ingest.sources.secrets import MaskedSource, SecretMask
from ragstone.settings.base import SettingsModel

KINDS = {
    "files": "ragstone.ingest.sources.files.source:FilesSource",
    "git": "ragstone.ingest.sources.git.source:GitSource",
    "corpus": "ragstone.ingest.sources.files.source:CorpusSource",
    "database": "ragstone.ingest.sources.database.source:DatabaseSource",
    "web": "ragstone.ingest.sources.web.pages:WebSource",
    "sitemap": "ragstone.ingest.sources.web.sitemap:SitemapSource",
    "crawl": "ragstone.ingest.sources.web.crawl:CrawlSource",
    "feeds": "ragstone.ingest.sources.web.feeds:FeedsSource",
    "hacker_news": "ragstone.ingest.sources.web.hacker_news:HackerNewsSource",
    "semantic_scholar": "ragstone.ingest.sources.papers:SemanticScholarSource",
    "mbox": "ragstone.ingest.sources.mail.mailboxes:MboxSource",
    "imap": "ragstone.ingest.sources.mail.imap:ImapSource",
    "gmail": "ragstone.ingest.sources.mail.gmail:GmailSource",
}
SOURCES = Registry("kind of source", KINDS)
SCHEDULES = {
    **dict.fromkeys(("files", "git", "corpus", "database"), "manual"),
    **dict.fromkeys(("web", "sitemap", "crawl"), "as_needed"),
    **dict.fromkeys(("feeds", "hacker_news"), "hourly"),
    "semantic_scholar": "on_demand",
    **dict.fromkeys(("mbox", "imap", "gmail"), "daily"),
}
"""The schedules of sources by kind, unless their owner sets another one."""
REMOTE_KINDS = frozenset({"web", "sitemap", "crawl", "feeds", "hacker_news", "semantic_scholar", "imap", "gmail"})
"""The kinds that read nothing of this machine: all they do is ask the guarded fetcher."""
_REFERENCE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")


def build_source(
    kind: str,
    name: str,
    config: Mapping[str, Any],
    context: SourceContext,
    environment: Mapping[str, str] | None = None,
) -> Source:
    """Return the source of that kind and name. `${VARIABLE}` in its configuration is taken from the environment.

    What an address has from there is not in what the source gives, but for content.
    """
    made = SOURCES.load(kind)
    env = os.environ if environment is None else environment
    mask = SecretMask()
    expanded = {key: _expand(f"{name}.{key}", value, env, mask) for key, value in config.items()}
    configured = config_class(made)
    try:
        source = cast("Source", made(configured.model_validate(expanded), name, context))
    except ValidationError as error:
        raise explain_config_error(_problems(error), name, configured, config, mask) from error
    return MaskedSource(source, mask) if mask else source


def refuse_local_source(kind: str, config: Mapping[str, Any]) -> None:
    """Raise `AccessDenied` for a source that reads files, databases or variables of this machine."""
    hint = "whoever runs the service can set it up on the machine"
    if kind in KINDS and kind not in REMOTE_KINDS:
        raise AccessDenied(f"a source of kind '{kind}' reads from the machine of the service", hint=hint)
    if (found := next(find_references(config), None)) is not None:
        raise AccessDenied(f"the configuration reads the variable {found['name']} of the service", hint=hint)


def unset_variables(value: Any, environment: Mapping[str, str] | None = None) -> list[str]:
    """Return the names of variables that a setting or a whole configuration refers to and that are not set here."""
    env = os.environ if environment is None else environment
    unset = (match["name"] for match in find_references(value) if match["default"] is None and match["name"] not in env)
    return list(dict.fromkeys(unset))


def find_references(value: Any, depth: int = 0) -> Iterator[re.Match[str]]:
    """Yield the references to variables in a setting or a whole configuration; refuse one that is nested deeply."""
    if depth > MAX_DEPTH:
        raise InputError(f"the configuration is nested more than {MAX_DEPTH} deep", hint="give texts, numbers or lists")
    match value:
        case str():
            yield from _REFERENCE.finditer(value)
        case Mapping():
            for inner in value.values():
                yield from find_references(inner, depth + 1)
        case list() | tuple():
            for inner in value:
                yield from find_references(inner, depth + 1)


def check_without_variables(kind: str, name: str, config: Mapping[str, Any]) -> None:
    """Refuse a configuration that is wrong whatever the variables that are not set here will be."""
    configured = config_class(SOURCES.load(kind))
    mask = SecretMask()
    env = {**os.environ, **{variable: variable for variable in unset_variables(config)}}
    try:
        configured.model_validate({key: _expand(f"{name}.{key}", value, env, mask) for key, value in config.items()})
    except ValidationError as error:
        # What concerns several settings at once may be right when all of them are known.
        sure = [
            problem
            for problem in _problems(error)
            if problem["loc"] and not unset_variables(config.get(str(problem["loc"][0])))
        ]
        if sure:
            raise explain_config_error(sure, name, configured, config, mask) from error


def config_class(made: type) -> type[SettingsModel]:
    """Return the class that a source's constructor is configured by."""
    parameter = inspect.signature(made).parameters["config"].annotation
    found = getattr(sys.modules[made.__module__], parameter) if isinstance(parameter, str) else parameter
    return cast("type[SettingsModel]", found)


def _expand(key: str, value: Any, env: Mapping[str, str], mask: SecretMask) -> Any:
    if isinstance(value, Mapping):
        return {inner: _expand(f"{key}.{inner}", item, env, mask) for inner, item in value.items()}
    if isinstance(value, list | tuple):
        return [_expand(key, item, env, mask) for item in value]
    if not isinstance(value, str):
        return value
    text, done = "", 0
    taken = []
    for match in _REFERENCE.finditer(value):
        found = env.get(match["name"], match["default"])
        if found is None:
            raise SettingsError(
                f"source {key} refers to ${{{match['name']}}}, which is not set",
                hint=f"export {match['name']}=… or write ${{{match['name']}:-default}}",
            )
        text += value[done : match.start()]
        if match["name"] in env:
            taken.append((match["name"], len(text), len(text) + len(found)))
        text += found
        done = match.end()
    text += value[done:]
    mask.learn(text, taken)
    return text


def _problems(error: ValidationError) -> list[ErrorDetails]:
    return error.errors(include_input=False, include_url=False)


def secret_keys(kind: str) -> frozenset[str]:
    """Return the settings of a kind of source that are secrets."""
    fields = config_class(SOURCES.load(kind)).model_fields
    return frozenset(name for name, field in fields.items() if "SecretStr" in str(field.annotation))
