"""Targets: a bound, and how far beyond it somebody is woken."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from ragstone.settings.targets import Target


@pytest.mark.parametrize(("value", "met"), [(0.9, True), (0.8, False), (0.5, False)])
def test_a_figure_has_to_be_above_its_bound(value: float, met: bool) -> None:
    assert Target(above=0.8).is_met(value) is met


@pytest.mark.parametrize(("value", "met"), [(90, True), (100, False), (250, False)])
def test_a_figure_has_to_be_below_its_bound(value: float, met: bool) -> None:
    assert Target(below=100).is_met(value) is met


@pytest.mark.parametrize(
    ("target", "calm", "alarming"), [(Target(above=0.8, alert=0.6), 0.6, 0.5), (Target(below=100, alert=500), 500, 501)]
)
def test_only_what_is_far_on_the_wrong_side_is_alarming(target: Target, calm: float, alarming: float) -> None:
    assert not target.is_met(calm)
    assert (target.alarms(calm), target.alarms(alarming)) == (False, True)


def test_without_an_alert_nobody_is_woken() -> None:
    assert Target(above=0.8).alarms(0.0) is False


@pytest.mark.parametrize("bounds", [{}, {"above": 1.0, "below": 2.0}])
def test_a_target_is_one_bound(bounds: dict[str, float]) -> None:
    with pytest.raises(ValidationError, match="either 'above' or 'below'"):
        Target.model_validate(bounds)


def test_a_target_reads_as_it_is_said() -> None:
    assert (str(Target(above=0.8)), str(Target(below=200))) == ("> 0.8", "< 200")
