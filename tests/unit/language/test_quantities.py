from __future__ import annotations

import pytest

from ragstone.language.dates import Moment, find_moments
from ragstone.language.measurements import find_quantities
from ragstone.language.negation import restate
from ragstone.language.quantities import compare
from ragstone.language.units import unit_of


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
    (claimed,) = find_quantities(claim)
    assert compare(claimed, find_quantities(source)) == outcome


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
    (claimed,) = find_quantities(claim)
    assert compare(claimed, find_quantities(source)) == outcome


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
    (claimed,) = find_quantities(claim)
    assert compare(claimed, find_quantities(source)) == outcome


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
    (claimed,) = find_quantities(claim)
    assert compare(claimed, find_quantities(source)) == outcome


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
    (claimed,) = find_quantities(claim)
    assert compare(claimed, find_quantities(source)) == outcome


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
    assert restate(claim, sentence) == said


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("It is 41 °F warmer than the sea.", "It is 5 °C warmer than the sea."),
        ("The water rose 41 °F.", "The water rose 5 °C."),
        ("The water fell 41 °F overnight.", "The water fell 5 °C overnight."),
        ("It stays within 35.6 °F of the set point.", "It stays within 2 °C of the set point."),
        ("a tolerance of 35.6 °F", "a tolerance of 2 °C"),
        ("The difference between the rooms was 41 °F.", "The difference between the rooms was 5 °C."),
        ("It varies by as much as 41 °F.", "It varies by as much as 5 °C."),
        ("It varies, some days 41 °F.", "It varies, some days 5 °C."),
        ("a 41 °F rise", "a 5 °C rise"),
        ("plus or minus 35.6 °F", "plus or minus 2 °C"),
        ("±35.6 °F", "±2 °C"),
        ("It is accurate to 35.6 °F.", "It is accurate to 2 °C."),
        ("Tolerance: 35.6 °F", "Tolerance: 2 °C"),
        ("34.7 °F of warming", "1.5 °C of warming"),
        ("It is 41 °F too warm.", "It is 5 °C too warm."),
        ("It was −18 °F.", "It was 18 °F below freezing."),
        ("It was 18.", "It was 18 below zero."),
        ("It is kept at 18 °C.", "It is kept at minus\u00a018 °C."),
        ("It is kept at 18 °C.", "It is kept at –18 °C."),
        ("It is kept at 18 °C.", "It is kept at \u201118 °C."),
        ("It is kept at 18 °C.", "It is kept at minus 18 °C."),
        ("It is kept at 18.", "It is kept at negative 18."),
        ("It is kept at eighteen degrees.", "It is kept at minus eighteen degrees."),
        ("It was 18 degrees.", "It was 18 degrees below zero."),
        ("100 MB/s", "100 Mb/s"),
        ("100 MBps", "100 Mbps"),
        ("100 MB", "100 mb"),
        ("8 GB", "8 Gb"),
        ("5 MWh", "5 mWh"),
        ("5 mm", "5 mM"),
        ("5 nm", "5 nM"),
        ("3 tonnes", "3 T"),
        ("5 m", "5 M"),
        ("60 miles", "60 mph"),
        ("5 ml", "5 ml per hour"),
        ("5 ml per hour", "5 ml"),
        ("$5 per year", "$5 per month"),
        ("$5 weekly", "$5 monthly"),
        ("$50", "C$50"),
        ("It rose by 20 million.", "It rose to 20 million."),
        ("It rose to 20 million.", "It rose by 20 million."),
        ("one hundred boats", "two hundred boats"),
        ("two hundred", "two hundred thousand"),
        ("two hundred boats", "two hundred and fifty boats"),
        ("one week", "two weeks"),
        ("5 users", "5k users"),
        ("It has 5.", "It has 5M."),
        ("5 users", "5bn users"),
        ("two hours", "two and a half hours"),
        ("5 hours", "5½ hours"),
        ("account 12345678901234567890", "account 12345678901234567891"),
        ("twice a week", "twice a month"),
        ("twice weekly", "twice monthly"),
        ("at least 10 days", "5–10 days"),
        ("5 days", "5–10 days"),
        ("at least 10 days", "between 5 and 10 days"),
        ("3 printers", "3D printers"),
    ],
)
def test_what_only_looks_alike_is_not_the_same(claim: str, source: str) -> None:
    (claimed,) = find_quantities(claim)
    assert compare(claimed, find_quantities(source)) != "same"


