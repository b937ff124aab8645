"""`ragstone doctor` and `ragstone config`: is everything here that is needed, and which settings are in force."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragstone.core.errors import InputError, RagstoneError
from ragstone.core.health import Check, HealthFinding
from ragstone.serve.cli.exits import FAILURE, OK
from ragstone.serve.cli.render.output import clean, text
from ragstone.serve.cli.session import CliSession

if TYPE_CHECKING:
    from rich.console import Console

COLOURS = {"ok": "green", "warn": "yellow", "fail": "bold red"}


async def doctor(
    session: CliSession,
    repair: Annotated[bool, typer.Option("--repair", help="Repair the stores; live content is not changed.")] = False,
    forget_index: Annotated[
        str,
        typer.Option(
            "--forget-store",
            metavar="NAME",
            help="With --repair: a vector database that is not in use any more and was emptied by hand.",
        ),
    ] = "",
) -> int:
    """Check the installation and the stores.

    Looks at the installation, the model, the data folder and the stores, and says what to type when something is
    missing.
    """
    if forget_index and not repair:
        raise InputError("--forget-store changes what is known of a store", hint="give --repair as well")
    from ragstone.engine.installation import check_installation, examine_stores

    async with session.slow_notice("checking …"):
        checks = await check_installation(session.settings)
        try:
            settings = session.settings()
        except RagstoneError:
            stores = []  # the checks have said why
        else:
            stores = await examine_stores(settings, repair=repair, forget=forget_index)
    failed = "fail" in {check.state for check in checks} | {finding.state for finding in stores}
    from ragstone.schemas.installation import DoctorSchema

    session.show(
        DoctorSchema.of(ok=not failed, checks=checks, stores=stores),
        lambda out: _draw(out, [*checks, *map(_as_check, stores)]),
    )
    return FAILURE if failed else OK


def _draw(out: Console, checks: list[Check]) -> None:
    from rich.table import Table

    rows = Table.grid(padding=(0, 2, 0, 0))
    for check in checks:
        rows.add_row(text(check.state, COLOURS[check.state]), check.name, text(check.detail))
        if check.fix:
            rows.add_row("", "", text(check.fix, "cyan"))
    out.print(rows)


def _as_check(finding: HealthFinding) -> Check:
    return Check(f"{finding.store} {finding.what}", finding.state, finding.detail, finding.advice)


async def config(session: CliSession) -> None:
    """Show all settings and their values. Secrets are masked; the output is YAML that `--config` reads."""
    from ragstone.schemas.settings import SettingsSchema, mask_secrets

    values = mask_secrets(session.settings().model_dump(mode="json"))
    session.show(SettingsSchema.of(root=values), lambda out: _draw_settings(out, values))


def _draw_settings(out: Console, values: dict[str, Any]) -> None:
    import yaml

    out.print(clean(yaml.safe_dump(values, sort_keys=False, allow_unicode=True)), end="", soft_wrap=True)
