"""PDF: words, layout, tables, scanned pages."""
