"""The examples of the README and the guides that need a service run against one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.client.conftest import LiveService

ROOT = Path(__file__).parents[2]
ADDRESS = "http://127.0.0.1:8000"
"""The address by which an example says that it needs a service; the tests of documentation leave it to this one."""
PRINTED = {
    "README.md": [["completed", "Refunds take five working days. [1]"]],
    "docs/quickstart.md": [["completed", "Sick leave is reported before nine. [1]"]],
    "docs/howto/client.md": [
        ["completed 100 %", "Refunds take five working days. [1] Refunds"],
        ["Refunds take five working days. [1]", "1 sources"],
        ["not_found no document"],
        ["1"],
    ],
}
"""Some lines of what each example prints, or beginnings of them."""


def read_examples(page: Path) -> list[str]:
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [block for block in blocks if ADDRESS in block]


def test_no_page_is_left_out() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert {page.relative_to(ROOT).as_posix() for page in pages if read_examples(page)} == PRINTED.keys()


@pytest.mark.parametrize("page", PRINTED)
def test_the_examples_run(
    page: str, service: LiveService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KEY", service.key(re.sub(r"\W", "-", page.lower())))
    examples = read_examples(ROOT / page)
    assert len(examples) == len(PRINTED[page])
    for example, lines in zip(examples, PRINTED[page], strict=True):
        exec(compile(example.replace(ADDRESS, service.url), page, "exec"), {"__name__": "__main__"})
        printed = capfd.readouterr().out.splitlines()
        for line in lines:
            assert any(shown.startswith(line) for shown in printed), (page, line, printed)
