from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ragstone.core.errors import SettingsError
from ragstone.settings.load import known_keys, load_settings
from ragstone.settings.tree import Settings


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def load(
    yaml: str | None = None, env: Mapping[str, str] | None = None, overrides: Mapping[str, Any] | None = None
) -> Settings:
    """Settings from a file with this text, this environment and these arguments."""
    path = None
    if yaml is not None:
        path = Path("given.yaml")
        path.write_text(yaml, encoding="utf-8")
    return load_settings(config=path, overrides=overrides, environment=env or {})


def refused(
    yaml: str | None = None, env: Mapping[str, str] | None = None, overrides: Mapping[str, Any] | None = None
) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        load(yaml, env, overrides)
    return caught.value


def test_without_anything_given_there_are_the_defaults() -> None:
    assert load() == Settings()


SOURCES: dict[str, dict[str, Any]] = {
    "profile": {"overrides": {"profile": "takaro"}},
    "yaml": {"yaml": "retrieval: {k: 21}"},
    "env": {"env": {"RAGSTONE_RETRIEVAL__K": "22"}},
    "argument": {"overrides": {"retrieval.k": 23}},
}


@pytest.mark.parametrize(
    ("sources", "k"),
    [
        ((), 10),
        (("profile",), 5),
        (("profile", "yaml"), 21),
        (("yaml",), 21),
        (("yaml", "env"), 22),
        (("profile", "env"), 22),
        (("env", "argument"), 23),
        (("yaml", "argument"), 23),
        (("profile", "yaml", "env"), 22),
        (("profile", "yaml", "env", "argument"), 23),
    ],
)
def test_argument_over_environment_over_file_over_profile_over_default(sources: tuple[str, ...], k: int) -> None:
    given: dict[str, Any] = {}
    for source in sources:
        for where, values in SOURCES[source].items():
            given[where] = {**given.get(where, {}), **values} if isinstance(values, dict) else values
    assert load(**given).retrieval.k == k


def test_a_key_given_leaves_its_neighbours_to_the_source_below() -> None:
    settings = load("retrieval: {rrf_k: 7}", {"RAGSTONE_PROFILE": "takaro"}, {"retrieval.k": 3})
    assert (settings.retrieval.k, settings.retrieval.rrf_k, settings.retrieval.candidates) == (3, 7, 20)


@pytest.mark.parametrize(
    ("yaml", "env", "overrides", "name"),
    [
        ("profile: kosmos", {"RAGSTONE_PROFILE": "rpg"}, {"profile": "tulia"}, "tulia"),
        ("profile: kosmos", {"RAGSTONE_PROFILE": "rpg"}, {}, "rpg"),
        ("profile: kosmos", {}, {}, "kosmos"),
        ("profile: kosmos", {"RAGSTONE_PROFILE": ""}, {"profile": None}, "kosmos"),
        (None, {}, {}, "default"),
    ],
)
def test_the_profile_itself_is_chosen_by_the_same_order(
    yaml: str | None, env: dict[str, str], overrides: dict[str, Any], name: str
) -> None:
    assert load(yaml, env, overrides).profile == name


def test_an_argument_that_is_none_was_not_given() -> None:
    assert load(env={"RAGSTONE_KB": "wiki"}, overrides={"kb": None}).kb == "wiki"


def test_arguments_may_be_nested_or_dotted() -> None:
    assert load(overrides={"retrieval": {"k": 4}}) == load(overrides={"retrieval.k": 4})


@pytest.mark.parametrize("named_by", ["argument", "environment", "working folder"])
def test_where_the_settings_file_is_found(named_by: str, tmp_path: Path) -> None:
    path = tmp_path / ("ragstone.yaml" if named_by == "working folder" else "other.yaml")
    path.write_text("kb: wiki", encoding="utf-8")
    env = {"RAGSTONE_CONFIG": str(path)} if named_by == "environment" else {}
    settings = load_settings(config=path if named_by == "argument" else None, environment=env)
    assert settings.kb == "wiki"


def test_the_process_environment_is_read_when_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGSTONE_KB", "wiki")
    assert load_settings().kb == "wiki"


def test_an_empty_settings_file_sets_nothing() -> None:
    assert load("") == Settings()


