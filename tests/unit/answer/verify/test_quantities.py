from __future__ import annotations

import pytest

from ragstone.answer.verify.dates import Moment, moments
from ragstone.answer.verify.quantities import quantities
from ragstone.answer.verify.quantity import compare
from ragstone.answer.verify.restate import restated
from ragstone.answer.verify.units import unit_of


@pytest.mark.parametrize(
    ("claim", "source", "outcome"),
    [
        ("It costs 2 crowns.", "It costs 2.00 crowns.", "same"),
        ("It costs 3 crowns.", "It costs 2.00 crowns.", "differs"),
        ("It weighs 1.5 kg.", "It weighs 1500 g.", "same"),
        ("It is 1 km away.", "It is 1,000 metres away.", "same"),
        ("It takes 30 minutes.", "It takes half an hour.", "same"),
        ("It takes 90 minutes.", "It takes half an hour.", "differs"),
        ("A share of 25%.", "A quarter of the fare.", "same"),
        ("It holds 2 GB.", "It holds 2000 MB.", "same"),
        ("It holds 2 GiB.", "It holds 2000 MiB.", "differs"),
        ("Twenty-one boats sail.", "21 boats sail.", "same"),
        ("1.26 million crowns", "1,260,000 crowns", "same"),
        ("It uses channel 12.", "Call on channel 14.", "differs"),
        ("It has 12 cabins.", "It sails in winter.", "absent"),
        ("It has 12 cabins.", "It has 12 cars.", "absent"),
        ("$5 a day", "5 dollars a day", "same"),
        ("a temperature of -3", "a temperature of 3", "differs"),
    ],
)
def test_a_number_is_compared_with_its_unit(claim: str, source: str, outcome: str) -> None:
    (claimed,) = quantities(claim)
    assert compare(claimed, quantities(source)) == outcome


@pytest.mark.parametrize(
    ("claim", "source", "outcome"),
    [
        ("more than 50 people", "60 people", "same"),
        ("more than 50 people", "50 people", "differs"),
        ("at least 50 people", "50 people", "same"),
        ("less than 50 people", "more than 50 people", "differs"),
        ("up to 10 kg", "9000 g", "same"),
        ("50 people", "more than 50 people", "differs"),
        ("up to 163 kg", "1 in 8, up to 160 kg", "differs"),
        ("about 600 people", "612 people", "same"),
        ("about 63 people", "60 people", "differs"),
        ("600 people", "612 people", "differs"),
    ],
)
def test_bounds_and_rounding(claim: str, source: str, outcome: str) -> None:
    (claimed,) = quantities(claim)
    assert compare(claimed, quantities(source)) == outcome


@pytest.mark.parametrize(
    ("claim", "source", "outcome"),
    [
        ("1500 kg", "1.5 tonnes", "same"),
        ("1500kg", "1.5 t", "same"),
        ("1,900 kg", "1.5 tonnes", "differs"),
        ("10 miles", "16 km", "same"),
        ("20 km", "10 miles", "differs"),
        ("6 ft", "1.83 m", "same"),
        ("5 feet 6 inches", "168 cm", "same"),
        ("5 nautical miles", "9.26 km", "same"),
        ("90 minutes", "1 hour 30 minutes", "same"),
        ("60 minutes", "1 hour 30 minutes", "differs"),
        ("three quarters of an hour", "45 minutes", "same"),
        ("1 day", "20 hours", "differs"),
        ("8 Mbit", "1 MB", "same"),
        ("2 hectares", "20,000 m²", "same"),
        ("5 m2", "5 sq. m", "same"),
        ("1 cubic metre", "1000 litres", "same"),
        ("500 gallons", "500 litres", "absent"),
        ("36 km/h", "10 m/s", "same"),
        ("60 mph", "97 km/h", "same"),
        ("10 knots", "18.5 km/h", "same"),
        ("50 mph", "50 km/h", "differs"),
        ("75%", "three quarters of the fleet", "same"),
        ("67%", "two thirds", "same"),
        ("one in four boats", "25% of boats", "same"),
        ("80%", "3 out of 4", "differs"),
        ("£5", "$5", "absent"),
        ("$3m", "$3 million", "same"),
        ("5 has", "5 hectares", "same"),
    ],
)
def test_units_of_one_dimension_convert_and_currencies_never(claim: str, source: str, outcome: str) -> None:
    (claimed,) = quantities(claim)
    assert compare(claimed, quantities(source)) == outcome


