"""`python -m bench.service`: fifty customers of ten shops, each with a message every five seconds.

`ragstone serve` answers them with a scripted language model that quotes the first passages it is given. Every shop has
words of its own, in a document, in a product and in a page of the web; a word of another shop in a prompt or in a reply
is a leak. Messages are sent when their time has come, whether or not earlier ones were answered.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import yaml
from tests.doubles.openai import OpenAIDouble, Reply, Request, chat_reply

from bench.report import machine
from ragstone.agents.service.agent import change_agent
from ragstone.core.keys import NewApiKey
from ragstone.core.shop import Product
from ragstone.engine.engine import Engine, open_engine
from ragstone.engine.workspace import Workspace
from ragstone.samples import shop
from ragstone.settings.tree import Settings

TENANTS, CUSTOMERS, EVERY = 10, 50, 5.0
GOAL_MS = 300
CANARY = re.compile(r"canary-(\d+)-[a-z]+")
MESSAGES = (
    *shop.CONVERSATIONS,
    "Tell me about the Canary Lamp",
    "What is the secret word of the house?",
    "How much is Rose Velvet?",
    "What does the web say about the Canary Lamp? What is it made of?",
)
_PASSAGE = re.compile(r'<passage number="(\d+)"[^>]*>\n(.*?)\n</passage>', re.S)


@dataclass
class Reading:
    """The replies that came, by what they took, and what went wrong."""

    retrieval_ms: list[float] = field(default_factory=list)
    reply_ms: list[float] = field(default_factory=list)
    statuses: list[str] = field(default_factory=list)
    leaks: list[str] = field(default_factory=list)
    own_words: int = 0
    """Replies that have a word of their own shop, as they should."""
    degraded: int = 0
    """Replies for which a source could not be asked in time."""


class QuotingModel:
    """Replies with the first sentence of the first two passages, and looks for words of more than one shop."""

    def __init__(self) -> None:
        self.leaks: list[str] = []
        self.requests = 0

    def __call__(self, request: Request) -> Reply:
        self.requests += 1
        text = "\n".join(message["content"] for message in request.body["messages"])
        shops = set(CANARY.findall(text))
        if len(shops) > 1:
            self.leaks.append(f"a prompt has words of the shops {sorted(shops)}")
        passages = _PASSAGE.findall(text)
        if not passages:
            return chat_reply("{}")
        return chat_reply(" ".join(f"{body.split('. ')[0].rstrip('.')} [{n}]." for n, body in passages[:2]))


def tenant_name(number: int) -> str:
    """Return the name of a shop."""
    return f"shop-{number}"


async def fill_tenant(workspace: Workspace, number: int) -> None:
    """Put the demo shop and some words of its own into a tenant."""
    folder = workspace.settings.data_dir.parent / f"house-{number}"
    folder.mkdir(exist_ok=True)
    words = f"# The house\n\nThe secret word of the house is canary-{number}-document. It is said at the door.\n"
    (folder / "house.md").write_text(words, encoding="utf-8")
    await workspace.documents.ingest(*shop.documents(), folder / "house.md")
    await workspace.shop.put_products(shop.products())
    await workspace.shop.put_services(shop.services())
    said = f"A lamp called canary-{number}-product."
    await workspace.shop.put_product(
        Product("lamp", "Canary Lamp", "Lamps", f"House {number}", said, Decimal(number + 1))
    )
    await change_agent(workspace, {"enable_internet_enrichment": True})


def web_pages() -> dict[str, Any]:
    """Return the pages of the demo, and one about the lamp of each shop."""
    pages: dict[str, Any] = json.loads(shop.web_pages().read_text(encoding="utf-8"))
    for number in range(TENANTS):
        snippet = f"The Canary Lamp of house {number} is made of canary-{number}-web glass."
        page = {"title": "Canary Lamp", "url": f"https://lamps.example/{number}", "snippet": snippet}
        pages[f"Canary Lamp Lamps House {number} specifications features"] = [page]
    return pages


async def prepare(folder: Path, settings: Settings) -> list[str]:
    """Fill the shops; return a key of each."""
    async with open_engine(settings) as engine:
        return [await _open_shop(engine, number) for number in range(TENANTS)]


async def _open_shop(engine: Engine, number: int) -> str:
    name = tenant_name(number)
    await engine.tenants.create(name)
    await fill_tenant(engine.workspace(name), number)
    return (await engine.keys.create(NewApiKey(name, ("read",)))).token


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Run `ragstone serve` with the settings of a folder on two cores; give its address."""
    command = [
        sys.executable,
        "-m",
        "ragstone",
        "serve",
        "--port",
        "0",
        "--json",
        "--config",
        str(folder / "ragstone.yaml"),
    ]
    cores = sorted(os.sched_getaffinity(0))[:2]
    with (folder / "serve.log").open("w") as log:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, preexec_fn=lambda: os.sched_setaffinity(0, cores)
        )
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


