"""compose.yaml, .env.example, .dockerignore and the systemd unit."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.deploy.dockerfile import ROOT, STAGES, command_of

from ragstone import load_settings
from ragstone.ingest.parsers.sandbox import limits

DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
EXAMPLE = (DEPLOY / ".env.example").read_text(encoding="utf-8")
UNIT = DEPLOY / "ragstone.service"


def expand(value: str, environment: dict[str, str]) -> str:
    """Replace variables as compose does."""
    return re.sub(r"\$\{(\w+)(?::-([^}]*))?\}", lambda found: environment.get(found[1]) or found[2] or "", value)


def read_blocks() -> dict[str, dict[str, str]]:
    """The variables of each block of .env.example that has a name in brackets; others are under an empty one."""
    blocks: dict[str, dict[str, str]] = {"": {}}
    for part in EXAMPLE.split("\n\n"):
        name = re.search(r"^# \[(\w+)\]", part, re.MULTILINE)
        found = dict(line[1:].split("=", 1) for line in part.splitlines() if re.match(r"#[A-Z0-9_]+=", line))
        blocks.setdefault(name[1] if name else "", {}).update(found)
    return blocks


@pytest.mark.req("R-CLI-25")
def test_the_api_has_its_port_volumes_variables_and_health_check() -> None:
    api = SERVICES["api"]
    assert api["ports"] == ["8000:8000"]
    assert api["volumes"] == ["./data:/app/data", "./config:/app/config:ro"]
    environment = {name: expand(value, {}) for name, value in api["environment"].items()}
    assert environment["VECTOR_DB_PROVIDER"] == "chroma"
    assert environment["CHROMA_PERSIST_DIRECTORY"] == "/app/data/vector_db"
    check = STAGES[1].one("HEALTHCHECK")
    assert api["healthcheck"]["test"] == ["CMD", *command_of(check)]
    assert (api["healthcheck"]["interval"], api["healthcheck"]["timeout"]) == ("30s", "10s")
    assert (api["healthcheck"]["start_period"], api["healthcheck"]["retries"]) == ("5s", 3)
    assert "profiles" not in api


@pytest.mark.req("R-CLI-26")
def test_a_chroma_server_has_its_port_exposed() -> None:
    assert SERVICES["chroma"]["ports"] == ["127.0.0.1:8001:8000"]


def test_every_profile_has_its_container_and_its_variables() -> None:
    profiles = {profile for service in SERVICES.values() for profile in service.get("profiles", ())}
    assert profiles == {"postgres", "redis", "milvus", "chroma", "workers"} == read_blocks().keys() - {""}
    named = {volume.split(":")[0] for service in SERVICES.values() for volume in service.get("volumes", ())}
    assert {name for name in named if not name.startswith(".")} == set(COMPOSE["volumes"])
    for name, service in SERVICES.items():
        assert ("build" in service) or re.search(r":[\w.-]+$", service["image"]), f"{name} has no version"


@pytest.mark.parametrize(
    ("block", "setting", "value"),
    [
        ("postgres", "store.ledger.kind", "postgres"),
        ("redis", "cache.search_seconds", 60),
        ("milvus", "store.vectors.kind", "milvus"),
        ("chroma", "store.vectors.kind", "chroma"),
        ("workers", "service.worker", False),
    ],
)
def test_the_variables_of_a_profile_are_settings(block: str, setting: str, value: object) -> None:
    given = read_blocks()[block]
    environment = {name: expand(text, {"POSTGRES_PASSWORD": "x1"}) for name, text in given.items()}
    found: Any = load_settings(environment=environment)
    for step in setting.split("."):
        found = getattr(found, step)
    assert found == value
    for host in re.findall(r"(?:@|//)(\w+)[:/]", " ".join(environment.values())):
        assert host in SERVICES or host == "ragstone", f"{host} is no container"


@pytest.mark.req("R-CLI-14", "R-CLI-15", "R-CLI-16")
def test_the_variables_of_the_design_are_passed_on_and_count() -> None:
    plain = read_blocks()[""]
    names = {"VECTOR_DB_PROVIDER", "CHROMA_COLLECTION_NAME", "PINECONE_API_KEY", "PINECONE_ENVIRONMENT"}
    names |= {"PINECONE_INDEX_NAME", "EMBEDDING_MODEL", "CORPUS_PATH", "BM25_INDEX_PATH", "METADATA_PATH"}
    assert names <= plain.keys()
    assert SERVICES["api"]["env_file"] == [{"path": ".env", "required": False}]
    environment = {name: expand(value, plain) for name, value in SERVICES["api"]["environment"].items()}
    config = DEPLOY / Path(environment.pop("RAGSTONE_CONFIG")).relative_to("/app")
    environment |= {"RAGSTONE_PROFILE": "rpg"} | {name: plain[name] for name in names}
    settings = load_settings(config=config, environment=environment)
    assert settings.store.vectors.kind == "chroma"
    assert str(settings.store.vectors.path) == "/app/data/vector_db"
    assert settings.ingestion.chunk_metadata_path == Path("data/indices/chunks.json")


def test_the_image_gets_what_it_copies_and_nothing_else() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    let_in = {line[1:] for line in ignored if line.startswith("!")}
    copied = {word for rest in STAGES[0].all("COPY") for word in rest.split()[:-1]}
    assert ignored[1] == "*"
    assert let_in == copied
    assert all((ROOT / name).exists() for name in copied)


def read_unit() -> configparser.ConfigParser:
    class Lines(dict[str, str]):
        """Keeps all values of a name that is given several times."""

        def __setitem__(self, name: str, value: str) -> None:
            if name in self and isinstance(value, list) and isinstance(self[name], list):
                self[name].extend(value)  # type: ignore[attr-defined]
            else:
                super().__setitem__(name, value)

    parser = configparser.ConfigParser(dict_type=Lines, strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(UNIT, encoding="utf-8")
    return parser


def test_the_unit_is_hardened_and_leaves_what_the_service_needs() -> None:
    service = read_unit()["Service"]
    on = "NoNewPrivileges PrivateTmp PrivateDevices ProtectHome ProtectKernelTunables RestrictSUIDSGID LockPersonality"
    assert {service[name] for name in on.split()} == {"true"}
    assert (service["ProtectSystem"], service["CapabilityBoundingSet"]) == ("strict", "")
    assert service["User"] != "root"
    assert service["ExecStart"].split()[1:] == ["serve"]
    assert "MemoryDenyWriteExecute" not in service, "the model is compiled while it is loaded"
    assert set(service["RestrictNamespaces"].split()) == {"user", "net"}
    assert limits._CLONE_NEWUSER
    assert limits._CLONE_NEWNET, "parsers leave the network by these two"
    variables = dict(pair.split("=", 1) for pair in service["Environment"].split("\n"))
    assert variables["RAGSTONE_DATA_DIR"] == f"/var/lib/{service['StateDirectory']}"
    assert variables["RAGSTONE_CACHE_DIR"] == f"/var/cache/{service['CacheDirectory']}"


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        return  # the lines themselves are checked above
    text = UNIT.read_text(encoding="utf-8").replace("/opt/ragstone/bin/ragstone", "/bin/true")
    (tmp_path / UNIT.name).write_text(text, encoding="utf-8")
    done = subprocess.run([analyze, "verify", str(tmp_path / UNIT.name)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
