from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from tests.unit.models.reference import reference_states
from tests.unit.models.tiny import tiny_tokenizer, write_tiny_model

from ragstone.core.errors import ModelError, ModelMismatch, ModelUnavailable
from ragstone.core.model_types import Embeddings, WordTokenizer
from ragstone.core.remedies import Action, Remedy
from ragstone.models.embedders.local import LocalEmbedder
from ragstone.models.embedders.pool import EmbedderPool
from ragstone.models.runtime import inference
from ragstone.models.runtime.encoder import Ids
from ragstone.models.runtime.inference import open_runtime
from ragstone.models.weights import artefacts
from ragstone.models.weights.folder import ModelFolder
from ragstone.testing.fakes import FakeEmbedder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_tiny_model(tmp_path / "model", "bert", pooling="cls")


def open_tiny(folder: Path, **options: object) -> LocalEmbedder:
    return LocalEmbedder.open("tiny", path=folder, cache_dir=folder.parent / "cache", **options)


class FlakyRuntime:
    """Gives a row of its ids' sum; raises for what it is told to raise for."""

    workers = 2

    def __init__(self, refuses: Callable[[Ids], bool]) -> None:
        self.refuses = refuses
        self.batches: list[int] = []
        self.threads: set[int] = set()

    def run(self, ids: Ids, mask: Ids, types: Ids | None = None) -> np.ndarray:
        self.batches.append(len(ids))
        self.threads.add(threading.get_ident())
        if self.refuses(ids):
            raise ModelError("no")
        made = np.zeros((len(ids), 32), np.float32)
        made[:, 0] = 1
        made[:, 1] = (ids * mask).sum(axis=1)
        return made


@pytest.fixture
def flaky(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Ids], bool]], FlakyRuntime]:
    def use(refuses: Callable[[Ids], bool]) -> FlakyRuntime:
        runtime = FlakyRuntime(refuses)
        monkeypatch.setattr(inference, "open_runtime", lambda *_, **__: runtime)
        return runtime

    return use


