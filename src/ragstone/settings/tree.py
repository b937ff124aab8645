"""The one typed tree of settings.

Precedence: argument > environment (`RAGSTONE_A__B`) > YAML file > profile > default. Reading files and the
environment is `ragstone.settings.load`'s work; here is what the keys are, what they mean and which values they take.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator

from ragstone.core.vectors import Isolation
from ragstone.settings.answers import AnswerSettings, EntailmentSettings
from ragstone.settings.base import SettingsModel
from ragstone.settings.flags import read_flag
from ragstone.settings.prices import PriceSettings
from ragstone.settings.records import RecordSettings, ShopMapping
from ragstone.settings.retrieval import RerankingSettings, RetrievalSettings
from ragstone.settings.targets import Target
from ragstone.settings.web import AlertSettings, CacheSettings, ServiceSettings, WebSettings

OWN_INDEXES = {"sqlite": ("sqlite", "sqlite"), "postgres": ("pgvector", "postgres")}
"""The indexes for meaning and for words that live in a ledger's own database."""
LIVES_IN = {"sqlite": "sqlite", "pgvector": "postgres", "postgres": "postgres", "postgres_fts": "postgres"}
ProfileName = Literal["default", "ghostwriter", "takaro", "tulia", "kosmos", "rpg"]


class Adapter(SettingsModel):
    """Which adapter to use; the long form of a plain string. The embedded store takes no address."""

    kind: str = ""
    path: Path | None = None
    dsn: SecretStr | None = None
    url: str | None = None
    api_key: SecretStr | None = None
    options: dict[str, Any] = Field(default_factory=dict)


def _short_form(value: object) -> object:
    return {"kind": value} if isinstance(value, str) else value


AdapterChoice = Annotated[Adapter, BeforeValidator(_short_form)]


class StoreSettings(SettingsModel):
    ledger: AdapterChoice = Adapter(kind="sqlite")
    vectors: AdapterChoice = Adapter(kind="")
    """Which index finds by meaning; by default the one in the ledger's own database."""
    lexical: AdapterChoice = Adapter(kind="")
    """Which index finds by word; by default the one in the ledger's own database."""
    isolation: Isolation | None = None
    """The separation of tenants in a vector database outside the ledger; by default the strictest that it has."""
    collections: Literal["space", "source_type"] = "space"
    """Collections of a vector database outside the ledger: one per Space of a tenant, or one for each source type."""
    memory_mb: int = Field(default=1024, ge=16)
    """Memory for the vectors and postings of all tenants together."""
    open_tenants: int = Field(default=64, ge=1)

    @model_validator(mode="after")
    def _indexes_fit_the_ledger(self) -> StoreSettings:
        if not self.ledger.kind:
            # An address says enough.
            kind = "postgres" if self.ledger.dsn else "sqlite"
            object.__setattr__(self, "ledger", self.ledger.model_copy(update={"kind": kind}))
        own = OWN_INDEXES.get(self.ledger.kind)
        if own is None:
            return self  # an unknown ledger is refused by name where it is opened
        for field, default in zip(("vectors", "lexical"), own, strict=True):
            adapter: Adapter = getattr(self, field)
            if not adapter.kind:
                filled = adapter.model_copy(update={"kind": default})
                object.__setattr__(self, field, filled)
            elif adapter.kind in LIVES_IN and LIVES_IN[adapter.kind] != self.ledger.kind:
                needed = LIVES_IN[adapter.kind]
                raise ValueError(f"{field} '{adapter.kind}' lives in the {needed} ledger: set store.ledger too")
        return self


class SecuritySettings(SettingsModel):
    key: SecretStr | None = None
    """Encrypts original files and stored secrets: base64 of 32 bytes, or `file:PATH`. None leaves them as they are."""
    old_keys: tuple[SecretStr, ...] = ()
    """Keys of before a rotation, for what is still under them."""
    audit_days: int = Field(default=365, ge=0, le=36_500)
    """Days that the audit record is kept. 0 records no reads; changes are then kept for a year."""


Strategy = Literal[
    "recursive", "markdown", "sliding_window", "sentence", "paragraph", "semantic", "hybrid", "email", "paper", "code"
]


class ChunkingSettings(SettingsModel):
    strategy: Strategy = "markdown"
    unit: Literal["tokens", "chars"] = "tokens"
    size: int = Field(default=400, ge=8)
    overlap: int = Field(default=50, ge=0)
    min_size: int = Field(default=0, ge=0)
    separators: tuple[str, ...] = ("\n\n", "\n", ". ", " ")
    breakpoint: float = Field(default=0.5, ge=-1, le=1)
    """Semantic and hybrid: neighbouring segments less alike than this (cosine) are cut apart."""
    context: bool = True
    """Put title and section path before each chunk of a document that has headings."""

    @model_validator(mode="after")
    def _overlap_fits(self) -> ChunkingSettings:
        if self.overlap >= self.size:
            raise ValueError(f"overlap ({self.overlap}) must be smaller than size ({self.size})")
        return self


