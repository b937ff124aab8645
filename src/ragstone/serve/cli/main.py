"""The `ragstone` program: all commands, and what happens when one is called wrongly."""

from __future__ import annotations

import copy
import io
import sys
from typing import Annotated

import typer

import ragstone
from ragstone.serve.cli.agents import article, chat, shop
from ragstone.serve.cli.command import command, default_command, help_by_default
from ragstone.serve.cli.commands import (
    archive,
    ask,
    audit,
    conversations,
    corpus,
    demo,
    documents,
    evaluate,
    feedback,
    ingest,
    installation,
    jobs,
    kb,
    keys,
    mcp,
    migrate,
    reembed,
    search,
    serve,
    sources,
    sync,
    tenants,
    verify,
)
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
shop_app = typer.Typer(help="Manage the products, services and appointments of a shop.")
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
    ("demo", demo.demo, USE),
    ("ingest", ingest.ingest, USE),
    ("search", search.search, USE),
    ("ask", ask.ask, USE),
    ("verify", verify.verify, USE),
    ("check", verify.check, USE),
    ("research", search.research, USE),
    ("explain", search.explain, USE),
    ("article", article.article, USE),
    ("chat", chat.chat, USE),
    ("stats", kb.stats, DATA),
    ("usage", tenants.show_usage, DATA),
    ("worker", jobs.work, DATA),
    ("export", archive.export_archive, DATA),
    ("import", archive.import_archive, DATA),
    ("migrate", migrate.migrate, DATA),
    ("reembed", reembed.reembed, DATA),
    ("serve", serve.serve, SETUP),
    ("mcp", mcp.serve_mcp, SETUP),
    ("eval", evaluate.evaluate, SETUP),
    ("tune", evaluate.tune, SETUP),
    ("gaps", feedback.list_gaps, SETUP),
    ("config", installation.config, SETUP),
    ("doctor", installation.doctor, SETUP),
    ("audit", audit.audit, SETUP),
    ("alerts", audit.list_alerts, SETUP),
):
    command(app, name, panel=panel)(body)

default_command(documents_app)(documents.list_documents)
command(documents_app, "show")(documents.show_document)
command(documents_app, "chunks")(documents.show_chunks)
command(documents_app, "delete")(documents.delete_documents)
app.add_typer(documents_app, name="documents", rich_help_panel=DATA)

default_command(sources_app)(sources.list_sources)
command(sources_app, "add")(sources.add_source)
command(sources_app, "show")(sources.show_source)
command(sources_app, "sync")(sync.sync_sources)
command(sources_app, "pause")(sources.pause_source)
command(sources_app, "resume")(sources.resume_source)
command(sources_app, "remove")(sources.remove_source)
command(sources_app, "kinds")(list_kinds)
app.add_typer(sources_app, name="sources", rich_help_panel=DATA)

default_command(jobs_app)(jobs.list_jobs)
command(jobs_app, "show")(jobs.show_job)
command(jobs_app, "cancel")(jobs.cancel_jobs)
command(jobs_app, "retry")(jobs.retry_jobs)
command(jobs_app, "notices")(jobs.list_notices)
app.add_typer(jobs_app, name="jobs", rich_help_panel=DATA)

default_command(kb_app)(kb.list_kbs)
command(kb_app, "collections")(kb.list_collections)
command(kb_app, "rename")(kb.rename_kb)
command(kb_app, "delete")(kb.delete_kb)
command(kb_app, "reindex")(kb.reindex_kb)
command(kb_app, "resync")(kb.resync_kb)
app.add_typer(kb_app, name="kb", rich_help_panel=DATA)

corpus_app.callback(invoke_without_command=True)(help_by_default)
command(corpus_app, "build")(corpus.build_corpus)
command(corpus_app, "show")(corpus.show_corpus)
command(corpus_app, "chunk")(corpus.show_chunk)
app.add_typer(corpus_app, name="corpus", rich_help_panel=DATA)

default_command(keys_app)(keys.list_keys)
command(keys_app, "create")(keys.create_key)
command(keys_app, "rotate")(keys.rotate_key)
command(keys_app, "revoke")(keys.revoke_key)
command(keys_app, "encryption")(installation.new_encryption_key)
command(keys_app, "rotate-encryption")(installation.rotate_encryption)
app.add_typer(keys_app, name="keys", rich_help_panel=SETUP)