@pytest.mark.parametrize(
    ("yaml", "env", "kind", "url"),
    [
        ("store: {vectors: qdrant}", {}, "qdrant", None),
        ("store: {vectors: {kind: qdrant, url: 'http://q'}}", {}, "qdrant", "http://q"),
        (None, {"RAGSTONE_STORE__VECTORS": "qdrant"}, "qdrant", None),
        (None, {"RAGSTONE_STORE__VECTORS": "qdrant", "RAGSTONE_STORE__VECTORS__URL": "http://q"}, "qdrant", "http://q"),
        (None, {"RAGSTONE_STORE__VECTORS__URL": "http://q", "RAGSTONE_STORE__VECTORS": "qdrant"}, "qdrant", "http://q"),
        ("store: {vectors: qdrant}", {"RAGSTONE_STORE__VECTORS__URL": "http://q"}, "qdrant", "http://q"),
        ("store: {vectors: {kind: qdrant}}", {"RAGSTONE_STORE__VECTORS": "chroma"}, "chroma", None),
    ],
)
def test_a_store_is_named_shortly_or_with_its_options(
    yaml: str | None, env: dict[str, str], kind: str, url: str | None
) -> None:
    vectors = load(yaml, env).store.vectors
    assert (vectors.kind, vectors.url) == (kind, url)


def test_lists_and_mappings_in_the_environment_are_json() -> None:
    env = {"RAGSTONE_CHUNKING__SEPARATORS": '["\\n", " "]', "RAGSTONE_STORE__VECTORS__OPTIONS": '{"shards": 2}'}
    settings = load(env=env)
    assert settings.chunking.separators == ("\n", " ")
    assert settings.store.vectors.options == {"shards": 2}


def test_text_in_the_environment_that_only_looks_like_json_is_text() -> None:
    assert load(env={"RAGSTONE_ANSWER__CITATION_FORMAT": "[{index}]"}).answer.citation_format == "[{index}]"


@pytest.mark.parametrize("text", ['["\\n"', "[" * 9000, f"[{'9' * 5000}]"], ids=["cut", "deep", "huge"])
def test_broken_json_in_the_environment_names_the_key(text: str) -> None:
    error = refused(env={"RAGSTONE_CHUNKING__SEPARATORS": text})
    assert str(error).startswith("setting 'chunking.separators': ")


@pytest.mark.req("R-CLI-08")
@pytest.mark.parametrize(
    ("written", "expanded"),
    [
        ("${PINECONE_API_KEY}", "s3cret"),
        ("Bearer ${PINECONE_API_KEY}!", "Bearer s3cret!"),
        ("${PINECONE_API_KEY}${NOT_SET:-x}", "s3cretx"),
        ("${NOT_SET:-}", ""),
        ("${NOT_SET:-a-b:c}", "a-b:c"),
        ("$PINECONE_API_KEY", "$PINECONE_API_KEY"),
    ],
)
def test_environment_references_in_the_file_are_expanded(written: str, expanded: str) -> None:
    settings = load(f"store: {{vectors: {{kind: pinecone, api_key: '{written}'}}}}", {"PINECONE_API_KEY": "s3cret"})
    assert settings.store.vectors.api_key is not None
    assert settings.store.vectors.api_key.get_secret_value() == expanded


def test_references_are_expanded_in_lists() -> None:
    assert load("chunking: {separators: ['${MARK}', ' ']}", {"MARK": "--"}).chunking.separators == ("--", " ")


def test_an_undefined_reference_names_the_key_and_the_variable() -> None:
    error = refused("store: {vectors: {kind: pinecone, api_key: '${PINECONE_API_KEY}'}}")
    assert str(error) == "store.vectors.api_key refers to ${PINECONE_API_KEY}, which is not set"
    assert error.hint == "export PINECONE_API_KEY=… or write ${PINECONE_API_KEY:-default}"