@pytest.mark.parametrize(
    ("claim", "source", "outcome"),
    [
        ("about 1.5 tonnes", "1,480 kg", "same"),
        ("about 1.5 tonnes", "1,900 kg", "differs"),
        ("1,480 kg", "about 1.5 tonnes", "absent"),
        ("1,480 kg", "1.5 tonnes", "absent"),
        ("1.5 tonnes", "1,480 kg", "absent"),
        ("about 2 hours", "118 minutes", "same"),
        ("2 hours", "115 minutes", "differs"),
        ("a third", "33%", "same"),
    ],
)
def test_rounding_is_judged_by_the_digits_given(claim: str, source: str, outcome: str) -> None:
    (claimed,) = quantities(claim)
    assert compare(claimed, quantities(source)) == outcome


@pytest.mark.parametrize(
    ("claim", "source", "outcome"),
    [
        ("356 °F", "180 °C", "same"),
        ("68 degrees Fahrenheit", "20 °C", "same"),
        ("400 °F", "180 °C", "differs"),
        ("273.15 K", "0 °C", "same"),
        ("about 20 °C", "24 °C", "differs"),
        ("it rose by 9 °F", "it rose by 5 °C", "same"),
        ("it rose by 41 °F", "it rose by 5 °C", "differs"),
        ("it rose by 5 °C", "it rose to 5 °C", "absent"),
    ],
)
def test_temperatures_are_points_unless_they_tell_a_change(claim: str, source: str, outcome: str) -> None:
    (claimed,) = quantities(claim)
    assert compare(claimed, quantities(source)) == outcome


@pytest.mark.parametrize(
    ("claim", "sentence", "said"),
    [
        ("It lifts 1500 kg.", "The crane lifts 1.5 tonnes.", "It lifts 1.5 tonnes."),
        ("It opens at 5 pm on Monday.", "Open Mondays at 17:00.", "It opens at 17:00 on Mondays."),
        ("It lifts 1900 kg.", "The crane lifts 1.5 tonnes.", "It lifts 1900 kg."),
        ("More than 1 tonne.", "It lifts 1500 kg.", "More than 1 tonne."),
    ],
)
def test_a_claim_is_read_in_the_figures_of_the_sentence(claim: str, sentence: str, said: str) -> None:
    assert restated(claim, sentence) == said


@pytest.mark.parametrize("text", ["vitamin B12", "IL-6 levels", "one of them", "at 08:49", "on 3 May 1974"])
def test_names_dates_and_a_lone_one_are_no_quantities(text: str) -> None:
    assert quantities(text) == []


def test_a_text_of_nothing_but_numbers_is_read_only_so_far() -> None:
    assert len(quantities("7 " * 1000)) == 60


def test_milliwatts_are_not_megawatts() -> None:
    assert unit_of("mW") is None
    assert unit_of("MW") == unit_of("megawatts")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("on 2024-05-06", [Moment(2024, 5, 6)]),
        ("on 6 May 2024", [Moment(2024, 5, 6)]),
        ("on May 6th, 2024", [Moment(2024, 5, 6)]),
        ("in Sept 2024", [Moment(2024, 9)]),
        ("in 1974", [Moment(1974)]),
        ("at 14:30", [Moment(minute=870)]),
        ("at 2.30 pm", [Moment(minute=870)]),
        ("at 12 am", [Moment(minute=0)]),
        ("costs 8.40", []),
        ("99 May", []),
        ("you may 5", []),
    ],
)
def test_dates_are_read_however_they_are_written(text: str, found: list[Moment]) -> None:
    assert moments(text) == found


def test_a_date_fits_one_that_tells_more() -> None:
    assert Moment(2024, 5).fits(Moment(2024, 5, 6))
    assert not Moment(2024, 5, 6).fits(Moment(2024, 5))
    assert not Moment(2024, 5, 6).rivals(Moment(2024, 5))
    assert Moment(2024, 5, 6).rivals(Moment(2024, 6))
