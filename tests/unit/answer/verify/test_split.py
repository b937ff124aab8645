"""Where a claim is taken apart: sentences of everyday English, written by hand."""

from __future__ import annotations

import re

import pytest

from ragstone.answer.verify.split import split_claim

COMPOUND = [
    # two clauses, each with its subject
    "The slip is open | the quay is shut.",
    "The boat left at noon | the crew slept.",
    "Anna wrote the report | Paul signed it.",
    "The mill grinds corn | the bakery bakes bread.",
    "Acme mills flour | Borealis bakes bread.",
    "The bridge opened in 1974 | the tunnel followed in 1990.",
    "It rains in winter | it snows in spring.",
    "The mayor resigned | her deputy took over.",
    "The pump heats the water | a fan cools the motor.",
    "They brew beer in Oslo | they bottle it in Bergen.",
    "The islands trade fish | the mainland pays in grain.",
    "The first ferry departs at six | the last one returns at midnight.",
    "The valve opened | the tank emptied.",
    "The alarm sounds | the gate drops.",
    "Maria Lind founded the firm | her brother runs it.",
    "The tower is 90 metres tall | its bell weighs 2 tonnes.",
    "The lake froze in January | skaters crossed it in February.",
    "The council owns the harbour | the state owns the lighthouse.",
    "The vaccine reduces fever | the tablet eases pain.",
    "Half of the boats sank | the others drifted ashore.",
    "The lock was built in 1900 | it was widened in 1950.",
    "The engine burns diesel | its heater burns gas.",
    "Bees pollinate apples | wasps eat the fruit.",
    "The court dismissed the case | the owner appealed.",
    "The shop sells nets | the owner repairs boats.",
    # a semicolon, "but", "whereas", "while", a full stop
    "The slip is open |; the quay is shut.",
    "The ferry carries cars |but it refuses lorries.",
    "The east side floods |whereas the west side stays dry.",
    "The north gate opens at eight |,while the south gate opens at nine.",
    "The engine failed |. The crew rowed ashore.",
    "The old kiln smokes |; the new one does not.",
    "The tunnel leaked |but the pumps coped.",
    "Sales rose in spring |but they dropped in autumn.",
    # one subject, two verbs
    "The boat leaves at eight | [The boat] arrives at nine.",
    "The firm makes pumps | [The firm] sells them in Norway.",
    "The crew sighted land in May | [The crew] anchored there in June.",
    "The director hired a cook | [The director] fired the steward.",
    "The canal links the two lakes | [The canal] drains the marsh.",
    "The enzyme cleaves the protein | [The enzyme] releases a peptide.",
    "The museum closes at five | [The museum] reopens at seven.",
    "The poet wrote ten plays | [The poet] translated the Odyssey.",
    "The company employs 40 people | [The company] rents two offices.",
    "The pilot boards the ship | [The pilot] guides it into port.",
    "The committee met on Monday | [The committee] rejected the plan.",
    "The storm tore the roof | [The storm] flooded the cellar.",
    "The glacier retreats every year | [The glacier] feeds the river.",
    "The drug enters the cell | [The drug] blocks the receptor.",
    "She was born in Oslo | [She] studied in Bergen.",
    "The baker mixes the dough | [The baker] kneads it by hand.",
    "The farm grows barley | [The farm] keeps 200 sheep.",
    "The tenant pays the rent | [The tenant] cleans the stairs.",
    "The guard locks the gate at ten | [The guard] patrols the yard.",
    "The river rises in the hills | [The river] joins the fjord at Sula.",
    "The boats leave at eight | [The boats] arrive at nine.",
    "The cranes unload the ships | [The cranes] stack the crates.",
    # what belongs to the subject goes along
    "The house was built in 1900 | [The house was] restored in 1990.",
    "The crew must stop the pump | [The crew must] check the oil.",
    "The diver can swim to the wreck | [The diver can] raise the anchor.",
    "The letters were opened by the clerk | [The letters were] copied by hand.",
    "The owner will paint the hull | [The owner will] replace the mast.",
]
WHOLE = [
    # lists of nouns
    "Salt and pepper are sold.",
    "The shop sells boats and engines.",
    "The shop sells boats and engines to tourists.",
    "The ferry carries cars, vans and lorries.",
    "The harbour dues and the fees are high.",
    "The slip and the quay are shut.",
    "The firm owns the slip and the old quay.",
    "She paid the fee and the harbour dues.",
    "The museum shows the ship and models of its engines.",
    "The farm grows wheat and barley all summer.",
    "The café serves coffee and snacks at noon.",
    "The mayor opened the school and the library in 1990.",
    "The board consists of farmers and fishermen.",
    "The crew needs nets and ropes.",
    "The kitchen uses butter, eggs and sugar every day.",
    "The law covers owners and tenants of houses.",
    "The study compares mice and rats on a diet.",
    "He speaks Danish and Norwegian.",
    "The trail crosses Norway and Sweden.",
    "The trust funds schools and clinics in rural areas.",
    "The port handles timber and ores from Sweden.",
    "The collection includes maps and charts of the coast.",
    "The club trains swimmers and divers of all ages.",
    "Copper and zinc make brass.",
    "Anna and Paul founded the firm.",
    "The captain and the crew left the ship.",
    "Rents and wages rose in 2020.",
    "Ships and boats of the navy anchor here.",
    "The dose and the time of day matter.",
    "The owner of the slip and the quay is Anna.",
    # adjectives, adverbs and phrases
    "The shop sells fresh and dried fish.",
    "The water is clear and cold.",
    "The road is long, steep and narrow.",
    "The crossing is quick and quite cheap.",
    "The crew worked quickly and quietly.",
    "The boat sails to Sula and back.",
    "The ferry runs in May and in June.",
    "It is open on Mondays and on Thursdays.",
    "The path leads over the hill and through the wood.",
    "The boat is painted red and white.",
    "The firm is based in Oslo and in Bergen.",
    "It is run not by the board but by the councils.",
    "The distance is between 5 and 10 km.",
    "The hull is old but sound.",
    "The bread is made with rye and a little salt.",
    "The tower was built by monks and local masons.",
    "The law protects both the buyer and the seller.",
    "Channel 14 is for the pilots and no longer for general calls.",
    "Trade and industry in the region suffered.",
    "The number of boats and their size matter.",
    # what one word stands over
    "If the valve leaks and the pump stops, the reactor closes.",
    "When the tank is full, the pump stops and the alarm sounds.",
    "The board says that the slip is open and the quay is shut.",
    "The man who runs the slip and the quay is Anna.",
    "The pump stops and the alarm sounds if the tank is full.",
    "The boat which leaks and rolls was sold.",
    "The engine parts that crack and rust are replaced.",
    "Because the road is narrow and the hill is steep, buses turn here.",
    "The crew did not stop the pump and check the oil.",
    "",
]


def read_row(row: str) -> tuple[str, list[str]]:
    """The claim that a row is about and its parts: "|" is an "and" or the joint behind it, "[…]" is not said twice."""
    left, joint, right = re.fullmatch(r"(.*?) \|(\S*) (.*)", row).groups()  # type: ignore[union-attr]
    between = {"": " and ", ";": "; ", ".": ". ", ",while": ", while "}.get(joint, f" {joint} ")
    return left + between + re.sub(r"\[.*\] ", "", right), [left, re.sub(r"[\[\]]", "", right)]


def test_only_so_many_joints_are_looked_at() -> None:
    assert len(split_claim("x and " * 30 + "the slip is open and the quay is shut")) == 1


@pytest.mark.parametrize("row", COMPOUND)
def test_statements_are_told_apart(row: str) -> None:
    claim, parts = read_row(row)
    assert split_claim(claim) == parts


@pytest.mark.parametrize("claim", WHOLE)
def test_what_is_one_statement_stays_whole(claim: str) -> None:
    assert split_claim(claim) == [claim]


def test_things_that_are_counted_are_no_verb() -> None:
    assert split_claim("The two files a.c and b.c were sold by Ida.") == ["The two files a.c and b.c were sold by Ida."]