@pytest.mark.parametrize(
    ("given", "message", "hint"),
    [
        ({"yaml": "retreival: {k: 3}"}, "unknown setting 'retreival'", "did you mean 'retrieval'?"),
        ({"yaml": "retrieval: {kk: 3}"}, "unknown setting 'retrieval.kk'", "did you mean 'retrieval.k'?"),
        ({"overrides": {"retrieval.kk": 3}}, "unknown setting 'retrieval.kk'", "did you mean 'retrieval.k'?"),
        ({"env": {"RAGSTONE_RETRIEVAL__KK": "3"}}, "unknown setting 'retrieval.kk'", "did you mean 'retrieval.k'?"),
        (
            {"env": {"RAGSTONE_TENNANT": "a"}},
            "the environment variable RAGSTONE_TENNANT sets no known key (tennant)",
            "did you mean 'tenant'?",
        ),
        (
            {"yaml": "profile: kosmo"},
            "there is no profile 'kosmo'",
            "choose one of: default, ghostwriter, takaro, tulia, kosmos, rpg",
        ),
        (
            {"overrides": {"retrieval.k": "ten"}},
            "setting 'retrieval.k': Input should be a valid integer, unable to parse string as an integer",
            "look at the settings and their values",
        ),
        (
            {"yaml": "retrieval: {k: 0}"},
            "setting 'retrieval.k': Input should be greater than or equal to 1",
            "look at the settings and their values",
        ),
        (
            {"yaml": "chunking: {size: 50, overlap: 50}"},
            "setting 'chunking': overlap (50) must be smaller than size (50)",
            "look at the settings and their values",
        ),
    ],
)
def test_errors_name_the_key_and_say_what_to_do(given: dict[str, Any], message: str, hint: str) -> None:
    error = refused(**given)
    assert (str(error), error.advice, error.code) == (message, hint, "settings")


@pytest.mark.parametrize("env", [{}, {"RAGSTONE_CONFIG": "missing.yaml"}])
def test_a_named_file_that_is_missing_is_an_error(env: dict[str, str]) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(config=None if env else Path("missing.yaml"), environment=env)
    assert str(caught.value) == "the settings file missing.yaml does not exist"
    assert caught.value.hint == "check --config and RAGSTONE_CONFIG"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"kb: [", "given.yaml is not valid YAML: "),
        (b"kb: " + b"[" * 9000, "given.yaml is not valid YAML: "),
        (b"kb: &kb [*kb]", "given.yaml is not valid YAML: "),
        (b"kb: \xff\xfe", "given.yaml is not valid YAML: "),
        (b"- kb\n- wiki\n", "given.yaml must hold keys and values, such as 'kb: handbook'"),
        (b"wiki", "given.yaml must hold keys and values, such as 'kb: handbook'"),
    ],
)
def test_a_file_that_is_no_mapping_is_named(content: bytes, message: str) -> None:
    Path("given.yaml").write_bytes(content)
    with pytest.raises(SettingsError) as caught:
        load_settings(config=Path("given.yaml"), environment={})
    assert str(caught.value).startswith(message)


def test_yaml_tags_run_no_code() -> None:
    assert "is not valid YAML" in str(refused("kb: !!python/object/apply:os.getcwd []"))


def test_secrets_do_not_show() -> None:
    settings = load(
        "store: {ledger: {kind: postgres, dsn: 'postgres://u:hidden@h/d'}}\n"
        "llm: {api_key: hidden}\nembedding: {remote: {api_key: hidden}}"
    )
    assert "hidden" not in repr(settings)
    assert "hidden" not in settings.model_dump_json()
    assert settings.llm.api_key is not None
    assert settings.llm.api_key.get_secret_value() == "hidden"


def test_settings_do_not_change_after_they_are_built() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load().retrieval.k = 3


@pytest.mark.parametrize("key", known_keys())
def test_every_key_has_a_variable_of_its_name(key: str) -> None:
    # A mapping suits no plain value, so that the answer shows which key the variable reached.
    name = "RAGSTONE_" + key.upper().replace(".", "__")
    if key == "profile":
        assert load(env={name: "rpg"}).profile == "rpg"
    elif key.endswith(".options"):
        assert load(env={name: '{"nonsense": 1}'}).store != Settings().store
    elif key == "flags":
        assert load(env={name: '{"nonsense": 1}'}).flags == {"nonsense": 1.0}
    else:
        assert f"'{key}" in str(refused(env={name: '{"nonsense": 1}'}))
