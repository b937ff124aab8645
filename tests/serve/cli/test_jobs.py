"""`jobs` and `worker`: what is queued, who works on it, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import pty
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console
from rich.progress import Progress, TextColumn
from tests.warm import warm_python

from ragstone.core.errors import ModelUnavailable
from ragstone.core.jobs import Job, JobProgress
from ragstone.core.model_types import Embeddings
from ragstone.core.types import Role
from ragstone.serve.cli.render.jobs import QueueBars
from ragstone.testing.fakes import FakeEmbedder

if TYPE_CHECKING:
    from tests.serve.cli.conftest import Cli

MOMENT = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
JOB = Job(
    id="j1", kind="document", kb="demo", state="running", priority=5, document_id="d1", source="wiki",
    external_id="fares.md", uri="wiki/fares.md", content_hash="ab", size=120, facts={},
    progress=JobProgress("embed", percent=55), attempts=1, token=3, worker="w", error_code="", error="",
    created_at=MOMENT, started_at=MOMENT, finished_at=None,
)  # fmt: skip
WORKER = """
import sys
from ragstone.testing.fakes import FakeEmbedder
import ragstone.engine.components
from ragstone.serve.cli.main import run
class Model(FakeEmbedder):
    async def embed(self, texts, role="document"):
        if "wait" in sys.argv:
            import asyncio
            print("embedding", flush=True)
            await asyncio.Event().wait()
        return await super().embed(texts, role)
