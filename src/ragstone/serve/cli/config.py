"""`ragstone config`: the settings in force."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ragstone.serve.cli.output import clean
from ragstone.serve.cli.session import Session

if TYPE_CHECKING:
    from rich.console import Console

MASK = "**********"
SECRET_KEY = re.compile(r"(password|passwd|secret|token|api_?key|credential)s?$", re.IGNORECASE)
IN_ADDRESS = re.compile(r"(?<=://)([^/@\s:]*):[^/@\s]*(?=@)")


async def config(session: Session) -> None:
    """Show all settings and their values. Secrets are masked; the output is YAML that `--config` reads."""
    values = masked(session.settings().model_dump(mode="json"))
    session.show(values, lambda out: _draw(out, values))


def masked(value: Any, key: str = "") -> Any:
    """The settings with passwords hidden also where they hide: in options and inside addresses."""
    match value:
        case dict():
            return {name: masked(inner, str(name)) for name, inner in value.items()}
        case list():
            return [masked(inner, key) for inner in value]
        case str() if SECRET_KEY.search(key):
            return MASK
        case str():
            return IN_ADDRESS.sub(rf"\1:{MASK}", value)
        case _:
            return value


def _draw(out: Console, values: dict[str, Any]) -> None:
    import yaml

    out.print(clean(yaml.safe_dump(values, sort_keys=False, allow_unicode=True)), end="", soft_wrap=True)
