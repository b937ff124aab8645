"""Gives a collection another name, and dies by SIGKILL at the point that it is told."""

from __future__ import annotations

import sys

from tests.faults.corpus_process import engine, lay

if __name__ == "__main__":
    with engine("sqlite") as stone:
        lay(sys.argv[1])
        stone.rename_kb("corpus_embeddings", "game")