class RemoteModel(SettingsModel):
    """A model behind an OpenAI-compatible address."""

    base_url: str | None = None
    api_key: SecretStr | None = None
    timeout: float = Field(default=30.0, gt=0)
    retries: int = Field(default=3, ge=0, le=10)


class RefreshSettings(SettingsModel):
    """When a worker refreshes the embeddings of a kb. Changed content is always embedded again."""

    every: str = "manual"
    """`monthly`, `weekly`, another word or five cron fields, as for sources; each time everything is re-embedded."""
    when: tuple[Literal["model", "quality"], ...] = ()
    """Besides: `model`, when the settings name another one; `quality`, when people find too little."""
    sample: int = Field(default=256, ge=1, le=100_000)
    """Stored vectors that a refresh without a schedule compares with fresh ones; if one differs, all are made again."""
    sources: bool = True
    """Let a scheduled refresh also read the sources of the kb from their beginning."""


class EmbeddingSettings(SettingsModel):
    model: str = "granite-embedding-30m-english"
    path: Path | None = None
    """A local folder with the model's safetensors, config.json and tokenizer.json."""
    runtime: Literal["auto", "openvino", "onnxruntime"] = "auto"
    batch_size: int | None = Field(default=None, ge=1, le=2048)
    """Texts that go to the model together; by default 32 to a local one, 100 a call to one behind an address."""
    threads: int = Field(default=0, ge=0)
    """Threads of the local model; 0 means all cores."""
    normalize: bool = True
    dimensions: int | None = None
    """Expected dimension; a model that gives another is refused."""
    remote: RemoteModel = RemoteModel()
    price: float | None = Field(default=None, ge=0)
    """US dollars for a million tokens of a model behind an address; by default that of the catalogue, such as 0.02."""
    fallback: str | None = None
    """Model to switch to when the first one fails; used only in a Space of its own."""
    refresh: RefreshSettings = RefreshSettings()


class LLMSettings(RemoteModel):
    model: str | None = None
    """No model means no LLM: answers are extractive."""
    max_tokens: int = Field(default=800, ge=16)
    price_in: float = Field(default=0.0, ge=0)
    """US dollars for a million tokens that it reads; tenants are charged for them."""
    price_out: float = Field(default=0.0, ge=0)
    """US dollars for a million tokens that it writes."""


class AgentSettings(SettingsModel):
    """The agents that write articles."""

    file: Path | None = None
    """A YAML file with agents in the place of those that come with Ragstone."""
    providers: dict[str, LLMSettings] = Field(default_factory=dict)
    """Language models by the name that agents call their provider; an agent of any other one uses `llm`."""


def _suffix(kind: str) -> str:
    """`.PDF` and `pdf` are the same kind of file."""
    return kind.strip().lower().lstrip(".")


class LimitSettings(SettingsModel):
    file_mb: int = Field(default=100, ge=1)
    upload_types: tuple[Annotated[str, AfterValidator(_suffix)], ...] = ()
    """Which kinds of file may be uploaded, as their names end; empty for all that can be read."""
    archive_mb: int = Field(default=1000, ge=1)
    """The most that an archive may hold when it is unpacked."""
    archive_entries: int = Field(default=10_000, ge=1)
    parse_seconds: float = Field(default=120.0, gt=0)
    parse_memory_mb: int = Field(default=1024, ge=128)
    pages: int = Field(default=5000, ge=1)
    query_chars: int = Field(default=8000, ge=1)
    searches_at_once: int = Field(default=0, ge=0, le=1000)
    """Searches that one process makes at the same time; 0 means two for each core, and at least four."""
    answers_at_once: int = Field(default=32, ge=1, le=10_000)
    """Answers, checks and researches that one process works on at the same time."""
    waiting: int = Field(default=256, ge=0, le=100_000)
    """Searches, and answers, that may wait for their turn; beyond that they are refused at once."""
    document_chunks: int = Field(default=100_000, ge=1)
    chunk_tokens_least: int = Field(default=0, ge=0)
    """A chunk with fewer tokens is reported, not refused; 0 reports none."""
    chunk_tokens_most: int = Field(default=0, ge=0)
    """A chunk with more tokens is reported; 0 reports none."""


class FetchSettings(SettingsModel):
    """Limits on fetching addresses that users and documents give."""

    allow: tuple[str, ...] = ()
    """Hosts, addresses or networks (`wiki.example`, `10.1.0.0/16`) that may be fetched although they are not public."""
    timeout: float = Field(default=30.0, gt=0)
    max_mb: int = Field(default=50, ge=1)
    redirects: int = Field(default=3, ge=0, le=10)
    retries: int = Field(default=3, ge=0, le=10)
    seconds_per_host: float = Field(default=1.0, ge=0)
    """Seconds that a crawl waits between two requests to one host, unless its robots.txt asks for more."""
    robots: bool = True
    user_agent: str = "ragstone"


