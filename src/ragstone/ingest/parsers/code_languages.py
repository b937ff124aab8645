"""Programming languages by suffix, and what their grammars call the things that have a name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CodeLanguage:
    """A language, the package that has its grammar, and the function of it that gives the grammar."""

    name: str
    media_type: str
    package: str
    grammar: str = "language"


_PYTHON = CodeLanguage("python", "text/x-python", "tree_sitter_python")
_JAVASCRIPT = CodeLanguage("javascript", "text/javascript", "tree_sitter_javascript")
_TYPESCRIPT = CodeLanguage("typescript", "text/x-typescript", "tree_sitter_typescript", "language_typescript")
_TSX = CodeLanguage("typescript", "text/x-typescript", "tree_sitter_typescript", "language_tsx")
_GO = CodeLanguage("go", "text/x-go", "tree_sitter_go")
_RUST = CodeLanguage("rust", "text/x-rust", "tree_sitter_rust")
_JAVA = CodeLanguage("java", "text/x-java", "tree_sitter_java")
LANGUAGES = {
    ".py": _PYTHON,
    ".js": _JAVASCRIPT,
    ".mjs": _JAVASCRIPT,
    ".cjs": _JAVASCRIPT,
    ".jsx": _JAVASCRIPT,
    ".ts": _TYPESCRIPT,
    ".tsx": _TSX,
    ".go": _GO,
    ".rs": _RUST,
    ".java": _JAVA,
}


def _kinds(text: str) -> frozenset[str]:
    return frozenset(text.split())


CONTAINERS = _kinds(
    "class_definition class_declaration abstract_class_declaration class interface_declaration internal_module module "
    "impl_item trait_item mod_item enum_declaration record_declaration annotation_type_declaration"
)
"""Definitions whose body holds other definitions."""
FUNCTIONS = _kinds("arrow_function function_expression generator_function class")
"""Values that make a variable or a field a definition."""
DEFINITIONS = CONTAINERS | _kinds(
    "function_definition function_declaration generator_function_declaration function_signature function_expression "
    "function_item method_definition method_declaration abstract_method_signature type_alias_declaration "
    "type_declaration struct_item enum_item union_item macro_definition constructor_declaration "
    "compact_constructor_declaration"
)
HOLDERS = _kinds("lexical_declaration variable_declaration public_field_definition field_definition")
"""Declarations that are definitions when their value is a function."""
WRAPPERS = _kinds("decorated_definition export_statement ambient_declaration expression_statement")
LEADS = _kinds("comment line_comment block_comment attribute_item decorator")
"""What stands before a definition and describes it."""
TRANSPARENT = _kinds("ERROR enum_body_declarations")
"""What holds definitions without being one: their members count as if it were not there."""
