"""`ragstone doctor`, `config`, `keys` and `models`: what an installation has, and what it lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragstone.core.errors import InputError, RagstoneError
from ragstone.core.health import Check, HealthFinding
from ragstone.serve.cli.exits import FAILURE, OK, PARTIAL
from ragstone.serve.cli.render.output import clean, pluralize, table, text
from ragstone.serve.cli.session import CliSession

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.models.installed import ModelEntry
    from ragstone.stores.factory import Renewal

COLOURS = {"ok": "green", "warn": "yellow", "fail": "bold red"}
STATE_COLOURS = {"installed": "green", "missing": "yellow", "remote": "cyan"}


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
    from ragstone.schemas.installation import DoctorSchema

    async with session.slow_notice("checking …"):
        checks = await check_installation(session.settings)
        try:
            settings = session.settings()
        except RagstoneError:
            stores = []  # the checks have said why
        else:
            stores = await examine_stores(settings, repair=repair, forget=forget_index)
    failed = "fail" in {check.state for check in checks} | {finding.state for finding in stores}
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
    """Show all settings and their values.

    The output is YAML that `--config` reads. Secrets are masked in it: put them back, or give them as variables.
    """
    from ragstone.schemas.settings import SettingsSchema, mask_secrets

    values = mask_secrets(session.settings().model_dump(mode="json"))
    session.show(SettingsSchema.of(root=values), lambda out: _draw_settings(out, values))


def _draw_settings(out: Console, values: dict[str, Any]) -> None:
    import yaml

    out.print(clean(yaml.safe_dump(values, sort_keys=False, allow_unicode=True)), end="", soft_wrap=True)


async def new_encryption_key(session: CliSession) -> None:
    """Create a key for `security.key`. It is printed once and not stored."""
    from ragstone.engine.installation import create_key
    from ragstone.schemas.tenants import NewKeySchema

    key = create_key()

    session.show(NewKeySchema.of(key=key), lambda out: out.print(key, soft_wrap=True))


async def rotate_encryption(session: CliSession) -> int:
    """Encrypt everything again with the current key.

    Encrypts the files and secrets of all tenants. First move the former `security.key` to `security.old_keys`. Remove
    it there once nothing failed.
    """
    from ragstone.engine.installation import rotate_keys
    from ragstone.schemas.tenants import RotationSchema

    done = await rotate_keys(session.settings())
    session.show(RotationSchema.of(tenants=done), lambda out: _draw_rotation(out, done))
    return PARTIAL if any(renewal.failed for renewal in done.values()) else OK


def _draw_rotation(out: Console, done: dict[str, Renewal]) -> None:
    for tenant, renewal in done.items():
        files, sources = pluralize(renewal.files, "file"), pluralize(renewal.sources, "source")
        out.print(text(f"{tenant}: {files} and {sources} brought under the present key"))
        for reason in renewal.failed:
            out.print(text(f"  {reason}", "red"))
    if not done:
        out.print("There are no tenants yet.")


async def list_models(session: CliSession) -> None:
    """List models, and how to get those that are missing."""
    from ragstone.engine import installation
    from ragstone.schemas.installation import ModelListSchema

    entries = installation.list_models(session.settings())
    session.show(ModelListSchema.of(models=entries), lambda out: _draw_models(out, entries))


async def pull_model(
    session: CliSession,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A hub name, such as BAAI/bge-small-en-v1.5.")],
    revision: Annotated[str | None, typer.Option("--revision", help="A branch, tag or commit of the model.")] = None,
) -> None:
    """Download a model from the hub. No other command downloads a model."""
    from ragstone.engine import installation
    from ragstone.schemas.installation import PulledModelSchema

    async with session.slow_notice(f"downloading {name} …"):
        folder = await installation.pull_model(name, revision=revision)
    shape = PulledModelSchema.of(model=name, path=str(folder))
    session.show(shape, lambda out: out.print(f"{name} is in {folder}"))


def _draw_models(out: Console, entries: list[ModelEntry]) -> None:
    rows = table("", "model", "kind", "state", "dimension", "tokens", right=("dimension", "tokens"))
    for entry in entries:
        rows.add_row(
            "*" if entry.configured else "",
            text(entry.name),
            entry.kind,
            text(entry.state, STATE_COLOURS[entry.state]),
            str(entry.dimension or ""),
            f"{entry.max_tokens:,}" if entry.max_tokens else "",
        )
    out.print(rows)
    out.print()
    out.print("* is in use. To get what is missing:")
    for entry in entries:
        if entry.state == "missing":
            out.print(text(f"  {entry.get}"), soft_wrap=True)
