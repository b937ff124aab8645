"""`python -m bench [PART…] [--data DIR] [--json]`: each part in a process of its own, then one table."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from bench.report import Row, machine

Part = Callable[[Path], list[Row]]


def _scale(chunks: int) -> Part:
    def run(folder: Path) -> list[Row]:
        from bench import scale

        return scale.run(chunks)

    return run


def _peers(model: str) -> Part:
    def run(folder: Path) -> list[Row]:
        from bench import peers

        return peers.run(folder, model)

    return run


def _txtai(folder: Path) -> list[Row]:
    from bench import txtai_race

    return txtai_race.run(folder)


def _start(folder: Path) -> list[Row]:
    from bench import start

    return start.run()


def _ingest(folder: Path) -> list[Row]:
    from bench import embedding

    return embedding.ingest(folder)


def _embedder(folder: Path) -> list[Row]:
    from bench import embedding

    return embedding.against_sentence_transformers(folder)


def _enrich(folder: Path) -> list[Row]:
    from bench import enrich

    return enrich.run(folder)


def _sync(folder: Path) -> list[Row]:
    from bench import intake

    return intake.sync(folder)


def _workers(folder: Path) -> list[Row]:
    from bench import intake

    return intake.workers(folder)


def _large(folder: Path) -> list[Row]:
    from bench import intake

    return intake.large(folder)


def _stores(chunks: int) -> Part:
    def run(folder: Path) -> list[Row]:
        from bench import stores

        return stores.run(chunks)

    return run


def _stores_eval(folder: Path) -> list[Row]:
    from bench import stores_eval

    return stores_eval.run(folder)


def _names(folder: Path) -> list[Row]:
    from bench import names

    return names.run(folder.parent / "takaro-docs")


def _kinds(folder: Path) -> list[Row]:
    from bench import kinds

    return kinds.run()


def _takaro(folder: Path) -> list[Row]:
    from bench.takaro import measure

    return measure.run(folder.parent / "takaro-docs")


def _relevance(folder: Path) -> list[Row]:
    from bench import relevance

    return relevance.run(folder)


def _transforms(folder: Path) -> list[Row]:
    from bench import transforms

    return transforms.run(folder)


def _quality(folder: Path) -> list[Row]:
    from bench import quality

    return quality.run(folder)


def _claims(folder: Path) -> list[Row]:
    from bench import claims

    return claims.run(folder)


def _claims_fit(folder: Path) -> list[Row]:
    from bench import claims_fit

    return claims_fit.run(folder)


def _modes(folder: Path) -> list[Row]:
    from bench import modes

    return modes.run()


def _concurrent(folder: Path) -> list[Row]:
    from bench import at_once

    return at_once.run()


PARTS: dict[str, Part] = {
    "start": _start,
    "concurrent": _concurrent,
    "10k": _scale(10_000),
    "100k": _scale(100_000),
    "modes": _modes,
    "stores-10k": _stores(10_000),
    "stores-100k": _stores(100_000),
    "stores-eval": _stores_eval,
    "embedder": _embedder,
    "ingest": _ingest,
    "enrich": _enrich,
    "workers": _workers,
    "sync": _sync,
    "large": _large,
    "names": _names,
    "claims": _claims,
    "claims-fit": _claims_fit,
    "quality": _quality,
    "transforms": _transforms,
    "relevance": _relevance,
    "kinds": _kinds,
    "takaro": _takaro,
    "peers-txtai": _txtai,
    "peers-minilm": _peers("all-MiniLM-L6-v2"),
    "peers-default": _peers("granite-embedding-30m-english"),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="default: all")
    parser.add_argument("--data", type=Path, default=Path("../shared/data/scifact"), help="a BEIR-layout folder")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        print(json.dumps([row.as_dict() for row in PARTS[options.parts[0]](options.data)]))
        return
    rows = []
    if not options.json:
        print(f"{machine()}\n\n| part | what | measured | target or best peer | |\n|---|---|---|---|---|")
    for part in options.parts or PARTS:
        print(f"measuring {part} …", file=sys.stderr)
        command = [sys.executable, "-m", "bench", part, "--here", "--data", str(options.data)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        measured = [Row(**row) for row in json.loads(done.stdout.splitlines()[-1])]
        rows += measured
        if not options.json:
            for row in measured:
                _print_row(row)
    if options.json:
        print(json.dumps({"machine": machine(), "rows": [row.as_dict() for row in rows]}, ensure_ascii=False))


def _print_row(row: Row) -> None:
    mark = {True: "✓", False: "✗", None: ""}[row.met]
    print(f"| {row.part} | {row.what} | {row.value} | {row.target} | {mark} |", flush=True)


if __name__ == "__main__":
    main()
