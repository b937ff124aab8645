"""The `ragstone` program: all commands, and what happens when one is called wrongly."""

from __future__ import annotations

import copy
import io
import sys
from typing import Annotated

import typer

import ragstone
from ragstone.serve.cli.agents.article import article
from ragstone.serve.cli.agents.chat import chat, set_agent, show_agent, show_analytics
from ragstone.serve.cli.agents.shop import (
    book_slot,
    cancel_appointment,
    import_table,
    list_appointments,
    list_products,
    list_services,
    list_slots,
    put_product,
    put_service,
    remove_entry,
    show_product,
    show_service,
)
from ragstone.serve.cli.command import command, default_command, help_by_default
from ragstone.serve.cli.commands.archive import export_archive, import_archive
from ragstone.serve.cli.commands.ask import ask
from ragstone.serve.cli.commands.audit import audit, list_alerts
from ragstone.serve.cli.commands.conversations import forget_conversation, list_conversations, show_conversation
from ragstone.serve.cli.commands.corpus import build_corpus, show_chunk, show_corpus
from ragstone.serve.cli.commands.demo import demo
from ragstone.serve.cli.commands.documents import delete_documents, list_documents, show_chunks, show_document
from ragstone.serve.cli.commands.evaluate import evaluate, tune
from ragstone.serve.cli.commands.feedback import (
    add_feedback,
    add_golden,
    learn_dictionary,
    list_feedback,
    list_gaps,
    list_golden,
    list_searches,
    make_golden,
    remove_golden,
    report_feedback,
)
from ragstone.serve.cli.commands.ingest import ingest
from ragstone.serve.cli.commands.installation import (
    config,
    doctor,
    list_models,
    new_encryption_key,
    pull_model,
    rotate_encryption,
)
from ragstone.serve.cli.commands.jobs import cancel_jobs, list_jobs, list_notices, retry_jobs, show_job, work
from ragstone.serve.cli.commands.kb import (
    delete_kb,
    list_collections,
    list_kbs,
    reindex_kb,
    rename_kb,
    resync_kb,
    stats,
)
from ragstone.serve.cli.commands.keys import create_key, list_keys, revoke_key, rotate_key
from ragstone.serve.cli.commands.mcp import serve_mcp
from ragstone.serve.cli.commands.migrate import migrate
from ragstone.serve.cli.commands.reembed import reembed
from ragstone.serve.cli.commands.search import explain, research, search
from ragstone.serve.cli.commands.serve import serve
from ragstone.serve.cli.commands.sources import (
    add_source,
    list_sources,
    pause_source,
    remove_source,
    resume_source,
    show_source,
)
from ragstone.serve.cli.commands.sync import sync_sources
from ragstone.serve.cli.commands.tenants import (
    create_tenant,
    delete_tenant,
    list_tenants,
    rename_tenant,
    resume_tenant,
    set_tenant,
    show_tenant,
    show_usage,
    suspend_tenant,
)
from ragstone.serve.cli.commands.verify import check, verify
from ragstone.serve.cli.exits import broken_pipe, report_error, report_problem
from ragstone.serve.cli.source_settings import list_kinds

USE, DATA, SETUP = "Use", "Data", "Set-up and checks"

