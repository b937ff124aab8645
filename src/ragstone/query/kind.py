"""What kind of question a query is, as far as it decides whom to trust more."""

from __future__ import annotations

import re

NAME_WEIGHT = 0.2
"""The dense arm's say when only a name is asked for: it knows what a name is about, not how it is spelt."""

_NAME = re.compile(
    r"[A-Za-z$@][\w$@]*(?:(?:[./:#]|::|->)[\w$@-]+)+"  # hook.player.connected, @scope/package, Type::method
    r"|[a-z][a-z0-9]*(?:[A-Z][A-Za-z0-9]*)+"  # moduleControllerCreate
    r"|(?:[A-Z][a-z0-9]+){2,}|[A-Z]{2,}[a-z]+\w*"  # ModuleController, HTTPServer
    r"|\w+_\w+"  # snake_case, UPPER_CASE
    r"|(?=\S*[A-Za-z])(?=\S*[0-9])[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*"  # SKU-12345, v2, iso9001
)


def asks_for_names(query: str) -> bool:
    """Whether every word of the query is spelt like an identifier."""
    words = query.strip().strip("`'\"()").split()
    return bool(words) and all(_NAME.fullmatch(word.strip("`'\"()?,;")) for word in words)
