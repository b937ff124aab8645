"""The design of the role-playing game over HTTP: its file and variables, its model and store, its labelled queries."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.warm import warm_python

from ragstone.stores.corpus.files import load_metadata
from ragstone.stores.lexical.bm25_file import load_index
from ragstone.testing.corpora import TestDataGenerator

DATA = Path(__file__).parents[2] / "data" / "designs"
PAGE = Path(__file__).parents[3] / "docs" / "howto" / "design-routes.md"
ADDRESS = "http://localhost:8000"
QUERIES = json.loads((DATA / "queries.json").read_text(encoding="utf-8"))["queries"]
NAME = "corpus_embeddings"
SECONDS = 60


@dataclass
class Game:
    """A service of the design, and the folder that it works in."""

    client: httpx2.Client
    url: str
    key: str
    operator_key: str
    folder: Path

    def post(self, path: str, **body: Any) -> Any:
        answer = self.client.post(path, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def chunks(self, labelled: Mapping[str, Any], **options: Any) -> list[str]:
        """The chunks that a labelled query finds, as the labels call them."""
        found = self.post("/search", query=labelled["query"], top_k=5, **options)
        return [f"chunk_{hit['metadata']['chunk_index']}" for hit in found["results"]]


@pytest.fixture(scope="module")
def game(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Game]:
    """`ragstone serve` with the design's file as it is, in whose data folder the corpus lies."""
    folder = tmp_path_factory.mktemp("game")
    (folder / "data").mkdir()
    shutil.copy(DATA / "config.yaml", folder)
    shutil.copy(DATA / "corpus.txt", folder / "data")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PINECONE")}
    own = {"BM25_INDEX_PATH": "data/kept/words.idx", "CHROMA_PERSIST_DIRECTORY": "data/kept/vectors"}
    command = [*warm_python(), "-m", "ragstone", "serve", "--port", "0", "--json", "--no-worker"]
    with subprocess.Popen(
        [*command, "--data-dir", "data", "--profile", "rpg", "--config", "config.yaml"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=environment | own,
    ) as process:
        try:
            assert process.stdout is not None
            told = json.loads(process.stdout.readline())
            headers = {"Authorization": f"Bearer {told['keys']['default']}"}
            with httpx2.Client(base_url=told["url"], timeout=SECONDS, headers=headers) as client:
                yield Game(client, told["url"], told["keys"]["default"], told["keys"]["(operator)"], folder)
        finally:
            process.send_signal(signal.SIGTERM)


@pytest.fixture(scope="module")
def examples(game: Game) -> list[Any]:
    """What the calls of the guide print, in order; the first one builds the collection."""
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    calls = [block.replace(ADDRESS, game.url) for block in blocks if "curl" in block]
    environment = os.environ | {"KEY": game.key}
    printed = []
    for call in calls:
        ran = subprocess.run(["sh", "-euc", call], env=environment, check=True, capture_output=True, text=True)
        printed += [json.loads(text) for text in re.split(r"(?<=\})(?=\{)", ran.stdout)]
    return printed


@pytest.mark.req("R-API-02", "R-API-05", "R-API-07", "R-API-08")
def test_the_examples_of_the_guide_run(examples: list[Any]) -> None:
    built, found, anonymous, health, docs = examples
    result = built["result"]
    assert (built["status"], result["total_chunks"], result["embedding_dimension"]) == ("success", 11, 384)
    assert result["embedding_model"] == "sentence-transformers/all-MiniLM-L6-v2"
    assert found["total_results"] == 3
    assert all("Arthur" in hit["chunk_text"] for hit in found["results"])
    assert anonymous == {"status": "healthy", "components": {"vector_db": "connected"}}
    assert health["components"] == {
        "bm25_index": "loaded",
        "vector_db": "connected",
        "collection": NAME,
        "total_documents": 11,
    }
    assert all("Marvin" in passage["content"] for passage in docs["results"])


@pytest.mark.req("R-API-14")
def test_the_service_is_run_by_uvicorn(game: Game) -> None:
    assert game.client.get("/healthz").headers["server"] == "uvicorn"


@pytest.mark.req("R-CLI-14", "R-CLI-16")
def test_the_file_of_the_design_is_served_and_its_variables_decide(game: Game, examples: list[Any]) -> None:
    result = examples[0]["result"]
    assert (result["bm25_index_path"], result["metadata_path"]) == ("data/kept/words.idx", "data/indices/chunks.json")
    assert list((game.folder / "data" / "kept" / "vectors").rglob("chroma.sqlite3"))
    assert not (game.folder / "data" / "vector_db").exists()
    index, _ = load_index(game.folder / result["bm25_index_path"])
    metadata = load_metadata(game.folder / result["metadata_path"])
    assert len(metadata) == 11
    assert set(index.pack().ids) == set(metadata)


@pytest.mark.req("R-TST-15", "R-TST-16")
@pytest.mark.parametrize("labelled", QUERIES, ids=lambda labelled: labelled["id"])
@pytest.mark.usefixtures("examples")
def test_a_labelled_query_finds_its_scene(game: Game, labelled: dict[str, Any]) -> None:
    found = game.post("/search", query=labelled["query"], top_k=5)
    relevant = [
        hit for hit in found["results"] if f"chunk_{hit['metadata']['chunk_index']}" in labelled["expected_chunk_ids"]
    ]
    assert len(relevant) >= labelled["min_relevant_results"]
    # The scene comes first, whatever else is shown.
    assert relevant == found["results"][: len(relevant)]
    best = relevant[0]
    assert best["bm25_score"] > 0
    assert 0 < best["vector_score"] <= 1


@pytest.mark.req("R-TST-23")
@pytest.mark.parametrize("labelled", QUERIES, ids=lambda labelled: labelled["id"])
@pytest.mark.usefixtures("examples")
def test_hybrid_finds_no_less_than_either_arm(game: Game, labelled: dict[str, Any]) -> None:
    wanted = set(labelled["expected_chunk_ids"])
    by_word = game.post("/v1/search", query=labelled["query"], k=5, arms="lexical", kb=NAME)
    arms = [
        {f"chunk_{hit['metadata']['chunk_index']}" for hit in by_word["hits"]},
        set(game.chunks(labelled, use_hybrid=False)),
    ]
    for fusion in ("rrf", "weighted"):
        hybrid = set(game.chunks(labelled, fusion_strategy=fusion))
        assert len(hybrid & wanted) >= max(len(arm & wanted) for arm in arms)


@pytest.mark.req("R-TST-17", "R-TST-18")
def test_a_generated_corpus_is_found_by_its_queries(game: Game) -> None:
    generator = TestDataGenerator()
    corpus = generator.generate_test_corpus()
    (game.folder / "data" / "corpus").mkdir()
    (game.folder / "data" / "corpus" / "generated.txt").write_text(corpus, encoding="utf-8")
    options = {"collection_name": "generated", "chunk_size": 60, "chunk_overlap": 25}
    assert game.post("/ingest", corpus_path="corpus/generated.txt", **options)["status"] == "success"
    for query in generator.generate_test_queries(corpus):
        found = game.post("/search", query=query.query, top_k=3, collection_name="generated")
        assert any(query.is_answered_by(hit["chunk_text"]) for hit in found["results"]), query


@pytest.mark.req("R-FUT-25")
def test_the_service_measures_what_it_does(game: Game, examples: list[Any]) -> None:
    def read(sample: str) -> float:
        answer = game.client.get("/metrics", headers={"Authorization": f"Bearer {game.operator_key}"})
        return sum(float(line.split()[-1]) for line in answer.text.splitlines() if line.startswith(sample))

    assert read("ragstone_ingest_stage_seconds_total") > 0
    samples = ("ragstone_search_seconds_count", "ragstone_search_stage_seconds_count", "ragstone_searches_total")
    before = [read(sample) for sample in samples]
    game.post("/search", query="a query that nobody has asked before", top_k=5)
    assert all(read(sample) > old for sample, old in zip(samples, before, strict=True))