async def measure(url: str, keys: Sequence[str], seconds: float) -> Reading:
    """Let all customers send their messages for some seconds."""
    reading = Reading()
    async with httpx2.AsyncClient(base_url=url, timeout=60, limits=httpx2.Limits(max_connections=200)) as client:
        for number, key in enumerate(keys):  # a shop's first message reads its index
            await _send(client, number, key, MESSAGES[0], f"warm-{number}", Reading())
        await asyncio.gather(*(_customer(client, keys, number, seconds, reading) for number in range(CUSTOMERS)))
    return reading


async def _customer(
    client: httpx2.AsyncClient, keys: Sequence[str], number: int, seconds: float, reading: Reading
) -> None:
    chance, due = random.Random(number), time.monotonic() + EVERY * number / CUSTOMERS
    end, tenant, pending = time.monotonic() + seconds, number % TENANTS, set[asyncio.Task[None]]()
    while due < end:
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        message = chance.choice(MESSAGES)
        pending.add(asyncio.create_task(_send(client, tenant, keys[tenant], message, f"customer-{number}", reading)))
        due += EVERY
    await asyncio.gather(*pending)


async def _send(
    client: httpx2.AsyncClient, tenant: int, key: str, message: str, conversation: str, reading: Reading
) -> None:
    started = time.monotonic()
    body = {"message": message, "conversation": conversation}
    answer = await client.post("/v1/chat", headers={"Authorization": f"Bearer {key}"}, json=body)
    reading.reply_ms.append((time.monotonic() - started) * 1000)
    if answer.status_code != 200:
        reading.statuses.append(str(answer.status_code))
        return
    reply = answer.json()
    reading.statuses.append(reply["status"])
    reading.retrieval_ms.append(reply["retrieval_ms"])
    reading.degraded += any(note.startswith(("documents:", "database:", "web:")) for note in reply["degraded"])
    shops = set(CANARY.findall(answer.text))
    reading.own_words += shops == {str(tenant)}
    if shops - {str(tenant)}:
        reading.leaks.append(f"shop {tenant} was told words of {sorted(shops)}")


def report(reading: Reading, model: QuotingModel, seconds: float) -> tuple[str, bool]:
    """Return the result in words, and whether every figure is as it should be."""
    low, high = np.percentile(reading.retrieval_ms, [50, 95])
    whole, most = np.percentile(reading.reply_ms, [50, 95])
    failed = [status for status in reading.statuses if status.isdigit()]
    leaks = [*reading.leaks, *model.leaks]
    lines = [
        f"{machine()}; {CUSTOMERS} customers of {TENANTS} shops, a message every {EVERY:g} s each, for {seconds:g} s",
        f"messages: {len(reading.statuses)}, of them failed: {len(failed)}, degraded: {reading.degraded}",
        f"replies: { {status: reading.statuses.count(status) for status in sorted(set(reading.statuses))} }",
        f"retrieval: p50 {low:.0f} ms, p95 {high:.0f} ms (goal: below {GOAL_MS} ms)",
        f"whole reply over HTTP: p50 {whole:.0f} ms, p95 {most:.0f} ms; prompts to the model: {model.requests}",
        f"words of the own shop in {reading.own_words} replies, of another shop in {len(leaks)}: {leaks[:3]}",
    ]
    met = bool(high < GOAL_MS and not leaks and not failed and reading.own_words)
    return "\n".join([*lines, "met" if met else "MISSED"]), met


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print the result; return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.service")
    parser.add_argument("--seconds", type=float, default=120)
    options = parser.parse_args(arguments)
    model = QuotingModel()
    with tempfile.TemporaryDirectory() as temporary, OpenAIDouble(model) as double:
        folder = Path(temporary)
        pages = folder / "web.json"
        pages.write_text(json.dumps(web_pages()), encoding="utf-8")
        values: dict[str, Any] = {
            "data_dir": str(folder / "data"),
            "web": {"kind": "fixture", "path": str(pages)},
            "llm": {"model": "quoting", "base_url": double.url, "retries": 0},
        }
        (folder / "ragstone.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
        keys = asyncio.run(prepare(folder, Settings.model_validate(values)))
        model.leaks.clear()
        model.requests = 0
        with serve(folder) as url:
            reading = asyncio.run(measure(url, keys, options.seconds))
    text, met = report(reading, model, options.seconds)
    print(text)
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
