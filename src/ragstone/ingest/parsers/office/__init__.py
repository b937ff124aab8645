"""Office files and e-books: DOCX, PPTX, XLSX, XLS, ODT, ODS, ODP, RTF, EPUB."""