app = typer.Typer(name="ragstone", context_settings={"help_option_names": ["-h", "--help"]})
documents_app = typer.Typer()
sources_app = typer.Typer()
jobs_app = typer.Typer()
kb_app = typer.Typer()
corpus_app = typer.Typer(help="Build a collection from one corpus file.")
models_app = typer.Typer()
feedback_app = typer.Typer()
golden_app = typer.Typer()
conversations_app = typer.Typer()
tenants_app = typer.Typer()
shop_app = typer.Typer(help="Products, services and appointments of a shop.")
keys_app = typer.Typer()
agent_app = typer.Typer(help="Configure the customer-service agent.")


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Search your documents and get answers with the source of every sentence, on your own machine.

    Start with `ragstone demo`, then `ragstone ingest PATH`.
    """
    if version:
        typer.echo(f"ragstone {ragstone.__version__}")
        raise typer.Exit
    help_by_default(context)


for name, body, panel in (
    ("demo", demo, USE),
    ("ingest", ingest, USE),
    ("search", search, USE),
    ("ask", ask, USE),
    ("verify", verify, USE),
    ("check", check, USE),
    ("research", research, USE),
    ("explain", explain, USE),
    ("article", article, USE),
    ("chat", chat, USE),
    ("stats", stats, DATA),
    ("usage", show_usage, DATA),
    ("worker", work, DATA),
    ("export", export_archive, DATA),
    ("import", import_archive, DATA),
    ("migrate", migrate, DATA),
    ("reembed", reembed, DATA),
    ("serve", serve, SETUP),
    ("mcp", serve_mcp, SETUP),
    ("eval", evaluate, SETUP),
    ("tune", tune, SETUP),
    ("gaps", list_gaps, SETUP),
    ("config", config, SETUP),
    ("doctor", doctor, SETUP),
    ("audit", audit, SETUP),
    ("alerts", list_alerts, SETUP),
):
    command(app, name, panel=panel)(body)

default_command(documents_app)(list_documents)
command(documents_app, "show")(show_document)
command(documents_app, "chunks")(show_chunks)
command(documents_app, "delete")(delete_documents)
app.add_typer(documents_app, name="documents", rich_help_panel=DATA)

default_command(sources_app)(list_sources)
command(sources_app, "add")(add_source)
command(sources_app, "show")(show_source)
command(sources_app, "sync")(sync_sources)
command(sources_app, "pause")(pause_source)
command(sources_app, "resume")(resume_source)
command(sources_app, "remove")(remove_source)
command(sources_app, "kinds")(list_kinds)
app.add_typer(sources_app, name="sources", rich_help_panel=DATA)

default_command(jobs_app)(list_jobs)
command(jobs_app, "show")(show_job)
command(jobs_app, "cancel")(cancel_jobs)
command(jobs_app, "retry")(retry_jobs)
command(jobs_app, "notices")(list_notices)
app.add_typer(jobs_app, name="jobs", rich_help_panel=DATA)

default_command(kb_app)(list_kbs)
command(kb_app, "collections")(list_collections)
command(kb_app, "rename")(rename_kb)
command(kb_app, "delete")(delete_kb)
command(kb_app, "reindex")(reindex_kb)
command(kb_app, "resync")(resync_kb)
app.add_typer(kb_app, name="kb", rich_help_panel=DATA)

corpus_app.callback(invoke_without_command=True)(help_by_default)
command(corpus_app, "build")(build_corpus)
command(corpus_app, "show")(show_corpus)
command(corpus_app, "chunk")(show_chunk)
app.add_typer(corpus_app, name="corpus", rich_help_panel=DATA)

default_command(keys_app)(list_keys)
command(keys_app, "create")(create_key)
command(keys_app, "rotate")(rotate_key)
command(keys_app, "revoke")(revoke_key)
command(keys_app, "encryption")(new_encryption_key)
command(keys_app, "rotate-encryption")(rotate_encryption)
app.add_typer(keys_app, name="keys", rich_help_panel=SETUP)

default_command(agent_app, "show")(show_agent)
command(agent_app, "set")(set_agent)
command(agent_app, "analytics")(show_analytics)
app.add_typer(agent_app, name="agent", rich_help_panel=SETUP)

default_command(tenants_app)(list_tenants)
command(tenants_app, "create")(create_tenant)
command(tenants_app, "show")(show_tenant)
command(tenants_app, "rename")(rename_tenant)
command(tenants_app, "suspend")(suspend_tenant)
command(tenants_app, "resume")(resume_tenant)
command(tenants_app, "set")(set_tenant)
command(tenants_app, "delete")(delete_tenant)
app.add_typer(tenants_app, name="tenants", rich_help_panel=DATA)

default_command(feedback_app)(list_feedback)
command(feedback_app, "add")(add_feedback)
command(feedback_app, "searches")(list_searches)
command(feedback_app, "report")(report_feedback)
command(feedback_app, "dictionary")(learn_dictionary)
app.add_typer(feedback_app, name="feedback", rich_help_panel=SETUP)

default_command(conversations_app)(list_conversations)
command(conversations_app, "show")(show_conversation)
command(conversations_app, "forget")(forget_conversation)
app.add_typer(conversations_app, name="conversations", rich_help_panel=DATA)

default_command(shop_app, "products")(list_products)
command(shop_app, "product")(show_product)
command(shop_app, "put-product")(put_product)
command(shop_app, "services")(list_services)
command(shop_app, "service")(show_service)
command(shop_app, "put-service")(put_service)
command(shop_app, "remove")(remove_entry)
command(shop_app, "import")(import_table)
command(shop_app, "slots")(list_slots)
command(shop_app, "book")(book_slot)
command(shop_app, "appointments")(list_appointments)
command(shop_app, "cancel")(cancel_appointment)
app.add_typer(shop_app, name="shop", rich_help_panel=DATA)

default_command(golden_app)(list_golden)
command(golden_app, "make")(make_golden)
command(golden_app, "add")(add_golden)
command(golden_app, "remove")(remove_golden)
app.add_typer(golden_app, name="golden", rich_help_panel=SETUP)

default_command(models_app)(list_models)
command(models_app, "pull")(pull_model)
app.add_typer(models_app, name="models", rich_help_panel=SETUP)


def run(arguments: list[str] | None = None) -> None:
    """The entry point: runs one command and ends the process with its exit code."""
    sys.exit(main(sys.argv[1:] if arguments is None else arguments))


def main(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # A file name may hold what no encoding has.
    app.rich_markup_mode = "rich" if sys.stdout.isatty() else None
    try:
        return _call(arguments)
    except BrokenPipeError:
        return broken_pipe()


def _call(arguments: list[str]) -> int:
    as_json, debug = "--json" in arguments, "--debug" in arguments
    try:
        program = typer.main.get_command(_select_program(arguments))
        code = program.main(arguments, prog_name="ragstone", standalone_mode=False)
    except typer.TyperException as error:
        report_problem("usage", error.format_message(), _way_out(error, arguments), as_json=as_json)
        return error.exit_code
    except typer.Abort as error:
        return report_error(KeyboardInterrupt(str(error)), as_json=as_json, debug=debug)
    return code if isinstance(code, int) else 0


def _way_out(error: typer.TyperException, arguments: list[str]) -> str:
    called = next((argument for argument in arguments if not argument.startswith("-")), "")
    if arguments[0].startswith("-") and called:
        return "options stand behind the command, as in: ragstone search WORDS --data-dir DIR"
    context = getattr(error, "ctx", None)
    return f"{context.command_path} --help" if context else "ragstone --help"


def _select_program(arguments: list[str]) -> typer.Typer:
    """The program with the command or group that is called and no other: making all of them ready takes its time."""
    part = copy.copy(app)
    part.registered_commands = [command for command in app.registered_commands if command.name in arguments[:1]]
    part.registered_groups = [group for group in app.registered_groups if group.name in arguments[:1]]
    return part if part.registered_commands or part.registered_groups else app
