"""What one tenant may set for itself, and what it does."""

from __future__ import annotations

import json

import pytest

from ragstone.core.errors import SettingsError
from ragstone.core.ids import content_hash
from ragstone.core.types import Json
from ragstone.settings.flags import is_on
from ragstone.settings.retrieval import RetrievalSettings
from ragstone.settings.tenants import KEYS, MOST, apply_tenant_settings, packed_settings
from ragstone.settings.tree import Settings


def test_values_are_stored_as_what_they_mean() -> None:
    stored = packed_settings(
        {"retrieval.k": "7", "retrieval.dense_weight": 1, "profile": "kosmos", "flags.a": "true", "flags.b": 5}
    )
    assert json.loads(stored) == {
        "retrieval.k": 7,
        "retrieval.dense_weight": 1.0,
        "profile": "kosmos",
        "flags.a": True,
        "flags.b": 5.0,
    }


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("retrieval.k", 0),
        ("retrieval.k", "many"),
        ("retrieval.mode", "slow"),
        ("retrieval", {"k": 5}),
        ("embedding.model", ""),
        ("embedding.model", "a\x00b"),
        ("embedding.model", "m" * 256),
        ("embedding.model", 5),
        ("profile", "nobody"),
        ("profile", ["default"]),
        ("flags.x", "101"),
        ("flags.x", -1),
        ("flags.x", float("nan")),
        ("flags.x", None),
        ("flags.x", "9" * 10_000),
        ("flags.", True),
        ("flags.A", True),
        ("flags." + "a" * 64, True),
        ("data_dir", "/"),
        ("llm.api_key", "x"),
        ("security.key", "x"),
        ("", 1),
    ],
)
def test_anything_else_is_refused(key: str, value: Json) -> None:
    with pytest.raises(SettingsError):
        packed_settings({key: value})


def test_a_misspelt_key_gets_a_hint_and_there_is_an_end_to_it() -> None:
    with pytest.raises(SettingsError) as refused:
        packed_settings({"retrieval.fussion": "rrf"})
    assert refused.value.hint == "did you mean 'retrieval.fusion'?"
    with pytest.raises(SettingsError, match="more than 100 settings"):
        packed_settings({f"flags.f{n}": True for n in range(101)})


def test_the_tenants_own_wins_over_its_profile_and_that_over_the_engines() -> None:
    settings = Settings(retrieval=RetrievalSettings(k=5, candidates=50, rrf_k=10))
    profile = {"retrieval": {"candidates": 20, "rrf_k": 60}, "embedding": {"model": "of the profile"}}
    own = {"profile": "kosmos", "retrieval.rrf_k": 30}
    both = apply_tenant_settings(settings, own, profile)
    assert (both.retrieval.k, both.retrieval.candidates, both.retrieval.rrf_k) == (5, 20, 30)
    assert both.embedding.model == "of the profile"
    assert apply_tenant_settings(settings, {**own, "embedding.model": "its own"}, profile).embedding.model == "its own"
    assert apply_tenant_settings(settings, {}, {}) is settings


def test_every_retrieval_setting_but_files_of_the_machine_can_be_a_tenants_own() -> None:
    defaults = RetrievalSettings().model_dump(exclude={"dictionary", "wordnet"})
    assert {key.removeprefix("retrieval.") for key in KEYS if key.startswith("retrieval.")} == set(defaults)
    own = json.loads(packed_settings({f"retrieval.{name}": value for name, value in defaults.items()}))
    assert apply_tenant_settings(Settings(), own, {}) == Settings()


def test_a_share_of_tenants_grows_and_nobody_falls_out() -> None:
    tenants = [content_hash(str(n))[:32] for n in range(2000)]
    before: set[str] = set()
    for percent in (0.0, 1.0, 25.0, 50.0, 100.0):
        now = {one for one in tenants if is_on("new", one, percent, {})}
        assert before <= now
        assert abs(len(now) / len(tenants) * 100 - percent) < 4
        before = now
    assert len(before) == len(tenants)
    half = {one for one in tenants if is_on("other", one, 50.0, {})}
    both = {one for one in half if is_on("new", one, 50.0, {})}
    assert 0.4 < len(both) / len(half) < 0.6  # not always the same tenants go first


def test_a_flag_that_nobody_has_set_is_off() -> None:
    assert not is_on("new", "id", None, {})
    assert is_on("new", "id", True, {})
    assert not is_on("new", "id", False, {})


def test_a_tenant_may_set_so_many_and_no_more() -> None:
    flags: dict[str, Json] = {f"flags.f{number}": True for number in range(MOST)}
    assert len(json.loads(packed_settings(flags))) == MOST
    with pytest.raises(SettingsError, match=f"more than {MOST} settings"):
        packed_settings({**flags, "flags.more": True})
