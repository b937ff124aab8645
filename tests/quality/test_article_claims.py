"""Fact verification on planted statements: real mail, feeds and papers, real retrieval, real checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from email.message import EmailMessage
from mailbox import mbox
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from tests.doubles.newsroom import newsroom
from tests.doubles.web import WebDouble, xml
from tests.quality.article_claims import ALTERED, FEED, MAILS, PAPERS, TRUE

from ragstone.agents.article.run import write_article
from ragstone.core.agents.articles import ArticleClaim
from ragstone.core.types import Item
from ragstone.engine.engine import open_engine
from ragstone.engine.workspace import Workspace
from ragstone.settings.load import load_settings

DRAFT = "# The harbour\n\n" + "\n\n".join((*TRUE, *ALTERED)) + "\n"


def write_mails(folder: Path) -> str:
    """Write a mailbox and return its path."""
    box = mbox(folder / "mails.mbox")
    for number, (subject, text) in enumerate(MAILS.items()):
        mail = EmailMessage()
        mail["From"], mail["To"], mail["Subject"] = "board@harbour.example", "all@harbour.example", subject
        mail["Message-ID"], mail["Date"] = f"<{number}@harbour.example>", "Tue, 5 May 2026 10:00:00 +0000"
        mail.set_content(text)
        box.add(mail)
    box.close()
    return str(folder / "mails.mbox")


async def ingest(workspace: Workspace, folder: Path, web: WebDouble) -> None:
    """Take in the mailbox, the feed and the papers, each by its own connector."""
    items = "".join(
        f"<item><title>{escape(title)}</title><guid>urn:{title}</guid><description>{escape(text)}</description></item>"
        for title, text in FEED.items()
    )
    web.on("/feed", xml(f'<rss version="2.0"><channel><title>The News</title>{items}</channel></rss>'))
    await workspace.sources.add("mbox", "letters", {"path": write_mails(folder)})
    await workspace.sources.add("feeds", "news", {"urls": [web.url("/feed")]})
    for name in ("letters", "news"):
        await workspace.sources.sync(name)
    papers = [
        Item("papers", title, title, f"# {title}\n\n## Abstract\n\n{text}\n", metadata={"source_type": "paper"})
        for title, text in PAPERS.items()
    ]
    await workspace.documents.ingest_items(papers)


@pytest.mark.req("R-ART-11", "R-ART-13")
async def test_altered_statements_do_not_stand_and_true_ones_do(
    tmp_path: Path, record_property: Callable[[str, object], None], capsys: pytest.CaptureFixture[str]
) -> None:
    parts = {"writer": DRAFT, "editor": DRAFT, "style_enforce": DRAFT}
    with newsroom(parts) as double, WebDouble() as web:
        llm = {"model": "m", "base_url": double.url, "retries": 0}
        overrides = {"data_dir": tmp_path / "data", "llm": llm, "fetch": {"allow": ["127.0.0.1"]}}
        async with open_engine(load_settings(overrides=overrides)) as engine:
            workspace = engine.workspace("default")
            await ingest(workspace, tmp_path, web)
            await engine.worker().run(until_idle=True)
            documents = await workspace.documents.list()
            assert Counter(one.metadata["source_type"] for one in documents) == {"email": 3, "rss": 3, "paper": 3}
            article = (await write_article(workspace, "The harbour")).article
    assert article is not None
    claims = {claim.text: claim for claim in article.claims if claim.end}
    assert claims.keys() == {*TRUE, *ALTERED}
    counted = {
        kind: Counter(claims[text].outcome for text in texts) for kind, texts in (("true", TRUE), ("altered", ALTERED))
    }
    wrong = [text for text in TRUE if claims[text].outcome == "refuted"]
    wrong += [text for text in ALTERED if claims[text].outcome == "confirmed"]
    with capsys.disabled():
        print(f" {counted}, judged wrongly: {wrong}", end="")
    record_property("noted", str(counted))
    body = article.markdown.partition("\n## Sources\n")[0]
    _check_bounds(claims, counted)
    for text in ALTERED:
        assert (f"{text} [" in body) == (claims[text].outcome == "confirmed")


def _check_bounds(claims: dict[str, ArticleClaim], counted: dict[str, Counter[str]]) -> None:
    """Hold what is asked: 70 % of true statements confirmed and 3 % refuted, and 3 % of false ones confirmed."""
    assert counted["true"]["confirmed"] >= 0.7 * len(TRUE)
    assert counted["true"]["refuted"] <= 0.03 * len(TRUE)
    assert counted["altered"]["confirmed"] <= 0.03 * len(ALTERED)
    assert counted["altered"]["refuted"] >= 0.5 * len(ALTERED)
    assert all(claims[text].treatment == "kept" for text in TRUE if claims[text].outcome == "confirmed")
