"""ENRICH: find keywords, names, the kind, a summary and near duplicates of a document."""
