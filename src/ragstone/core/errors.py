"""Everything Ragstone raises on purpose.

RagstoneError
├── SettingsError          a key, file or variable of the configuration is wrong
├── InputError             the caller's argument cannot be used
│   ├── FilterError        a filter is malformed or too large
│   ├── CollectionExists   a knowledge base of that name is there already
│   └── SlotTaken          somebody else has booked that time
├── NotFoundError          an id that does not exist for this tenant
│   ├── KbGone             a knowledge base was renamed or deleted while it was worked on
│   └── TenantGone         a tenant that there is not, or that is being deleted
├── QuotaExceeded          the tenant has used up what it may use
├── BudgetSpent            a paid service is not asked, because the budget of the month is spent
├── Overloaded             more is asked at once than can be done; try again
├── TenantSuspended        nothing is done for this tenant until it is resumed
├── AccessDenied           the caller may not do this
├── ParseError             a file cannot be turned into text
│   ├── UnsupportedFormat  no parser takes this kind of file
│   ├── EmptyDocument      nothing to index was found in it
│   │   └── NoTextSeen     but there may be words that could not be seen, in pictures or behind scripts
│   └── ParserLimit        the parser ran out of time or memory
├── ModelError             a model failed
│   ├── ModelUnavailable   its weights or its extra are not installed
│   └── ModelMismatch      it is not the model this index was built with
├── StoreError             the store failed
│   ├── StoreBusy          another process holds it; try again
│   │   └── CollectionBusy a collection is being built already
│   ├── StoreFull          no space left on the device
│   ├── StoreReadOnly      what is there can be read, and nothing can be written
│   ├── PointRefused       a vector database cannot hold all that a document says of itself
│   └── StoreCorrupt       what was read back is not what was written
├── SearchFailed           no arm that was asked could be searched
├── JobNotDone             the result of a job was asked for before it completed
├── LeaseLost              a job was given to another worker: what this one did must not count
├── SourceError            a source cannot be read as it is configured
└── RemoteError            a remote service failed or did not answer in time
    ├── RateLimited        it wants fewer requests
    └── FetchError         an address could not be fetched
        └── AddressRefused it leads to where nothing may be fetched from
"""

from __future__ import annotations

from collections.abc import Sequence

from ragstone.core.remedies import Action, Remedy, advise


class RagstoneError(Exception):
    """The root: a message for people, a stable `code` for programs, and what to do next.

    That is a `hint` in words, a `remedy` as data, or both; `advice` is the text of both, for the reader.
    """

    code: str = "error"
    retryable: bool = False
    """True when the same call may succeed later."""
    retry_after: float | None = None
    """In how many seconds, when that is known."""
    request_id: str = ""
    """The request that failed, when a service has answered so: its log has the same id."""

    def __init__(
        self, message: str, *, hint: str = "", remedy: Remedy | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.hint = hint
        self.remedy = remedy
        self.retry_after = retry_after

    @property
    def advice(self) -> str:
        """Return what to do next, in the words of the surface that is in use."""
        return advise(self.hint, self.remedy)


class SettingsError(RagstoneError):
    code = "settings"


class InputError(RagstoneError):
    code = "invalid_input"


class FilterError(InputError):
    code = "invalid_filter"


class CollectionExists(InputError):
    code = "COLLECTION_EXISTS"


class SlotTaken(InputError):
    code = "slot_taken"


class NotFoundError(RagstoneError):
    code = "not_found"


class KbGone(NotFoundError):
    code = "kb_gone"
    retryable = True


class TenantGone(NotFoundError):
    code = "tenant_gone"


class QuotaExceeded(RagstoneError):
    """Carries `retry_after`, the seconds until there is room again; None when only deleting or paying makes some."""

    code = "quota_exceeded"

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        remedy: Remedy | None = None,
        retry_after: float | None = None,
        limit: float | None = None,
    ) -> None:
        super().__init__(message, hint=hint, remedy=remedy, retry_after=retry_after)
        self.limit = limit
        """The limit itself, where it is one of a minute."""
        self.retryable = retry_after is not None


class Overloaded(RagstoneError):
    """Carries `retry_after`, an estimate of the seconds until there is room."""

    code = "overloaded"
    retryable = True


class TenantSuspended(RagstoneError):
    code = "tenant_suspended"


