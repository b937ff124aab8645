CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL,
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE knowledge_bases (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	tenant_id VARCHAR(32) NOT NULL,
	name VARCHAR(63) NOT NULL,
	live_space INTEGER,
	created_at VARCHAR(25) NOT NULL, languages TEXT DEFAULT '' NOT NULL,
	UNIQUE (tenant_id, name)
);
CREATE TABLE spaces (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	tenant_id VARCHAR(32) NOT NULL,
	kb_id INTEGER NOT NULL,
	model VARCHAR(255) NOT NULL,
	dimension INTEGER NOT NULL,
	generation INTEGER NOT NULL,
	state VARCHAR(16) NOT NULL,
	created_at VARCHAR(25) NOT NULL, retired_at VARCHAR(25), keep_until VARCHAR(25),
	FOREIGN KEY(kb_id) REFERENCES knowledge_bases (id) ON DELETE CASCADE
);
CREATE TABLE documents (
	id VARCHAR(32) NOT NULL,
	tenant_id VARCHAR(32) NOT NULL,
	kb_id INTEGER NOT NULL,
	source VARCHAR(255) NOT NULL,
	external_id TEXT NOT NULL,
	uri TEXT NOT NULL,
	title TEXT NOT NULL,
	content_hash VARCHAR(64) NOT NULL,
	version INTEGER NOT NULL,
	last_version INTEGER NOT NULL,
	chunk_count INTEGER NOT NULL,
	token_count INTEGER NOT NULL,
	media_type VARCHAR(127) NOT NULL,
	metadata JSON NOT NULL,
	recipe VARCHAR(64) NOT NULL,
	embedded INTEGER NOT NULL,
	modified_at VARCHAR(25),
	created_at VARCHAR(25) NOT NULL,
	updated_at VARCHAR(25) NOT NULL, parent_id VARCHAR(32), signature BLOB,
	PRIMARY KEY (id),
	UNIQUE (tenant_id, kb_id, source, external_id),
	FOREIGN KEY(kb_id) REFERENCES knowledge_bases (id) ON DELETE CASCADE
);
CREATE TABLE versions (
	document_id VARCHAR(32) NOT NULL,
	version INTEGER NOT NULL,
	tenant_id VARCHAR(32) NOT NULL,
	facts JSON NOT NULL,
	text BLOB NOT NULL,
	created_at VARCHAR(25) NOT NULL,
	PRIMARY KEY (document_id, version),
	FOREIGN KEY(document_id) REFERENCES documents (id) ON DELETE CASCADE
);
CREATE TABLE chunks (
	seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	id VARCHAR(32) NOT NULL,
	tenant_id VARCHAR(32) NOT NULL,
	kb_id INTEGER NOT NULL,
	document_id VARCHAR(32) NOT NULL,
	version INTEGER NOT NULL,
	chunk_index INTEGER NOT NULL,
	content TEXT NOT NULL,
	context TEXT NOT NULL,
	content_hash BLOB NOT NULL,
	start INTEGER NOT NULL,
	stop INTEGER NOT NULL,
	page INTEGER,
	section JSON NOT NULL,
	parent INTEGER,
	level INTEGER NOT NULL,
	kind VARCHAR(16) NOT NULL,
	token_count INTEGER NOT NULL,
	metadata JSON NOT NULL,
	UNIQUE (id),
	FOREIGN KEY(document_id) REFERENCES documents (id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX idx_chunks_document ON chunks (document_id, version, chunk_index);
CREATE INDEX idx_chunks_content_hash ON chunks (content_hash);
CREATE TABLE vectors (
	space_id INTEGER NOT NULL,
	chunk_seq INTEGER NOT NULL,
	tenant_id VARCHAR(32) NOT NULL,
	vector BLOB NOT NULL,
	PRIMARY KEY (space_id, chunk_seq)
)
 WITHOUT ROWID;
CREATE TABLE terms (
	chunk_seq INTEGER NOT NULL,
	tenant_id VARCHAR(32) NOT NULL,
	terms BLOB NOT NULL,
	PRIMARY KEY (chunk_seq)
);
CREATE TABLE changes (
	seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	tenant_id VARCHAR(32) NOT NULL,
	kb_id INTEGER NOT NULL,
	operation VARCHAR(9) NOT NULL,
	chunk_seq INTEGER NOT NULL,
	chunk_id VARCHAR(32) NOT NULL
);
CREATE INDEX idx_documents_parent ON documents (parent_id);
CREATE TABLE resemblances (
	kb_id INTEGER NOT NULL,
	band BIGINT NOT NULL,
	document_id VARCHAR(32) NOT NULL,
	tenant_id VARCHAR(32) NOT NULL,
	PRIMARY KEY (kb_id, band, document_id),
	FOREIGN KEY(document_id) REFERENCES documents (id) ON DELETE CASCADE
)
 WITHOUT ROWID;
CREATE INDEX idx_resemblances_document ON resemblances (document_id);
CREATE TABLE checkpoints (
	document_id VARCHAR(32) NOT NULL,
	made_from VARCHAR(64) NOT NULL,
	part VARCHAR(63) NOT NULL,
	tenant_id VARCHAR(32) NOT NULL,
	data BLOB NOT NULL,
	PRIMARY KEY (document_id, made_from, part)
);
CREATE TABLE jobs (
	seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	id VARCHAR(32) NOT NULL,
	tenant_id VARCHAR(32) NOT NULL,
	kb_id INTEGER NOT NULL,
	kind VARCHAR(16) NOT NULL,
	state VARCHAR(16) NOT NULL,
	priority INTEGER NOT NULL,
	document_id VARCHAR(32) NOT NULL,
	source VARCHAR(255) NOT NULL,
	external_id TEXT NOT NULL,
	uri TEXT NOT NULL,
	content_hash VARCHAR(64) NOT NULL,
	size BIGINT NOT NULL,
	facts JSON NOT NULL,
	progress JSON NOT NULL,
	notify INTEGER NOT NULL,
	attempts INTEGER NOT NULL,
	token INTEGER NOT NULL,
	worker VARCHAR(127) NOT NULL,
	boot VARCHAR(36) NOT NULL,
	lease_until FLOAT NOT NULL,
	not_before FLOAT NOT NULL,
	error_code VARCHAR(63) NOT NULL,
	error TEXT NOT NULL,
	created_at VARCHAR(25) NOT NULL,
	started_at VARCHAR(25),
	finished_at VARCHAR(25), stored BIGINT DEFAULT '0' NOT NULL,
	UNIQUE (id),
	FOREIGN KEY(kb_id) REFERENCES knowledge_bases (id) ON DELETE CASCADE
);
CREATE INDEX idx_jobs_queue ON jobs (state, priority, seq);
CREATE INDEX idx_jobs_document ON jobs (document_id, seq);
CREATE TABLE sources (
	id VARCHAR(32) NOT NULL,
	tenant_id VARCHAR(32) NOT NULL,
	kb_id INTEGER NOT NULL,
	name VARCHAR(63) NOT NULL,
	kind VARCHAR(63) NOT NULL,
	config JSON NOT NULL,
	schedule VARCHAR(127) NOT NULL,
	cursor JSON,
	paused INTEGER NOT NULL,
	next_run_at VARCHAR(25),
	last_run_at VARCHAR(25),
	last_error TEXT NOT NULL,
	created_at VARCHAR(25) NOT NULL, unread JSON DEFAULT '{}' NOT NULL,
	PRIMARY KEY (id),
	UNIQUE (tenant_id, kb_id, name),
	FOREIGN KEY(kb_id) REFERENCES knowledge_bases (id) ON DELETE CASCADE
);
CREATE TABLE notices (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	tenant_id VARCHAR(32) NOT NULL,
	kind VARCHAR(16) NOT NULL,
	job_id VARCHAR(32) NOT NULL,
	document_id VARCHAR(32) NOT NULL,
	uri TEXT NOT NULL,
	message TEXT NOT NULL,
	created_at VARCHAR(25) NOT NULL,
	seen INTEGER NOT NULL,
	sent INTEGER NOT NULL
);
CREATE INDEX idx_notices_sent ON notices (sent);
CREATE TABLE counters (
	tenant_id VARCHAR(32) NOT NULL,
	name VARCHAR(31) NOT NULL,
	value BIGINT NOT NULL,
	PRIMARY KEY (tenant_id, name)
);
CREATE TABLE watermarks (
	tenant_id VARCHAR(32) NOT NULL,
	index_name VARCHAR(127) NOT NULL,
	space_id BIGINT NOT NULL,
	dimension INTEGER NOT NULL,
	sequence BIGINT NOT NULL,
	PRIMARY KEY (tenant_id, index_name, space_id)
);
CREATE INDEX idx_jobs_stored ON jobs (tenant_id, state, stored);
CREATE TABLE turns (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	tenant_id VARCHAR(32) NOT NULL,
	kb_id INTEGER NOT NULL,
	conversation VARCHAR(200) NOT NULL,
	moment VARCHAR(25) NOT NULL,
	question TEXT NOT NULL,
	answer TEXT NOT NULL,
	FOREIGN KEY(kb_id) REFERENCES knowledge_bases (id) ON DELETE CASCADE
);
CREATE INDEX idx_turns_conversation ON turns (kb_id, conversation, moment);
CREATE INDEX idx_turns_moment ON turns (moment);
CREATE TABLE turn_documents (
	tenant_id VARCHAR(32) NOT NULL,
	turn_id INTEGER NOT NULL,
	document_id VARCHAR(32) NOT NULL,
	PRIMARY KEY (tenant_id, turn_id, document_id),
	FOREIGN KEY(turn_id) REFERENCES turns (id) ON DELETE CASCADE,
	FOREIGN KEY(document_id) REFERENCES documents (id) ON DELETE CASCADE
)
 WITHOUT ROWID;
CREATE INDEX idx_turn_documents_turn ON turn_documents (turn_id);
CREATE INDEX idx_turn_documents_document ON turn_documents (document_id);
CREATE TABLE votes (
	tenant_id VARCHAR(32) NOT NULL,
	kb_id INTEGER NOT NULL,
	query_hash VARCHAR(64) NOT NULL,
	chunk_id VARCHAR(32) NOT NULL,
	voter VARCHAR(200) NOT NULL,
	document_id VARCHAR(32) NOT NULL,
	moment VARCHAR(25) NOT NULL,
	"query" TEXT NOT NULL,
	vote VARCHAR(8) NOT NULL,
	PRIMARY KEY (tenant_id, kb_id, query_hash, chunk_id, voter),
	FOREIGN KEY(kb_id) REFERENCES knowledge_bases (id) ON DELETE CASCADE,
	FOREIGN KEY(document_id) REFERENCES documents (id) ON DELETE CASCADE
)
 WITHOUT ROWID;
CREATE INDEX idx_votes_kb ON votes (kb_id, moment);
CREATE INDEX idx_votes_document ON votes (document_id);
CREATE TABLE golden_queries (
	tenant_id VARCHAR(32) NOT NULL,
	kb_id INTEGER NOT NULL,
	query_hash VARCHAR(64) NOT NULL,
	document_id VARCHAR(32) NOT NULL,
	"query" TEXT NOT NULL,
	origin VARCHAR(16) NOT NULL,
	PRIMARY KEY (tenant_id, kb_id, query_hash, document_id),
	FOREIGN KEY(kb_id) REFERENCES knowledge_bases (id) ON DELETE CASCADE,
	FOREIGN KEY(document_id) REFERENCES documents (id) ON DELETE CASCADE
)
 WITHOUT ROWID;
CREATE INDEX idx_golden_queries_kb ON golden_queries (kb_id);
CREATE INDEX idx_golden_queries_document ON golden_queries (document_id);
CREATE TABLE web_results (
	tenant_id VARCHAR(32) NOT NULL,
	query_hash VARCHAR(64) NOT NULL,
	query_text VARCHAR(500) NOT NULL,
	results TEXT NOT NULL,
	result_count INTEGER NOT NULL,
	search_provider VARCHAR(50) NOT NULL,
	search_timestamp VARCHAR(25) NOT NULL,
	expires_at VARCHAR(25) NOT NULL,
	PRIMARY KEY (tenant_id, query_hash)
);
CREATE INDEX idx_web_results_expires_at ON web_results (expires_at);
CREATE TABLE imported_files (
	tenant_id VARCHAR(32) NOT NULL,
	id VARCHAR(32) NOT NULL,
	moment VARCHAR(25) NOT NULL,
	PRIMARY KEY (tenant_id, id)
);
CREATE TABLE products (
	tenant_id VARCHAR(32) NOT NULL,
	id VARCHAR(64) NOT NULL,
	name VARCHAR(255) NOT NULL,
	category VARCHAR(100) NOT NULL,
	brand VARCHAR(100) NOT NULL,
	description TEXT NOT NULL,
	price VARCHAR(20),
	currency VARCHAR(3) NOT NULL,
	stock INTEGER,
	terms TEXT NOT NULL,
	language VARCHAR(8) NOT NULL,
	updated_at VARCHAR(25) NOT NULL,
	PRIMARY KEY (tenant_id, id)
);
CREATE TABLE services (
	tenant_id VARCHAR(32) NOT NULL,
	id VARCHAR(64) NOT NULL,
	name VARCHAR(255) NOT NULL,
	description TEXT NOT NULL,
	price VARCHAR(20),
	currency VARCHAR(3) NOT NULL,
	minutes INTEGER NOT NULL,
	windows TEXT NOT NULL,
	timezone VARCHAR(64) NOT NULL,
	terms TEXT NOT NULL,
	language VARCHAR(8) NOT NULL,
	updated_at VARCHAR(25) NOT NULL,
	PRIMARY KEY (tenant_id, id)
);
CREATE TABLE appointments (
	tenant_id VARCHAR(32) NOT NULL,
	id VARCHAR(32) NOT NULL,
	service_id VARCHAR(64) NOT NULL,
	starts_at VARCHAR(25) NOT NULL,
	ends_at VARCHAR(25) NOT NULL,
	customer TEXT NOT NULL,
	status VARCHAR(16) NOT NULL,
	created_at VARCHAR(25) NOT NULL,
	PRIMARY KEY (tenant_id, id)
);
CREATE INDEX idx_appointments_service ON appointments (service_id, starts_at);
CREATE INDEX idx_appointments_start ON appointments (starts_at);
CREATE TABLE agent_settings (
	tenant_id VARCHAR(32) NOT NULL,
	agent VARCHAR(63) NOT NULL,
	document TEXT NOT NULL,
	updated_at VARCHAR(25) NOT NULL,
	PRIMARY KEY (tenant_id, agent)
);
CREATE TABLE article_runs (
	id VARCHAR(32) NOT NULL,
	tenant_id VARCHAR(32) NOT NULL,
	kb_id INTEGER NOT NULL,
	graph VARCHAR(16) NOT NULL,
	topic TEXT NOT NULL,
	status VARCHAR(16) NOT NULL,
	error TEXT NOT NULL,
	token INTEGER NOT NULL,
	checkpoint BLOB,
	result BLOB,
	created_at VARCHAR(25) NOT NULL,
	updated_at VARCHAR(25) NOT NULL,
	PRIMARY KEY (id),
	FOREIGN KEY(kb_id) REFERENCES knowledge_bases (id) ON DELETE CASCADE
);
CREATE INDEX idx_article_runs_kb ON article_runs (kb_id, created_at);
INSERT INTO alembic_version (version_num) VALUES ('0012');