def direction(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


@pytest.mark.req("R-CHK-26")
async def test_a_long_text_is_the_mean_of_its_windows(folder: Path) -> None:
    embedder = open_tiny(folder)
    made = await embedder.embed(["the cat " * 60])
    await embedder.close()
    ids = [tiny_tokenizer().token_to_id("the"), tiny_tokenizer().token_to_id("cat")] * 60
    # 120 tokens in windows of 64 that overlap by at least 16: two of them, from both ends.
    vectors = [direction(reference_states(folder, [1, *part, 2])[0]) for part in (ids[:64], ids[56:])]
    expected = direction(np.mean(vectors, axis=0))
    assert made.vectors[0] @ expected > 0.9999


@pytest.mark.req("R-EMB-14")
async def test_normalisation_can_be_switched_off(folder: Path) -> None:
    raw, unit = open_tiny(folder, normalize=False), open_tiny(folder)
    a, b = await raw.embed(["the cat"]), await unit.embed(["the cat"])
    assert np.linalg.norm(a.vectors[0]) > 1.5
    assert np.linalg.norm(b.vectors[0]) == pytest.approx(1.0, abs=1e-5)
    np.testing.assert_allclose(direction(a.vectors[0]), b.vectors[0], atol=1e-5)
    await raw.close()
    await unit.close()


async def test_a_prompt_goes_before_its_role(folder: Path) -> None:
    (folder / "config_sentence_transformers.json").write_text('{"prompts": {"query": "rates "}}')
    embedder = open_tiny(folder)
    query = await embedder.embed(["the cat", ""], "query")
    document = await embedder.embed(["rates the cat"])
    np.testing.assert_allclose(query.vectors[0], document.vectors[0], atol=1e-5)
    assert query.failed == (1,)
    await embedder.close()


@pytest.mark.req("R-EMB-19")
async def test_a_bad_text_is_skipped_and_counted(folder: Path, flaky: Callable[..., FlakyRuntime]) -> None:
    bad = tiny_tokenizer().token_to_id("rates")
    flaky(lambda ids: bool((ids == bad).any()))
    embedder = open_tiny(folder)
    made = await embedder.embed(["the cat", "rates", "the mat", "cat cat"])
    assert made.failed == (1,)
    assert not made.vectors[1].any()
    assert all(made.vectors[index].any() for index in (0, 2, 3))
    await embedder.close()


@pytest.mark.req("R-EMB-19")
async def test_a_passing_fault_is_tried_again(folder: Path, flaky: Callable[..., FlakyRuntime]) -> None:
    left = [True]
    flaky(lambda ids: bool(left and left.pop()))
    embedder = open_tiny(folder)
    made = await embedder.embed(["the cat", "the mat", "cat"])
    assert made.failed == ()
    await embedder.close()


async def test_when_nothing_works_it_is_the_model(folder: Path, flaky: Callable[..., FlakyRuntime]) -> None:
    flaky(lambda ids: True)
    embedder = open_tiny(folder)
    with pytest.raises(ModelError, match="tiny could not embed any of 2 texts"):
        await embedder.embed(["the cat", "the mat"])
    await embedder.close()


async def test_the_event_loop_does_not_run_the_model(folder: Path, flaky: Callable[..., FlakyRuntime]) -> None:
    runtime = flaky(lambda ids: False)
    embedder = open_tiny(folder)
    await embedder.embed(["the cat"])
    await embedder.embed(["the cat"], "query")
    assert threading.get_ident() not in runtime.threads
    await embedder.close()


@pytest.mark.req("R-EMB-12", "R-TST-21")
async def test_batches_have_32_texts_by_default(folder: Path, flaky: Callable[..., FlakyRuntime]) -> None:
    runtime = flaky(lambda ids: False)
    embedder = open_tiny(folder)
    made = await embedder.embed(["the cat and the mat"] * 300)
    assert len(made.vectors) == 300
    assert max(runtime.batches) == 32
    await embedder.close()


@pytest.mark.req("R-EMB-13", "R-TST-21", "R-TST-27")
async def test_texts_alone_in_batches_and_of_a_model_by_name_have_the_same_vectors(folder: Path) -> None:
    texts = [" ".join(words) for words in permutations(("the", "cat", "and", "mat", "rates"), 3)]
    pool = EmbedderPool(FakeEmbedder(), lambda name, dimension: open_tiny(folder))
    batched = (await (await pool.get("tiny")).embed(texts)).vectors
    embedder = open_tiny(folder)
    one_by_one = [(await embedder.embed([text])).vectors[0] for text in texts]
    as_query = [(await embedder.embed([text], "query")).vectors[0] for text in texts[:3]]
    np.testing.assert_allclose(batched, one_by_one, atol=1e-5)
    np.testing.assert_allclose(batched[:3], as_query, atol=1e-5)
    assert len(np.unique(batched.round(3), axis=0)) > 32
    await asyncio.gather(embedder.close(), pool.close())


async def test_a_query_does_not_wait_for_the_batches(folder: Path, flaky: Callable[..., FlakyRuntime]) -> None:
    gate = threading.Event()
    query = tiny_tokenizer().token_to_id("rates")
    flaky(lambda ids: not bool((ids == query).any()) and not gate.wait(240))
    embedder = open_tiny(folder)
    indexing = asyncio.create_task(embedder.embed(["the cat"] * 500))
    made = await embedder.embed(["rates"], "query")
    assert made.failed == ()
    assert not indexing.done()
    gate.set()
    assert (await indexing).failed == ()
    await embedder.close()


async def test_first_uses_at_once_load_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loads = []

    def counted(*arguments: object, **options: object) -> object:
        loads.append(arguments)
        return open_runtime(*arguments, **options)

    monkeypatch.setattr(inference, "open_runtime", counted)
    embedder = open_tiny(folder)
    assert loads == []
    made: list[Embeddings] = await asyncio.gather(*(embedder.embed(["the cat"]) for _ in range(8)))
    assert len(loads) == 1
    assert len({entry.vectors.tobytes() for entry in made}) == 1
    await embedder.close()


async def test_a_cancelled_call_leaves_a_working_embedder(folder: Path) -> None:
    embedder = open_tiny(folder)
    await embedder.embed(["the cat"])
    call = asyncio.create_task(embedder.embed(["the cat sat"] * 2000))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert (await embedder.embed(["the cat"])).failed == ()
    await embedder.close()


@pytest.mark.parametrize("runtime", ["openvino", "onnxruntime"])
async def test_a_damaged_cache_is_built_again(folder: Path, runtime: str, caplog: pytest.LogCaptureFixture) -> None:
    first = open_tiny(folder, runtime=runtime)
    expected = await first.embed(["the cat"])
    await first.close()
    (artefact,) = (folder.parent / "cache").glob("*.artefact")
    whole = artefact.read_bytes()
    artefact.write_bytes(whole[: len(whole) // 2])
    again = open_tiny(folder, runtime=runtime)
    made = await again.embed(["the cat"])
    await again.close()
    np.testing.assert_allclose(made.vectors, expected.vectors, atol=1e-6)
    assert artefacts.load(artefact) is not None
    assert "is damaged; it is made again" in caplog.text


@pytest.mark.parametrize("runtime", ["openvino", "onnxruntime"])
def test_a_cached_model_needs_no_weights(folder: Path, runtime: str) -> None:
    cache = folder.parent / "cache"
    inputs = np.array([[1, 9, 2]]), np.ones((1, 3), np.int64)
    built = open_runtime(runtime, "tiny", ModelFolder(folder).encoder, threads=1, cache=cache).run(*inputs)

    def unread() -> object:
        raise AssertionError("the weights were read")

    loaded = open_runtime(runtime, "tiny", unread, threads=1, cache=cache).run(*inputs)
    np.testing.assert_allclose(loaded, built, atol=1e-6)


async def test_missing_weights_leave_the_catalogues_facts(tmp_path: Path) -> None:
    embedder = LocalEmbedder.open("bge-large", cache_dir=tmp_path)
    assert (embedder.model.name, embedder.model.dimension) == ("bge-large-en-v1.5", 1024)
    assert isinstance(embedder.tokenizer, WordTokenizer)
    with pytest.raises(ModelUnavailable) as caught:
        await embedder.embed(["the cat"])
    assert caught.value.remedy == Remedy(Action.PULL_MODEL, model="bge-large-en-v1.5")
    await embedder.close()


async def test_another_dimension_than_expected_is_refused(folder: Path) -> None:
    embedder = open_tiny(folder, dimensions=768)
    with pytest.raises(ModelMismatch, match="32 dimensions where 768"):
        await embedder.embed(["the cat"])
    await embedder.close()


def test_the_tokenizer_is_named_by_the_model(folder: Path) -> None:
    tokenizer = open_tiny(folder).tokenizer
    assert tokenizer.name == f"tiny@{ModelFolder(folder).revision}"
    assert tokenizer.offsets("the cat") == [(0, 3), (4, 7)]


def test_importing_openvino_reports_to_nobody(tmp_path: Path) -> None:
    script = (
        "import sys; from ragstone.models.runtime.openvino import import_openvino; import_openvino()\n"
        "assert not [name for name in sys.modules if 'telemetry' in name], 'telemetry was imported'\n"
        "assert 'openvino.tools.ovc' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, env={"HOME": str(tmp_path), "PATH": ""})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("runtime", ["openvino", "onnxruntime"])
def test_a_model_leaves_nothing_at_home(folder: Path, tmp_path: Path, runtime: str) -> None:
    script = (
        "import asyncio, sys; from pathlib import Path; from ragstone.models.embedders.local import LocalEmbedder\n"
        "model, cache, runtime = sys.argv[1:]\n"
        "embedder = LocalEmbedder.open('tiny', path=Path(model), cache_dir=Path(cache), runtime=runtime)\n"
        "asyncio.run(embedder.embed(['the cat']))\n"
    )
    home = tmp_path / "home"
    home.mkdir()
    call = [sys.executable, "-c", script, str(folder), str(tmp_path / "cache"), runtime]
    subprocess.run(call, check=True, env={"HOME": str(home), "PATH": ""})
    assert list(home.iterdir()) == []


def test_a_model_leaves_nothing_in_the_temporary_folder(folder: Path, tmp_path: Path) -> None:
    script = (
        "import asyncio, os, sys; from pathlib import Path; from ragstone.models.embedders.local import LocalEmbedder\n"
        "embedder = LocalEmbedder.open('tiny', path=Path(sys.argv[1]), cache_dir=Path(sys.argv[2]))\n"
        "asyncio.run(embedder.embed(['the cat']))\n"
        "print(Path(f'/tmp/perf-{os.getpid()}.map').exists())"
    )
    call = [sys.executable, "-c", script, str(folder), str(tmp_path / "cache")]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_importing_the_models_loads_no_runtime() -> None:
    script = (
        "import sys, ragstone.models, ragstone.models.embedders.local, ragstone.models.embedders.remote\n"
        "import ragstone.models.llm.client\n"
        "heavy = {'openvino', 'onnx', 'onnxruntime', 'openai', 'tokenizers', 'safetensors', 'huggingface_hub'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


async def test_granite_embeds_a_query_from_its_package(model_cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    embedder = LocalEmbedder.open("granite-embedding-30m-english", cache_dir=model_cache, threads=1)
    made = await embedder.embed(["what is the role of BRCA1?"], "query")
    assert made.model == "granite-embedding-30m-english@6a1cc24734a5"
    assert caplog.records == []
    await embedder.close()


def test_openvino_may_be_imported_by_several_threads_at_once() -> None:
    code = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from ragstone.models.runtime.openvino import import_openvino\n"
        "with ThreadPoolExecutor(4) as pool:\n"
        "    print({bool(one.__version__) for one in pool.map(lambda _: import_openvino(), range(4))})\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("{True}\n", "")
