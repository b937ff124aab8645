"""Pictures: text by OCR."""
