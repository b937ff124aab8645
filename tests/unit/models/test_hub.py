from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from tests.unit.models.tiny import write_tiny_model

from ragstone.core.errors import InputError, ModelUnavailable
from ragstone.core.remedies import Action, Remedy
from ragstone.models.embedders.local import LocalEmbedder
from ragstone.models.weights import find_weights, pull, pulled_folder

FAILURES = {
    "bge-larg-en-v1.5": "RepositoryNotFoundError",
    "zzz": "RepositoryNotFoundError",
    "nope": "OfflineModeIsEnabled",
}


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """A hub that has one tiny model."""
    source = write_tiny_model(tmp_path / "hub-source")
    asked: list[tuple[str, dict[str, Any]]] = []

    def snapshot_download(name: str, *, local_dir: Path, **arguments: Any) -> str:
        asked.append((name, arguments))
        if name == "org/pickled":
            (local_dir / "pytorch_model.bin").write_bytes(b"cos\nsystem\n")
            (local_dir / "config.json").write_bytes((source / "config.json").read_bytes())
        elif name == "org/none":
            raise OSError("404 for token hf_secret")
        elif kind := FAILURES.get(name):
            raise type(kind, (OSError,), {})("for token hf_secret")
        else:
            shutil.copytree(source, local_dir, dirs_exist_ok=True)
        return str(local_dir)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    return asked


async def test_a_pulled_model_is_used_by_its_name(tmp_path: Path, hub: list[Any]) -> None:
    cache = tmp_path / "cache"
    folder = pull("org/tiny", revision="main", cache_dir=cache)
    assert folder == pulled_folder("org/tiny", cache)
    assert [entry.name for entry in folder.parent.iterdir()] == ["org--tiny"]
    ((name, arguments),) = hub
    assert (name, arguments["revision"]) == ("org/tiny", "main")
    assert not any("bin" in pattern or "*" in pattern for pattern in arguments["allow_patterns"])
    embedder = LocalEmbedder.open("org/tiny", cache_dir=cache)
    assert (await embedder.embed(["the cat"])).vectors.shape == (1, 32)
    await embedder.close()


async def test_nothing_is_pulled_unasked(tmp_path: Path, hub: list[Any]) -> None:
    embedder = LocalEmbedder.open("org/tiny", cache_dir=tmp_path / "cache")
    with pytest.raises(ModelUnavailable, match="'org/tiny' are not on this machine") as caught:
        await embedder.embed(["the cat"])
    assert caught.value.remedy == Remedy(Action.PULL_MODEL, model="org/tiny")
    assert hub == []
    await embedder.close()


@pytest.mark.parametrize("name", ["org/pickled", "org/none"])
def test_a_failed_pull_leaves_nothing_behind(tmp_path: Path, hub: list[Any], name: str) -> None:
    with pytest.raises(ModelUnavailable) as caught:
        pull(name, cache_dir=tmp_path / "cache")
    assert "hf_secret" not in str(caught.value)
    assert list((tmp_path / "cache" / "hub").iterdir()) == []


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        (
            "bge-larg-en-v1.5",
            "there is no model 'bge-larg-en-v1.5' on the Hugging Face Hub",
            "did you mean 'bge-large-en-v1.5'?",
        ),
        ("zzz", "there is no model 'zzz' on the Hugging Face Hub", "download the model 'BAAI/bge-small-en-v1.5'"),
        ("nope", "'nope' could not be pulled: the Hugging Face Hub cannot be reached", "download the model 'nope'"),
    ],
)
def test_a_failed_pull_says_what_happened_and_what_to_type(
    tmp_path: Path, hub: list[Any], name: str, message: str, hint: str
) -> None:
    with pytest.raises(ModelUnavailable) as caught:
        pull(name, cache_dir=tmp_path / "cache")
    assert message in str(caught.value)
    assert hint in caught.value.advice


@pytest.mark.parametrize("name", ["../../etc", "/etc/passwd", "a/b/c", "org/..", "", "org/a b", "..", "a\0b"])
def test_a_name_cannot_be_a_path(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="is not a model name"):
        find_weights(name, path=None, cache=tmp_path)
    with pytest.raises(InputError, match="is not a model name"):
        pull(name, cache_dir=tmp_path)


def test_without_the_client_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ModelUnavailable) as caught:
        pull("org/tiny", cache_dir=tmp_path)
    assert caught.value.hint == 'pip install "ragstone[hub]"'
