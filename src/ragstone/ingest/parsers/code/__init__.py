"""Source code: symbols and outline by tree-sitter."""