class AccessDenied(RagstoneError):
    code = "access_denied"


class ParseError(RagstoneError):
    code = "parse_failed"


class UnsupportedFormat(ParseError):
    code = "unsupported_format"


class EmptyDocument(ParseError):
    code = "empty_document"


class NoTextSeen(EmptyDocument):
    code = "no_text_seen"


class ParserLimit(ParseError):
    code = "parser_limit"


class ModelError(RagstoneError):
    code = "model_failed"


class ModelUnavailable(ModelError):
    code = "model_unavailable"


class ModelMismatch(ModelError):
    code = "model_mismatch"


class StoreError(RagstoneError):
    code = "store_failed"


class StoreBusy(StoreError):
    code = "store_busy"
    retryable = True


class CollectionBusy(StoreBusy):
    code = "collection_busy"


class StoreFull(StoreError):
    code = "store_full"
    retryable = True


class StoreReadOnly(StoreError):
    code = "store_read_only"


class PointRefused(StoreError):
    code = "point_refused"


class StoreCorrupt(StoreError):
    code = "store_corrupt"


class SearchFailed(RagstoneError):
    code = "search_failed"
    retryable = True


class RemoteError(RagstoneError):
    code = "remote_failed"
    retryable = True


class RateLimited(RemoteError):
    code = "rate_limited"


class FetchError(RemoteError):
    """Carries the HTTP `status`, 0 when there was no answer."""

    code = "fetch_failed"

    def __init__(self, message: str, *, hint: str = "", remedy: Remedy | None = None, status: int = 0) -> None:
        super().__init__(message, hint=hint, remedy=remedy)
        self.status = status
        if 400 <= status < 500 and status not in (408, 425, 429):
            self.retryable = False


class BudgetSpent(ModelError, RemoteError):
    """A paid model or service is not asked. Callers that can do without it do, as if it had failed."""

    code = "budget_spent"
    retryable = False


class AddressRefused(FetchError):
    code = "address_refused"
    retryable = False


class SourceError(RagstoneError):
    code = "source_failed"


class LeaseLost(RagstoneError):
    code = "lease_lost"


class JobNotDone(RagstoneError):
    code = "job_not_done"


PASSING = frozenset(
    kind.code
    for kind in (
        *(RemoteError, RateLimited, FetchError, Overloaded, ModelError, ModelUnavailable, ModelMismatch, BudgetSpent),
        *(StoreError, StoreBusy, StoreFull, StoreReadOnly, KbGone, QuotaExceeded, SettingsError),
    )
)
"""Codes of failures that are not due to the document that failed: the same content may be taken in later."""


def unknown_kb(name: str, tenant: str, others: Sequence[str] = ()) -> NotFoundError:
    """Return the error for a knowledge base that nothing has been put into; `others` may have been meant."""
    from ragstone.core.ids import NAME

    arguments = {"kb": name, "tenant": tenant}
    named = {what: value for what, value in arguments.items() if value != "default"}
    whose = f" in tenant '{tenant}'" if "tenant" in named else ""
    hint = f"name one that is there ({', '.join(others)}), or" if others else ""
    if not NAME.fullmatch(name):  # none can be made under it
        return NotFoundError(f"there is no knowledge base '{name}'{whose}", hint=hint, remedy=Remedy(Action.LIST_KBS))
    return NotFoundError(
        f"there is no knowledge base '{name}' yet{whose}", hint=hint, remedy=Remedy(Action.INGEST, **named)
    )


def suspended(tenant: str) -> TenantSuspended:
    """Return the error for a tenant that nothing is done for until it is resumed."""
    return TenantSuspended(f"tenant '{tenant}' is suspended", remedy=Remedy(Action.RESUME_TENANT, tenant=tenant))


def kb_gone(name: str, new_name: str | None) -> KbGone:
    """Return the error for a knowledge base that has another name by now, or is not there any more."""
    what, where = f"renamed to '{new_name}'" if new_name else "deleted", new_name or name
    return KbGone(f"knowledge base '{name}' was {what} meanwhile", remedy=Remedy(Action.INGEST_AGAIN, kb=where))


def deleted_meanwhile() -> KbGone:
    """Return the error for a write that belongs to something that is not there any more."""
    return KbGone("the knowledge base that this is for was deleted meanwhile", remedy=Remedy(Action.LIST_KBS))
