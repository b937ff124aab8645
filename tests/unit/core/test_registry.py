from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ragstone.core.errors import SettingsError
from ragstone.core.registry import Registry, UnknownAdapter, nearest
from ragstone.settings.tree import Settings, StoreSettings
from ragstone.stores.factory import LEDGERS, LEXICAL, VECTORS, open_stores


def test_a_factory_is_imported_when_it_is_asked_for() -> None:
    registry = Registry("thing", {"path": "pathlib:Path", "broken": "no_such_module:Thing"})
    assert registry.load("path") is Path
    with pytest.raises(ModuleNotFoundError):
        registry.load("broken")


@pytest.mark.req("R-STO-04", "R-TST-25")
def test_an_unknown_vector_store_is_a_value_error_with_the_known_names() -> None:
    with pytest.raises(ValueError, match=r"^Unsupported vector DB provider: nope$") as caught:
        VECTORS.load("nope")
    assert isinstance(caught.value, UnknownAdapter)
    assert isinstance(caught.value, SettingsError)
    assert caught.value.code == "unknown_adapter"
    assert caught.value.hint == "choose one of: " + ", ".join(VECTORS._factories)


@pytest.mark.parametrize(
    ("store", "message"),
    [
        ({"vectors": "nope"}, "Unsupported vector DB provider: nope"),
        ({"ledger": "nope"}, "there is no ledger 'nope'"),
        ({"lexical": "nope"}, "there is no lexical index 'nope'"),
    ],
)
def test_a_store_of_the_settings_that_does_not_exist_is_refused_before_anything_is_made(
    store: dict[str, str], message: str, data_dir: Path
) -> None:
    settings = Settings(data_dir=data_dir, store=StoreSettings.model_validate(store))
    with pytest.raises(UnknownAdapter) as caught:
        open_stores(settings)
    assert str(caught.value) == message
    assert not data_dir.exists()


@pytest.mark.parametrize("registry", [LEDGERS, VECTORS, LEXICAL])
def test_every_registered_name_leads_somewhere(registry: Registry) -> None:
    for name in registry._factories:
        assert callable(registry.load(name))


def test_adapters_are_not_imported_before_they_are_chosen() -> None:
    listing = "[m for m in sys.modules if m.startswith('ragstone.stores.vectors.')]"
    code = f"import sys, ragstone.engine.engine; print({listing})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(("name", "hint"), [("retreival.k", "did you mean 'retrieval.k'?"), ("zzz", ""), ("", "")])
def test_the_nearest_name_is_offered(name: str, hint: str) -> None:
    assert nearest(name, ["retrieval.k", "kb", "tenant"]) == hint
