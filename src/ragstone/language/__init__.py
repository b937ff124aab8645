"""What texts are made of, for ingest, query and answer alike: first of all, in which language they are written."""
