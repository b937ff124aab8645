CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL,
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE retrieval_log (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	tenant_id VARCHAR(32) NOT NULL,
	moment VARCHAR(25) NOT NULL,
	kb_id INTEGER,
	kb_name TEXT NOT NULL,
	conversation VARCHAR(200) NOT NULL,
	"query" TEXT NOT NULL,
	query_type VARCHAR(50) NOT NULL,
	mode VARCHAR(16) NOT NULL,
	sources_queried TEXT DEFAULT '[]' NOT NULL,
	sources_returned TEXT DEFAULT '[]' NOT NULL,
	document_results_count INTEGER DEFAULT '0' NOT NULL,
	database_results_count INTEGER DEFAULT '0' NOT NULL,
	internet_results_count INTEGER DEFAULT '0' NOT NULL,
	total_results INTEGER DEFAULT '0' NOT NULL,
	retrieval_time_ms FLOAT DEFAULT '0' NOT NULL,
	embedding_time_ms FLOAT DEFAULT '0' NOT NULL,
	top_score FLOAT DEFAULT '0' NOT NULL,
	similarity FLOAT,
	coverage FLOAT DEFAULT '0' NOT NULL,
	missing TEXT NOT NULL,
	success INTEGER DEFAULT '1' NOT NULL,
	error_message TEXT NOT NULL
);
CREATE INDEX idx_retrieval_log_tenant ON retrieval_log (tenant_id, moment);
CREATE INDEX idx_retrieval_log_kb ON retrieval_log (kb_id, moment);
CREATE INDEX idx_retrieval_log_conversation ON retrieval_log (conversation);
CREATE INDEX idx_retrieval_log_success ON retrieval_log (success);
CREATE TABLE retrieval_log_hits (
	tenant_id VARCHAR(32) NOT NULL,
	search_id INTEGER NOT NULL,
	rank INTEGER NOT NULL,
	chunk_id VARCHAR(32) NOT NULL,
	document_id VARCHAR(32) NOT NULL,
	score FLOAT NOT NULL,
	PRIMARY KEY (tenant_id, search_id, rank),
	FOREIGN KEY(search_id) REFERENCES retrieval_log (id) ON DELETE CASCADE
)
 WITHOUT ROWID;
CREATE INDEX idx_retrieval_log_hits_search ON retrieval_log_hits (search_id);
CREATE INDEX idx_retrieval_log_hits_document ON retrieval_log_hits (document_id);
CREATE TABLE imported_files (
	tenant_id VARCHAR(32) NOT NULL,
	id VARCHAR(32) NOT NULL,
	moment VARCHAR(25) NOT NULL,
	PRIMARY KEY (tenant_id, id)
);
INSERT INTO alembic_version (version_num) VALUES ('0001');
