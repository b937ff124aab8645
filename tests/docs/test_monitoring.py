"""The guide to monitoring names what there is."""

from __future__ import annotations

import re
from pathlib import Path

from ragstone.engine.monitoring.alerts import RULES
from ragstone.engine.monitoring.metrics import Metrics

GUIDE = Path(__file__).parents[2] / "docs" / "howto" / "monitoring.md"


def test_the_table_of_metrics_is_complete() -> None:
    rows = [
        line for line in GUIDE.read_text(encoding="utf-8").splitlines() if re.match(r"\| `(ragstone|process)_", line)
    ]
    named = {name: row for row in rows for name in re.findall(r"`((?:ragstone|process)_[a-z_]+)`", row.split("|")[1])}
    instruments = Metrics().instruments
    assert set(named) == {instrument.name for instrument in instruments}
    for instrument in instruments:
        assert all(f"`{label}`" in named[instrument.name].split("|")[2] for label in instrument.labels), instrument.name


def test_the_table_of_alert_rules_is_complete() -> None:
    section = GUIDE.read_text(encoding="utf-8").partition("## Alerts")[2].partition("## Analytics")[0]
    named = re.findall(r"^\| `([a-z0-9_.]+)` \|", section, re.MULTILINE)
    assert set(named) == set(RULES)
