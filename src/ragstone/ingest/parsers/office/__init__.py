"""Office files and e-books: DOCX, PPTX, XLSX, RTF, EPUB."""