@pytest.mark.parametrize(
    ("claim", "source", "outcome"),
    [
        ("It is 9 °F warmer than the sea.", "It is 5 °C warmer than the sea.", "same"),
        ("It rose 9 °F.", "It rose by 5 °C.", "same"),
        ("It fell below 41 °F.", "It fell below 5 °C.", "same"),
        ("It rose to 41 °F.", "It rose to about 5 °C.", "same"),
        ("It is kept at −18 °C.", "It is kept at minus 18 °C.", "same"),
        ("It was -18 °C.", "It was 18 °C below zero.", "same"),
        ("800 Mb", "100 MB", "same"),
        ("100 MB/s", "100 MBps", "same"),
        ("60 miles per hour", "60 mph", "same"),
        ("$60 per year", "$5 per month", "same"),
        ("$5 per year", "$5 per month", "differs"),
        ("$5", "$5 per month", "absent"),
        ("US$50", "$50", "same"),
        ("It rose by 20%.", "It rose 20%.", "same"),
        ("100 boats", "one hundred boats", "same"),
        ("7 days", "one week", "same"),
        ("5,000 users", "5k users", "same"),
        ("250 boats", "two hundred and fifty boats", "same"),
        ("2,050,000 people", "two million and fifty thousand people", "same"),
        ("101 boats", "one hundred and one boats", "same"),
        ("250,000 people", "two hundred and fifty thousand people", "same"),
        ("150 minutes", "two and a half hours", "same"),
        ("account 12345678901234567890", "account 12345678901234567890", "same"),
        ("two times a week", "twice a week", "same"),
        ("5 mg per day", "5 mg daily", "same"),
        ("27 paid days", "27 days", "same"),
        ("4 weeks", "one month", "absent"),
        ("12 weeks", "12 months", "differs"),
        ("up to 12 weeks", "12 months", "absent"),
        ("five working days", "five days", "absent"),
        ("£5 quarterly", "£5 every quarter", "same"),
        ("every hour", "hourly", "same"),
        ("every hour", "every 2 hours", "differs"),
        ("every hour", "within an hour, every 2 hours", "differs"),
        ("every 12 hours", "twice a day", "same"),
        ("at least once a week", "at least every seven days", "same"),
        ("every 30 days", "monthly", "absent"),
        ("every 20 days", "monthly", "differs"),
        ("every second week", "every other week", "same"),
        ("per year", "25 days of leave annually", "same"),
        ("nightly", "5 mg each night", "same"),
        ("at least 5 days", "5–10 days", "same"),
        ("up to 10 days", "5 to 10 days", "same"),
        ("7 days", "5–10 days", "absent"),
        ("12 days", "5–10 days", "differs"),
        ("It grew to 10 boats.", "It grew from 5 to 10 boats.", "same"),
        ("It takes three hours.", "It may take up to three hours.", "absent"),
        ("It takes two hours.", "It takes up to three hours.", "absent"),
        ("It takes four hours.", "It takes up to three hours.", "differs"),
    ],
)
def test_what_only_looks_different_is_the_same(claim: str, source: str, outcome: str) -> None:
    (claimed,) = find_quantities(claim)
    assert compare(claimed, find_quantities(source)) == outcome


@pytest.mark.parametrize(
    "text", ["5–10 days", "from 5 to 10 °C", "–18 °C", "100 mb/s", "twice a week", "C$50", "180C", "a 5–2 win"]
)
def test_every_quantity_states_itself(text: str) -> None:
    assert {compare(one, find_quantities(text)) for one in find_quantities(text)} == {"same"}


@pytest.mark.parametrize("text", ["7" * 10_000, f"0.{'3' * 10_000}", "1,000" + ",000" * 5_000, "–" * 10_000])
def test_numbers_without_end_are_read(text: str) -> None:
    assert len(find_quantities(text)) <= 1


@pytest.mark.parametrize(
    "text",
    ["vitamin B12", "IL-6 levels", "one of them", "at 08:49", "on 3 May 1974", "the weekly report", "every second try"],
)
def test_names_dates_and_a_lone_one_are_no_quantities(text: str) -> None:
    assert find_quantities(text) == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("2. Leave", 0),
        ("2.4 Other leave", 0),
        ("  3) Pour in 5 litres.", 1),
        ("2.4 Kilograms are needed.", 1),
        ("2.4 kg are needed.", 1),
        ("12 Boats sail.", 1),
    ],
)
def test_the_number_of_a_heading_counts_nothing(text: str, count: int) -> None:
    assert len(find_quantities(text)) == count


def test_a_text_of_nothing_but_numbers_is_read_only_so_far() -> None:
    assert len(find_quantities("7 " * 1000)) == 60


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
    assert find_moments(text) == found


def test_a_date_fits_one_that_tells_more() -> None:
    assert Moment(2024, 5).fits(Moment(2024, 5, 6))
    assert not Moment(2024, 5, 6).fits(Moment(2024, 5))
    assert not Moment(2024, 5, 6).rivals(Moment(2024, 5))
    assert Moment(2024, 5, 6).rivals(Moment(2024, 6))