default_command(agent_app, "show")(chat.show_agent)
command(agent_app, "set")(chat.set_agent)
command(agent_app, "analytics")(chat.show_analytics)
app.add_typer(agent_app, name="agent", rich_help_panel=SETUP)

default_command(tenants_app)(tenants.list_tenants)
command(tenants_app, "create")(tenants.create_tenant)
command(tenants_app, "show")(tenants.show_tenant)
command(tenants_app, "rename")(tenants.rename_tenant)
command(tenants_app, "suspend")(tenants.suspend_tenant)
command(tenants_app, "resume")(tenants.resume_tenant)
command(tenants_app, "set")(tenants.set_tenant)
command(tenants_app, "delete")(tenants.delete_tenant)
app.add_typer(tenants_app, name="tenants", rich_help_panel=DATA)

default_command(feedback_app)(feedback.list_feedback)
command(feedback_app, "add")(feedback.add_feedback)
command(feedback_app, "searches")(feedback.list_searches)
command(feedback_app, "report")(feedback.report_feedback)
command(feedback_app, "dictionary")(feedback.learn_dictionary)
app.add_typer(feedback_app, name="feedback", rich_help_panel=SETUP)

default_command(conversations_app)(conversations.list_conversations)
command(conversations_app, "show")(conversations.show_conversation)
command(conversations_app, "forget")(conversations.forget_conversation)
app.add_typer(conversations_app, name="conversations", rich_help_panel=DATA)

default_command(shop_app, "products")(shop.list_products)
command(shop_app, "product")(shop.show_product)
command(shop_app, "put-product")(shop.put_product)
command(shop_app, "services")(shop.list_services)
command(shop_app, "service")(shop.show_service)
command(shop_app, "put-service")(shop.put_service)
command(shop_app, "remove")(shop.remove_entry)
command(shop_app, "import")(shop.import_table)
command(shop_app, "slots")(shop.list_slots)
command(shop_app, "book")(shop.book_slot)
command(shop_app, "appointments")(shop.list_appointments)
command(shop_app, "cancel")(shop.cancel_appointment)
app.add_typer(shop_app, name="shop", rich_help_panel=DATA)

default_command(golden_app)(feedback.list_golden)
command(golden_app, "make")(feedback.make_golden)
command(golden_app, "add")(feedback.add_golden)
command(golden_app, "remove")(feedback.remove_golden)
app.add_typer(golden_app, name="golden", rich_help_panel=SETUP)

default_command(models_app)(installation.list_models)
command(models_app, "pull")(installation.pull_model)
app.add_typer(models_app, name="models", rich_help_panel=SETUP)


def run(arguments: list[str] | None = None) -> None:
    """Run one command and end the process with its exit code."""
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
        # typer reports a value that is not one of the choices with the kind of the exception before it.
        message = error.format_message().replace("Value error, ", "")
        report_problem("usage", message, _way_out(error, arguments), as_json=as_json)
        return error.exit_code
    except typer.Abort as error:
        return report_error(KeyboardInterrupt(str(error)), as_json=as_json, debug=debug)
    return code if isinstance(code, int) else 0


def _way_out(error: typer.TyperException, arguments: list[str]) -> str:
    called = next((argument for argument in arguments if not argument.startswith("-")), "")
    if arguments[0].startswith("-") and called:
        return "options stand behind the command, as in: ragstone search WORDS --data-dir DIR"
    context = getattr(error, "ctx", None)
    if context is None:
        return "ragstone --help"
    called = context.command_path
    takes = [part.metavar for part in context.command.params if part.param_type_name == "argument"]
    if len(takes) == 1 and "unexpected extra argument" in error.format_message():
        return f'words with blanks between them stand in quotes: {called} "{takes[0].strip("[]")}"'
    return f"{called} --help"


def _select_program(arguments: list[str]) -> typer.Typer:
    """Return the program with only the command or group that is called: making all of them ready takes its time."""
    part = copy.copy(app)
    part.registered_commands = [command for command in app.registered_commands if command.name in arguments[:1]]
    part.registered_groups = [group for group in app.registered_groups if group.name in arguments[:1]]
    return part if part.registered_commands or part.registered_groups else app
