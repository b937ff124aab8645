"""SQL that SQLite and PostgreSQL share: connections, schema, filters."""