class ExtractSettings(SettingsModel):
    ocr: Literal["auto", "off"] = "auto"
    """Read images and scanned pages when an OCR engine is installed."""
    tables: Literal["auto", "off"] = "auto"
    """Find tables in PDF pages when the `tables` extra is installed."""
    scan_command: tuple[str, ...] = ()
    """A malware scanner that gets the file's path as its last argument; a non-zero exit refuses the file."""


class EnrichSettings(SettingsModel):
    language: bool = True
    keywords: int = Field(default=8, ge=0, le=50)
    entities: int = Field(default=20, ge=0, le=200)
    content_type: bool = True
    summary: Literal["none", "extractive", "llm"] = "extractive"
    """Two sentences; `llm` falls back to extractive while the LLM cannot be reached."""
    near_duplicates: Literal["off", "report", "skip"] = "report"


class IngestionSettings(SettingsModel):
    """Collections that are built from one corpus file. `data` at the start of a path is the data folder."""

    corpus_root: str | None = None
    """The folder that a corpus may be read from; `{tenant}` in it gives each tenant a folder of its own."""
    corpus_path: Path = Path("data/corpus.txt")
    """The file that `ragstone corpus build` reads when none is named."""
    bm25_index_path: Path = Path("data/indices/bm25_index.pkl")
    """The BM25 index of the collection, for those who read it as a file."""
    chunk_metadata_path: Path = Path("data/indices/chunks.json")
    """The metadata of its chunks by chunk id."""


class JobSettings(SettingsModel):
    workers: int = Field(default=1, ge=1, le=64)
    lease_seconds: float = Field(default=30.0, gt=0)
    attempts: int = Field(default=3, ge=1)
    retry_seconds: float = Field(default=5.0, ge=0)
    """Wait before the second attempt; doubled for the third."""
    webhook: str | None = None
    """Address that is told when a job has completed or failed."""
    webhook_secret: SecretStr | None = None
    """Signs the webhook's body: `X-Ragstone-Signature: sha256=…`."""


class ActivitySettings(SettingsModel):
    searches: bool = True
    """Remember what was asked and found, for `ragstone feedback report` and `ragstone gaps`."""
    days: int = Field(default=90, ge=1, le=3650)
    """Days that searches are remembered."""


class Settings(SettingsModel):
    """Everything that can be set."""

    profile: ProfileName = "default"
    data_dir: Path = Path("ragstone-data")
    tenant: str = "default"
    kb: str = "default"
    store: StoreSettings = StoreSettings()
    chunking: ChunkingSettings = ChunkingSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    retrieval: RetrievalSettings = RetrievalSettings()
    reranking: RerankingSettings = RerankingSettings()
    web: WebSettings = WebSettings()
    records: RecordSettings = RecordSettings()
    cache: CacheSettings = CacheSettings()
    service: ServiceSettings = ServiceSettings()
    answer: AnswerSettings = AnswerSettings()
    entailment: EntailmentSettings = EntailmentSettings()
    llm: LLMSettings = LLMSettings()
    agents: AgentSettings = AgentSettings()
    prices: PriceSettings = PriceSettings()
    limits: LimitSettings = LimitSettings()
    chunking_by_source: dict[str, ChunkingSettings] = Field(default_factory=dict)
    """Other chunking for documents of one source type, such as `email`, `paper`, `rss`, `web`, `files` or `code`."""
    fetch: FetchSettings = FetchSettings()
    extract: ExtractSettings = ExtractSettings()
    enrich: EnrichSettings = EnrichSettings()
    ingestion: IngestionSettings = IngestionSettings()
    jobs: JobSettings = JobSettings()
    activity: ActivitySettings = ActivitySettings()
    flags: dict[str, Annotated[bool | float, BeforeValidator(read_flag)]] = Field(default_factory=dict)
    """Features that are on, off, or on for a share of the tenants (`hybrid: 10%`); a tenant's own flags come first."""
    alerts: AlertSettings = AlertSettings()
    security: SecuritySettings = SecuritySettings()
    databases: dict[str, SecretStr] = Field(default_factory=dict)
    """Databases that a source may read rows from, by name, as SQLAlchemy addresses."""
    shops: dict[str, ShopMapping] = Field(default_factory=dict)
    """Shops that are read from databases of their own, by the name of the tenant."""
    targets: dict[str, Target] = Field(default_factory=dict)
    """Targets of the figures of `ragstone eval`, such as `recall@10: {above: 0.8, alert: 0.6}`."""
