"""`ragstone serve` as a process: its first start makes keys, and a signal ends it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import httpx2
from tests.warm import warm_python

from ragstone import Settings, open_engine
from ragstone.core.jobs import Job

SECONDS = 180
DOCS = Path(__file__).parents[3] / "docs"
ADDRESS = "http://localhost:8000"


def start(data_dir: Path, python: Sequence[str]) -> subprocess.Popen[str]:
    command = [*python, "-m", "ragstone", "serve", "--port", "0", "--json", "--data-dir", str(data_dir)]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )


def run_examples(page: str, url: str, key: str, folder: Path) -> list[str]:
    """What the calls of a page print, in order."""
    text = (DOCS / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    calls = [block.replace(ADDRESS, url) for block in blocks if "curl" in block]
    environment = os.environ | {"KEY": key}
    shell = ["sh", "-euc"]
    return [
        subprocess.run([*shell, call], cwd=folder, env=environment, check=True, capture_output=True, text=True).stdout
        for call in calls
    ]


def begin_long_job(client: httpx2.Client, headers: dict[str, str]) -> str:
    """Upload a document that takes long, wait until its job runs, and return the job's id."""
    words = " ".join(f"The keeper of lighthouse {number} writes down the wind." for number in range(6_000))
    taken = client.post("/v1/documents", headers=headers, files={"file": ("long.txt", words.encode())})
    job_id = taken.json()["job_id"]
    while client.get(f"/v1/jobs/{job_id}", headers=headers).json()["state"] == "pending":
        time.sleep(0.02)
    return str(job_id)


async def read_job(data_dir: Path, job_id: str) -> Job:
    async with open_engine(Settings(data_dir=data_dir)) as engine:
        return await engine.workspace("default").jobs.get(job_id)


def test_a_service_starts_answers_as_the_guide_says_and_stops(data_dir: Path, tmp_path: Path) -> None:
    keys: dict[str, str] = {}
    job = ""
    for turn in range(2):
        process = start(data_dir, warm_python() if turn else [sys.executable])
        try:
            assert process.stdout is not None
            told = json.loads(process.stdout.readline())
            assert set(told["keys"]) == (set() if turn else {"default", "(operator)"}), "keys are shown once"
            keys |= told["keys"]
            with httpx2.Client(base_url=told["url"], timeout=SECONDS) as client:
                headers = {"Authorization": f"Bearer {keys['default']}"}
                while (ready := client.get("/readyz").json())["components"]["embedder"] == "loading":
                    assert ready["status"] == "unavailable"
                    time.sleep(1)  # each request is a line of the log, which nobody reads yet: a full pipe would block
                works = dict.fromkeys(("ledger", "embedder", "disk", "worker"), "ok")
                assert ready == {"status": "ok", "components": {**works, "index": "ok" if turn else "empty"}}
                assert client.get("/v1/usage", headers=headers).status_code == 200
                if not turn:
                    calls = run_examples("howto/service.md", told["url"], keys["default"], tmp_path)
                    taken, progress, asked, exported = calls
                    assert json.loads(taken)["status"] == "pending"
                    assert '"state": "completed"' in progress.strip().split("\n\n")[-1]
                    assert "Refunds take five working days. [1]" in asked
                    assert json.loads(exported)["source"] == "export"
                found = client.post("/v1/search", headers=headers, json={"query": "How long do refunds take?"})
                assert found.json()["hits"][0]["text"].endswith("five working days.")
                if turn:
                    (shown,) = run_examples("quickstart.md", told["url"], keys["default"], tmp_path)
                    assert '"state": "completed"' in shown
                    assert "Refunds take five working days. [1]" in shown
                    job = begin_long_job(client, headers)
        finally:
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=SECONDS)
        lines = [json.loads(line) for line in said.splitlines()]
        assert (process.returncode, {line["level"] for line in lines}) == (0, {"info"})
        assert {"GET", "POST"} <= {line.get("method") for line in lines}
        assert not any(key in said for key in keys.values())
    left = asyncio.run(read_job(data_dir, job))
    assert (left.state, left.attempts) == ("pending", 0), "it is handed back, as if it had not been begun"
