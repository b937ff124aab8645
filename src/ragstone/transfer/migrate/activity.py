"""Conversations, votes, golden queries and the retrieval log of a tenant, carried to another ledger."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ragstone.core.activity import Feedback, GoldenQuery, LoggedSearch, Turn
from ragstone.stores.activity.conversations import ConversationRepository, put_turn
from ragstone.stores.activity.feedback import FeedbackRepository, put_golden, put_votes
from ragstone.stores.activity.removal import remove_kb_rows
from ragstone.stores.activity.retrieval_log import RetrievalLog, put_searches
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.ledger.reads import read_kb
from ragstone.stores.sql.database import Connection

PAGE = 500


async def carry_activity(here: SqlLedger, there: SqlLedger, tenant: str) -> None:
    """Write there what is here, in place of what was carried before."""
    conversations, feedback = ConversationRepository(here, tenant), FeedbackRepository(here, tenant)
    for kb in await here.kbs(tenant):
        turns, votes = await conversations.all_turns(kb.name), await feedback.votes(kb.name)
        await there.write(tenant, _replace, kb.name, turns, votes, await feedback.golden(kb.name))
    log, after = RetrievalLog(here, tenant), 0
    page = await log.page(after, PAGE)
    if page:
        await there.write_log(tenant, _empty_log)
    while page:
        await there.write_log(tenant, partial(_append, [search for _, search in page]))
        after, _ = page[-1]
        page = await log.page(after, PAGE)


def _replace(
    connection: Connection,
    tenant_id: str,
    name: str,
    turns: Sequence[Turn],
    votes: Sequence[Feedback],
    golden: Sequence[GoldenQuery],
) -> None:
    kb = read_kb(connection, tenant_id, name)
    if kb is None:
        return  # deleted here and there since
    remove_kb_rows(connection, tenant_id, kb.id)
    for turn in turns:
        put_turn(connection, tenant_id, kb.id, turn)
    put_votes(connection, tenant_id, kb.id, votes)
    put_golden(connection, tenant_id, kb.id, golden)


def _empty_log(connection: Connection, tenant_id: str) -> None:
    connection.execute("DELETE FROM retrieval_log WHERE tenant_id = ?", (tenant_id,))


def _append(searches: Sequence[LoggedSearch], connection: Connection, tenant_id: str) -> None:
    put_searches(connection, tenant_id, searches)