model = Model()
ragstone.engine.components.build_embedder = lambda _: model
run([one for one in sys.argv[1:] if one != "wait"])
"""


def test_the_totals_are_those_of_the_source(queued: Cli) -> None:
    ran = queued("jobs", "--source", "elsewhere", "--json")
    assert (ran.code, ran.json) == (4, {"jobs": [], "counts": {}})
    assert queued("jobs", "--source", "files").out.splitlines()[-1] == "In all: 2 pending."


def test_a_job_that_failed_says_what_to_do(queued: Cli) -> None:
    queued("worker", "--until-idle")
    advice = "open it in a viewer and save or print it to a new PDF"
    (job,) = queued("jobs", "--state", "failed", "--json").json["jobs"]
    assert job["hint"] == advice
    assert f"hint: {advice}" in queued("jobs").out.splitlines()
    assert f"hint      {advice}" in queued("jobs", "show", job["id"]).out.splitlines()


@pytest.fixture
def queued(cli: Cli, pages: Path) -> Cli:
    """The command line with one good and one broken file in the queue."""
    (pages / "broken.pdf").write_bytes(b"%PDF-1.7 and then nothing")
    assert cli("ingest", "--queue", pages / "harbour.txt", pages / "broken.pdf").code == 0
    return cli


def _by_uri(cli: Cli) -> dict[str, Any]:
    return {job["uri"]: job for job in cli("jobs", "--json").json["jobs"]}


def test_queued_files_are_jobs(queued: Cli) -> None:
    shape = queued("jobs", "--json").json
    assert [(job["uri"], job["state"], job["attempts"]) for job in shape["jobs"]] == [
        ("pages/broken.pdf", "pending", 0),
        ("pages/harbour.txt", "pending", 0),
    ]
    assert shape["counts"] == {"pending": 2}


def test_a_worker_ends_every_job(queued: Cli) -> None:
    ran = queued("worker", "--until-idle")
    assert (ran.code, ran.out) == (0, "Nothing is left to do: 1 completed, 1 failed.\n")
    told = ran.err.splitlines()
    assert told[0] == "worker: 1 job at a time, until nothing is left"
    assert told[1:] == ["completed: pages/harbour.txt", told[2]]
    assert told[2].startswith("failed: pages/broken.pdf: pages/broken.pdf ")
    jobs = _by_uri(queued)
    assert (jobs["pages/harbour.txt"]["state"], jobs["pages/harbour.txt"]["progress"]) == ("completed", 100)
    assert (jobs["pages/broken.pdf"]["state"], jobs["pages/broken.pdf"]["error_code"]) == ("failed", "parse_failed")
    assert queued("worker", "--until-idle", "--json").json == {"stopped": False, "completed": 0, "failed": 0}


def test_a_worker_is_quiet_when_asked_to_be(queued: Cli) -> None:
    assert queued("worker", "--until-idle", "--workers", "2", "--quiet").err == ""


def test_with_a_tenant_a_worker_leaves_the_others_alone(queued: Cli) -> None:
    assert queued("worker", "--until-idle", "--tenant", "other").code == 0
    assert queued("jobs", "--json").json["counts"] == {"pending": 2}
    assert queued("worker", "--until-idle", "--tenant", "default").code == 0
    assert queued("jobs", "--json").json["counts"] == {"completed": 1, "failed": 1}


def test_a_worker_without_its_model_says_so_and_gives_the_jobs_back(queued: Cli, embedder: FakeEmbedder) -> None:
    embedder.errors = [ModelUnavailable("the weights are not here", hint="get them")] * 9
    ran = queued("worker", "--until-idle")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.splitlines()[-2:] == ["error: the weights are not here", "hint: get them"]
    assert _by_uri(queued)["pages/harbour.txt"]["state"] == "pending"


def test_the_table_for_people(queued: Cli) -> None:
    queued("worker", "--until-idle")
    lines = queued("jobs").out.splitlines()
    assert lines[0].split() == ["id", "state", "%", "what", "error"]
    assert lines[1].split()[1:4] == ["failed", "0", "pages/broken.pdf"]
    assert lines[2].split()[1:] == ["completed", "100", "pages/harbour.txt"]
    assert lines[-1] == "In all: 1 completed, 1 failed."


@pytest.mark.parametrize(
    ("arguments", "uris"),
    [
        (("--state", "failed"), ["pages/broken.pdf"]),
        (("--source", "files", "-n", "1"), ["pages/broken.pdf"]),
        (("--source", "wiki"), []),
        (("--tenant", "other"), []),
    ],
)
def test_some_of_the_jobs(queued: Cli, arguments: tuple[str, ...], uris: list[str]) -> None:
    queued("worker", "--until-idle")
    ran = queued("jobs", *arguments, "--json")
    assert [job["uri"] for job in ran.json["jobs"]] == uris
    assert ran.code == (0 if uris else 4)


def test_one_job(queued: Cli) -> None:
    queued("worker", "--until-idle")
    broken = _by_uri(queued)["pages/broken.pdf"]
    assert queued("jobs", "show", broken["id"], "--json").json == broken
    lines = queued("jobs", "show", broken["id"]).out.splitlines()
    assert lines[:3] == [f"job       {broken['id']}", "state     failed", "what      document pages/broken.pdf"]
    assert f"error     parse_failed: {broken['error']}" in lines
    ran = queued("jobs", "show", "nope")
    assert (ran.code, ran.err) == (4, "error: no job nope\nhint: list them with: ragstone jobs\n")


def test_a_cancelled_job_is_not_worked_on(queued: Cli) -> None:
    jobs = _by_uri(queued)
    ran = queued("jobs", "cancel", jobs["pages/harbour.txt"]["id"], "--json")
    assert (ran.code, ran.json["cancelled"]) == (0, [jobs["pages/harbour.txt"]["id"]])
    queued("worker", "--until-idle")
    assert _by_uri(queued)["pages/harbour.txt"]["state"] == "cancelled"
    assert queued("stats", "--json").json["documents"] == 0


def test_what_cannot_be_cancelled_is_named(queued: Cli) -> None:
    queued("worker", "--until-idle")
    done = _by_uri(queued)["pages/harbour.txt"]["id"]
    ran = queued("jobs", "cancel", done)
    assert (ran.code, ran.out) == (1, "0 jobs cancelled.\n")
    assert ran.err == f"warning: job {done} was not cancelled: it has ended\n"
    ran = queued("jobs", "cancel", done, "nope", "--json")
    assert (ran.code, ran.json) == (4, {"cancelled": [], "not_cancelled": [done], "not_found": ["nope"]})


def test_failed_jobs_are_tried_again(queued: Cli) -> None:
    queued("worker", "--until-idle")
    broken = _by_uri(queued)["pages/broken.pdf"]["id"]
    ran = queued("jobs", "retry", "--failed", "--json")
    assert (ran.code, ran.json) == (0, {"retried": [broken], "not_retried": [], "not_found": []})
    assert queued("jobs", "--json").json["counts"] == {"pending": 1, "completed": 1}
    assert queued("worker", "--until-idle", "--json").json["failed"] == 1
    assert queued("jobs", "retry", broken).out == "1 job retried.\n"


@pytest.mark.parametrize("arguments", [(), ("--failed", "j1")])
def test_retrying_needs_jobs_or_all_that_failed(queued: Cli, arguments: tuple[str, ...]) -> None:
    ran = queued("jobs", "retry", *arguments)
    assert (ran.code, ran.err.splitlines()[0]) == (2, "error: name jobs or say --failed, one of the two")


@pytest.mark.req("R-ING-20", "R-ING-21")
def test_notices_tell_how_uploads_ended(queued: Cli) -> None:
    assert queued("jobs", "notices").out == "No notices.\n"
    queued("worker", "--until-idle")
    shape = queued("jobs", "notices", "--unread", "--mark-read", "--json").json["notices"]
    assert {notice["uri"]: notice["kind"] for notice in shape} == {
        "pages/harbour.txt": "completed",
        "pages/broken.pdf": "failed",
    }
    assert next(notice for notice in shape if notice["kind"] == "failed")["message"].startswith("pages/broken.pdf")
    assert queued("jobs", "notices", "--unread").code == 4
    header, *rows = queued("jobs", "notices", "-n", "1").out.splitlines()
    assert header.split() == ["when", "how", "what", "message", "read"]
    assert [row.split()[-1] for row in rows] == ["yes"]


def test_watching_waits_for_the_end(queued: Cli, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*warm_python(), "-m", "ragstone", "jobs", "--watch"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert process.stderr.readline() == (
        "warning: nobody works on the queue at the moment; start with: ragstone worker\n"
    )
    assert queued("worker", "--until-idle").code == 0
    out, _ = process.communicate(timeout=240)
    assert out.splitlines()[-1] == "In all: 1 completed, 1 failed."


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_that_is_told_to_stop_hands_back_what_it_holds(
    queued: Cli, tmp_path: Path, number: signal.Signals
) -> None:
    process = subprocess.Popen(
        [*warm_python(), "-c", WORKER, "worker", "wait"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={name: value for name, value in os.environ.items() if not name.startswith("RAGSTONE_")},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "embedding\n"
    process.send_signal(number)
    out, err = process.communicate(timeout=240)
    assert (process.returncode, out.splitlines()[-1][:9]) == (0, "Stopped: ")
    assert "Traceback" not in err
    harbour = _by_uri(queued)["pages/harbour.txt"]
    assert (harbour["state"], harbour["attempts"], harbour["error"]) == ("pending", 0, "")
    assert queued("worker", "--until-idle", "--json").json["completed"] == 1


def test_an_interrupted_sync_says_what_is_left_and_goes_on(
    cli: Cli, pages: Path, embedder: FakeEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def interrupt(texts: Sequence[str], role: Role = "document") -> Embeddings:
        os.kill(os.getpid(), signal.SIGINT)
        return await asyncio.Event().wait()  # type: ignore[return-value]

    cli("sources", "add", "files", "wiki", f"path={pages}")
    with monkeypatch.context() as patch:
        patch.setattr(embedder, "embed", interrupt)
        ran = cli("sources", "sync", "wiki")
    assert (ran.code, ran.out) == (130, "")
    assert ran.err == (
        "interrupted: 3 jobs still to do; what is done stays\n"
        "hint: the same command goes on, or: ragstone worker --until-idle\n"
    )
    assert cli("jobs", "--json").json["counts"] == {"completed": 1, "pending": 3}
    assert cli("sources", "sync", "wiki").code == 0
    assert cli("stats", "--json").json["documents"] == 3


def test_a_sync_is_shown_to_who_watches_and_not_on_stdout(queued: Cli, pages: Path, tmp_path: Path) -> None:
    assert queued("sources", "add", "files", "wiki", "path=pages", "glob=*.txt").code == 0
    watcher, terminal = pty.openpty()
    process = subprocess.Popen(
        [*warm_python(), "-c", WORKER, "sources", "sync", "wiki"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=terminal,
        text=True,
    )
    os.close(terminal)
    shown = b""
    with contextlib.suppress(OSError):  # the last writer is gone
        while part := os.read(watcher, 4096):
            shown += part
    os.close(watcher)
    out, _ = process.communicate(timeout=240)
    assert process.returncode == 0
    assert b"jobs" in shown
    assert [line.split() for line in out.splitlines()] == [
        ["source", "added/updated", "unchanged", "removed", "failed"],
        ["wiki", "1", "0", "0", "0"],
    ]


def _drawn(show: Callable[[QueueBars], None], before: dict[str, int]) -> list[str]:
    written = io.StringIO()
    columns = (TextColumn("{task.description}", markup=False), TextColumn("{task.fields[note]}", markup=False))
    bars = Progress(*columns, console=Console(file=written, width=100), auto_refresh=False)
    show(QueueBars(bars, before))
    Console(file=written, width=100).print(bars.make_tasks_table(bars.tasks))
    return [" ".join(line.split()) for line in written.getvalue().splitlines()]


def test_the_bars_count_from_where_they_began() -> None:
    counts = {"pending": 5, "running": 1, "completed": 13, "failed": 3}
    lines = _drawn(lambda view: view.show(counts, [JOB]), {"completed": 10, "failed": 2})
    assert lines == ["jobs 4/10, 1 failed", "wiki/fares.md embed 55%"]


def test_a_line_goes_when_its_job_has_ended() -> None:
    def show(view: QueueBars) -> None:
        view.show({"running": 1}, [JOB])
        view.show({"running": 1, "completed": 1}, [replace(JOB, id="j2", uri="x" * 90, progress=JobProgress())])

    assert _drawn(show, {}) == ["jobs 1/2", f"…{'x' * 39} waiting 0%"]


def test_jobs_that_are_forgotten_do_not_count_backwards() -> None:
    assert _drawn(lambda view: view.show({"completed": 3}, []), {"completed": 10}) == ["jobs 0/0"]
