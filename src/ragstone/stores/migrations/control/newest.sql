CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL,
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE tenants (
	name VARCHAR(63) NOT NULL,
	id VARCHAR(32) NOT NULL,
	created_at VARCHAR(25) NOT NULL, bell INTEGER DEFAULT '0' NOT NULL, state VARCHAR(16) DEFAULT 'active' NOT NULL, quotas TEXT DEFAULT '{}' NOT NULL, retention_days INTEGER, settings TEXT DEFAULT '{}' NOT NULL, seed VARCHAR(63), has_ledger INTEGER DEFAULT '0' NOT NULL,
	PRIMARY KEY (name),
	UNIQUE (id)
);
CREATE TABLE usage (
	tenant_id VARCHAR(32) NOT NULL,
	name VARCHAR(63) NOT NULL,
	period VARCHAR(16) NOT NULL,
	used FLOAT NOT NULL,
	PRIMARY KEY (tenant_id, name, period),
	FOREIGN KEY(tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE TABLE reservations (
	id VARCHAR(32) NOT NULL,
	name VARCHAR(63) NOT NULL,
	tenant_id VARCHAR(32) NOT NULL,
	amount FLOAT NOT NULL,
	expires_at VARCHAR(25) NOT NULL,
	PRIMARY KEY (id, name),
	FOREIGN KEY(tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX idx_reservations_tenant ON reservations (tenant_id, name);
CREATE TABLE resting_names (
	name VARCHAR(63) NOT NULL,
	tenant_id VARCHAR(32) NOT NULL,
	until VARCHAR(25) NOT NULL,
	PRIMARY KEY (name)
);
CREATE TABLE audit (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	moment VARCHAR(25) NOT NULL,
	tenant_id VARCHAR(32) NOT NULL,
	tenant VARCHAR(63) NOT NULL,
	actor VARCHAR(127) NOT NULL,
	action VARCHAR(31) NOT NULL,
	outcome VARCHAR(16) NOT NULL,
	target VARCHAR(255) NOT NULL,
	kb VARCHAR(63) NOT NULL,
	count BIGINT NOT NULL,
	document_ids TEXT NOT NULL,
	counts TEXT NOT NULL,
	detail VARCHAR(255) NOT NULL,
	kind VARCHAR(8) NOT NULL
, request_id VARCHAR(127) DEFAULT '' NOT NULL, previous VARCHAR(64) DEFAULT '' NOT NULL, hash VARCHAR(64) DEFAULT '' NOT NULL);
CREATE INDEX idx_audit_tenant ON audit (tenant_id, id);
CREATE INDEX idx_audit_kept ON audit (kind, moment);
CREATE TABLE api_keys (
	id VARCHAR(16) NOT NULL,
	name VARCHAR(63) NOT NULL,
	tenant_id VARCHAR(32),
	scopes VARCHAR(31) NOT NULL,
	kbs TEXT NOT NULL,
	created_at VARCHAR(25) NOT NULL,
	expires_at VARCHAR(25),
	revoked_at VARCHAR(25),
	secret_hash VARCHAR(64) NOT NULL, per_minute INTEGER, minute VARCHAR(16), used INTEGER DEFAULT 0 NOT NULL,
	PRIMARY KEY (id),
	FOREIGN KEY(tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX idx_api_keys_tenant ON api_keys (tenant_id);
CREATE TABLE audit_head (
	id INTEGER NOT NULL,
	hash VARCHAR(64) NOT NULL,
	PRIMARY KEY (id)
);
CREATE TABLE audit_gaps (
	previous VARCHAR(64) NOT NULL,
	hash VARCHAR(64) NOT NULL,
	entries BIGINT NOT NULL,
	PRIMARY KEY (previous)
);
CREATE TABLE stored_replies (
	id VARCHAR(64) NOT NULL,
	tenant_id VARCHAR(32),
	fingerprint VARCHAR(64) NOT NULL,
	owner VARCHAR(32) NOT NULL,
	lease_until FLOAT NOT NULL,
	expires_at FLOAT NOT NULL,
	sealed BLOB,
	PRIMARY KEY (id),
	FOREIGN KEY(tenant_id) REFERENCES tenants (id) ON DELETE CASCADE
);
CREATE INDEX idx_stored_replies_tenant ON stored_replies (tenant_id);
CREATE INDEX idx_stored_replies_expires_at ON stored_replies (expires_at);
CREATE TABLE alerts (
	tenant_id VARCHAR(32) NOT NULL,
	rule VARCHAR(63) NOT NULL,
	tenant VARCHAR(63) NOT NULL,
	state VARCHAR(16) NOT NULL,
	value FLOAT NOT NULL,
	threshold FLOAT NOT NULL,
	since VARCHAR(25) NOT NULL,
	checked_at VARCHAR(25) NOT NULL,
	PRIMARY KEY (tenant_id, rule)
);
CREATE TABLE alert_messages (
	id VARCHAR(32) NOT NULL,
	tenant_id VARCHAR(32) NOT NULL,
	body TEXT NOT NULL,
	created_at VARCHAR(25) NOT NULL,
	attempts INTEGER NOT NULL,
	next_at VARCHAR(25) NOT NULL,
	PRIMARY KEY (id)
);
CREATE INDEX idx_alert_messages_next ON alert_messages (next_at);
INSERT INTO alembic_version (version_num) VALUES ('0012');
