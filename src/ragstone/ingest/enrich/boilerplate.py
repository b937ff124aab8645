"""Remove from web pages what stands on every page: cookie notices, share bars, newsletter forms, footers.

The HTML parser leaves out what its markup marks as frame; this is for what no markup marks. A block goes only
when all of it is such a phrase, or when it stands at an edge of the page and cannot be anything else: a page
about cookies keeps what it says about cookies.
"""

from __future__ import annotations

import re
from dataclasses import replace

from ragstone.core.types import Block, Parsed

MAX_CHARS = 400
"""No longer block is looked at: boilerplate is short, and an article is not."""
EDGE = 8
"""The number of blocks from either end that count as the edge of a page."""
GAP = "\n\n"
_BETWEEN_LINKS = re.compile(r"[|·•,\n]")


def _any_of(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in alternatives), re.IGNORECASE)


_PHRASES = _any_of(
    r"skip to (?:the )?(?:main )?content|back to top|zum inhalt springen|nach oben",
    r"read more|show more|load more|loading|weiterlesen|lire la suite|leer más",
    r"advertisements?|sponsored(?: content)?|anzeige|werbung|publicité|publicidad",
    r"(?:log|sign) (?:in|up)(?: (?:or|to) (?:register|comment|subscribe|continue|reply))?",
    r"leave a (?:comment|reply)|(?:no|\d{1,5}) comments?|print(?: this page)?|table of contents",
    r"tweet|share|teilen|partager|compartir",
    r"(?:please )?enable javascript.{0,80}|you are here:.{0,120}",
)
"""Boilerplate wherever it stands, if nothing else is in the block."""
_SHARE = _any_of(
    r"(?:share|follow|teilen|folgen sie|partager|suivez|compartir|síguenos)\b.{0,40}?"
    r"\b(?:on|us|this|via|with|by|auf|uns|diesen?|sur|en)\b.{0,120}"
)
_NETWORKS = _any_of(
    r"\b(?:facebook|twitter|linkedin|whatsapp|telegram|reddit|pinterest|instagram|mastodon|bluesky|xing|email|x)\b"
)
_COOKIES = _any_of(
    r"\b(?:we|this (?:web)?site|our (?:web)?site|our partners)\b.{0,60}\b(?:uses?|stores?)\b.{0,40}\bcookies\b",
    r"\b(?:wir|diese (?:web)?seite) (?:verwenden|nutzen|verwendet|nutzt)\b.{0,40}\bcookies\b",
    r"\b(?:nous utilisons|ce site utilise)\b.{0,40}\bcookies\b",
    r"\b(?:utilizamos|este sitio (?:web )?utiliza)\b.{0,40}\bcookies\b",
    r"\baccept (?:all )?cookies\b",
)
_CONSENT = _any_of(
    r"\b(?:accept\w*|consent|agree|decline|preferences|settings|by continuing|privacy policy)\b",
    r"\b(?:your experience|analy[sz]e (?:our )?traffic|analytics|personali[sz]e)\b",
    r"\b(?:zustimm\w*|akzeptier\w*|einwillig\w*|datenschutz\w*|confidentialité|acept\w*|privacidad)\b",
)
"""Words that make a sentence about cookies a notice."""
_NEWSLETTER = _any_of(
    r"(?:subscribe|sign up|join|register|abonnieren|melden sie sich|abonnez|inscrivez|suscríb\w+)\b.{0,80}"
    r"\b(?:newsletter|mailing list|inbox|updates|boletín|lettre d'information)\b.{0,160}"
)
_RIGHTS = _any_of(
    r"(?:©|\(c\)|copyright\b).{0,120}",
    r".{0,120}\b(?:all rights reserved|alle rechte vorbehalten|tous droits réservés)\b.{0,60}",
    r".{0,120}\btodos los derechos reservados\b.{0,60}",
)
_FOOTER_LINK = _any_of(
    r"about(?: us)?|contact(?: us)?|imprint|legal|privacy(?: policy)?|cookie (?:policy|settings)|help|faq",
    r"terms(?: of (?:service|use)| and conditions| & conditions)?|site ?map|careers|jobs|press|home|rss",
    r"log ?in|sign in|sign up|register|subscribe|accessibility|advertise",
    r"impressum|datenschutz|agb|kontakt|mentions légales|aviso legal|privacidad|contacto",
)
_RELATED = _any_of(
    r"related (?:articles?|posts?|stories|content|reading)|you (?:may|might) also like|more from .{1,60}",
    r"recommended(?: for you)?|most (?:read|popular)|trending(?: now)?",
    r"das könnte sie auch interessieren|à lire aussi|también te puede interesar",
)


def trim_boilerplate(parsed: Parsed) -> Parsed:
    """Return a web document without its boilerplate; unchanged if there is none, or if nothing else would be left."""
    kept: list[Block] = []
    after_related = False
    for position, block in enumerate(parsed.blocks):
        at_edge = position < EDGE or position >= len(parsed.blocks) - EDGE
        text = parsed.text[block.start : min(block.end, block.start + MAX_CHARS + 1)]
        related = block.kind == "heading" and at_edge and _RELATED.fullmatch(block.label) is not None
        links = after_related and block.kind == "list"
        if not related and not links and not _is_boilerplate(block, text, at_edge=at_edge):
            kept.append(block)
        after_related = related
    says_something = any(block.kind != "heading" for block in kept)
    return _of_blocks(parsed, kept) if says_something and len(kept) < len(parsed.blocks) else parsed


def _is_boilerplate(block: Block, text: str, *, at_edge: bool) -> bool:
    if block.kind in ("code", "table") or len(text) > MAX_CHARS:
        return False
    line = " ".join((block.label or text).split()).lstrip("-•* ").rstrip(" .:…!›»→")
    if _PHRASES.fullmatch(line) or _is_share_bar(line):
        return True
    if _COOKIES.search(line) and _CONSENT.search(line):
        return True
    if not at_edge:
        return False
    return bool(_NEWSLETTER.fullmatch(line) or _RIGHTS.fullmatch(line) or _is_link_bar(text))


def _is_share_bar(line: str) -> bool:
    """Return whether a line invites to share, or consists of names of networks."""
    networks = len(_NETWORKS.findall(line))
    if networks >= 2 and not re.sub(r"\W+", "", _NETWORKS.sub("", line)):
        return True
    return len(line) <= 160 and bool(_SHARE.fullmatch(line)) and (networks > 0 or len(line.split()) <= 4)


def _is_link_bar(text: str) -> bool:
    """Return whether a text is two or more links as they stand under every page."""
    links = list(filter(None, (part.strip(" -*.") for part in _BETWEEN_LINKS.split(text))))
    return len(links) >= 2 and all(map(_FOOTER_LINK.fullmatch, links))


def _of_blocks(parsed: Parsed, blocks: list[Block]) -> Parsed:
    """Return the document made of these blocks only, with new offsets."""
    pieces: list[str] = []
    moved: list[Block] = []
    length = 0
    for block in blocks:
        piece = parsed.text[block.start : block.end]
        start = length + (len(GAP) if pieces else 0)
        length = start + len(piece)
        pieces.append(piece)
        moved.append(replace(block, start=start, end=length))
    return replace(parsed, text=GAP.join(pieces), blocks=tuple(moved))
