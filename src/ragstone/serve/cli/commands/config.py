"""`ragstone config`: the settings in force."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragstone.serve.cli.render.output import clean
from ragstone.serve.cli.session import Session

if TYPE_CHECKING:
    from rich.console import Console


async def config(session: Session) -> None:
    """Show all settings and their values. Secrets are masked; the output is YAML that `--config` reads."""
    from ragstone.schemas.settings import SettingsSchema, mask_secrets

    values = mask_secrets(session.settings().model_dump(mode="json"))
    session.show(SettingsSchema.of(root=values), lambda out: _draw(out, values))


def _draw(out: Console, values: dict[str, Any]) -> None:
    import yaml

    out.print(clean(yaml.safe_dump(values, sort_keys=False, allow_unicode=True)), end="", soft_wrap=True)
