"""Whether an answer holds the facts that were asked for."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Literal

Grade = Literal["right", "partly", "wrong", "refused"]
_MARKS = re.compile(r"\[\d+(?:, ?\d+)*\]")
_MARKUP = re.compile(r"[*`]|(?<!\w)_|_(?!\w)")
_ALIKE = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "-", "‑": "-", "−": "-"})


def grade(said: str, facts: Sequence[Sequence[str]], *, in_parts: bool = False) -> Grade:
    """Return how an answer that was given does; in a question of parts some of the facts are partly right."""
    found = [any(holds(said, spelling) for spelling in spellings) for spellings in facts]
    if found and all(found):
        return "right"
    return "partly" if in_parts and any(found) else "wrong"


def holds(text: str, fact: str) -> bool:
    """Return whether a text has a fact in it, as whole words; case, markup and spaces do not count."""
    wanted = normalize(fact)
    around = r"(?<![\w.])" if wanted[:1].isdigit() else r"(?<!\w)" if wanted[:1].isalpha() else ""
    behind = r"(?!\w|[.,]\d)" if wanted[-1:].isdigit() else r"(?!\w)" if wanted[-1:].isalpha() else ""
    return bool(wanted) and re.search(around + re.escape(wanted) + behind, normalize(text)) is not None


def normalize(text: str) -> str:
    """Return a text without case, citation marks, emphasis and repeated spaces."""
    plain = unicodedata.normalize("NFKC", text).translate(_ALIKE)
    return " ".join(_MARKUP.sub("", _MARKS.sub(" ", plain)).casefold().split())


def words_of(text: str) -> str:
    """Return the letters and digits of a text, for telling whether a sentence came out of a model unchanged."""
    return " ".join(re.findall(r"\w+", normalize(text)))
