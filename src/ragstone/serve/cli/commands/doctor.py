"""`ragstone doctor` and `ragstone config`: is everything here that is needed, and which settings are in force."""

from __future__ import annotations

from collections.abc import AsyncIterator
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
    async with session.slow_notice("checking …"):
        checks = [check async for check in _check(session)]
        stores = await _examine_stores(session, repair=repair, forget=forget_index)
    failed = "fail" in {check.state for check in checks} | {finding.state for finding in stores}
    from ragstone.schemas.installation import DoctorSchema

    session.show(
        DoctorSchema.of(ok=not failed, checks=checks, stores=stores),
        lambda out: _draw(out, [*checks, *map(_as_check, stores)]),
    )
    return FAILURE if failed else OK


async def _check(session: CliSession) -> AsyncIterator[Check]:
    from ragstone.models.installed import check_model, check_runtime
    from ragstone.settings.tree import Settings
    from ragstone.stores.health import installation

    yield installation.check_python()
    yield installation.check_sqlite()
    settings = Settings()
    try:
        settings = session.settings()
        yield Check("settings", "ok", f"profile {settings.profile}")
    except RagstoneError as error:
        yield Check("settings", "fail", str(error), error.advice)
    yield check_runtime(settings)
    yield await check_model(settings)
    for check in (*installation.check_storage(settings), *installation.check_packages(settings)):
        yield check


async def _examine_stores(session: CliSession, *, repair: bool, forget: str) -> list[HealthFinding]:
    from ragstone.engine.components import secret_keys
    from ragstone.stores.health.check import examine_configured

    try:
        settings = session.settings()
    except RagstoneError:
        return []  # the checks have said why
    return await examine_configured(settings, secret_keys, repair=repair, forget=forget)


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
