"""What went wrong in Chroma, in our words."""

from __future__ import annotations

from collections.abc import Iterator

from ragstone.core.errors import ModelMismatch, RagstoneError, StoreBusy, StoreCorrupt, StoreError, StoreFull

SERVER_HINT = "check that the server runs (chroma run) and that store.vectors.url is its address"
SIGNS: tuple[tuple[tuple[str, ...], type[StoreError], str], ...] = (
    (("database is locked", "busy"), StoreBusy, "close what else uses the folder"),
    (("disk is full", "no space left"), StoreFull, "make room on the device"),
    (
        ("malformed", "not a database", "corrupt", "loading hnsw", "pickle", "finding id"),
        StoreCorrupt,
        "remove the folder; it is built anew from the ledger at the next start",
    ),
)
"""What the engine's own messages say of its files."""


def translated(error: Exception, address: str) -> RagstoneError:
    """The error to raise instead. What a server said is not repeated: it may quote the key that it was sent."""
    import httpx
    from chromadb.errors import AuthorizationError, ChromaAuthError, ChromaError, RateLimitError

    where = f"Chroma ({address})"
    for cause in _causes(error):
        match cause:
            case httpx.HTTPStatusError():
                return _refused(cause.response.status_code, where)
            case httpx.TimeoutException():
                return StoreBusy(
                    f"{where} did not answer in time",
                    hint="raise store.vectors.options.timeout, or try again",
                )
            case httpx.HTTPError():
                return StoreBusy(f"{where} cannot be reached", hint=SERVER_HINT)
            case ChromaAuthError() | AuthorizationError():
                return _refused(401, where)
            case RateLimitError():
                return _refused(429, where)
            case ChromaError() if "dimension" in str(cause):
                return ModelMismatch(
                    f"{where} holds vectors of another dimension",
                    hint="use the embedding model that the space was built with",
                )
    return _failed(error, where)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what it was raised for: the client often hides the one that says what happened."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__


def _refused(status: int, where: str) -> StoreError:
    if status in (401, 403):
        return StoreError(f"{where} refused the key", hint="check store.vectors.api_key")
    if status in (408, 429) or status >= 500:
        return StoreBusy(f"{where} answered with {status}", hint="try again later")
    return StoreError(f"{where} answered with {status}", hint=SERVER_HINT)


def _failed(error: Exception, where: str) -> StoreError:
    said = str(error)
    for signs, kind, hint in SIGNS:
        if any(sign in said.lower() for sign in signs):
            return kind(f"{where}: {said:.200}", hint=hint)
    return StoreError(f"{where} failed: {said:.200}", hint="`ragstone doctor` says what state it is in")
