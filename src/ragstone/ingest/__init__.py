"""From a source to searchable passages: fetch → extract → normalize → chunk → embed → store."""
