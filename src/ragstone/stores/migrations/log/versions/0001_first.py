"""The retrieval log in a file of its own, beside the SQLite ledger of a tenant."""

from ragstone.stores.migrations.retrieval_log import create_imported_files, create_retrieval_log

revision = "0001"
down_revision = None


def upgrade() -> None:
    create_retrieval_log(with_ledger=False)
    create_imported_files()
