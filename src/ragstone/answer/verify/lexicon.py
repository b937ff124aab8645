"""English words that settle what a word is: those of closed classes, and verbs that are met often."""

from __future__ import annotations


def words_of(text: str) -> frozenset[str]:
    """Return the words that a text lists."""
    return frozenset(text.split())


BE = words_of("is are was were am")
HAVE = words_of("has have had")
MODALS = words_of("can could will would may might must should shall cannot do does did")
OWNING = words_of("the a an his her its their our my your")
"""A noun never stands right before one of these."""
QUANTIFYING = words_of(
    "this these those some any no every each all both many few several most another either"
)
SUBJECTS = words_of("i he she it they we you there nobody everyone someone")
OBJECTS = words_of("them him us me itself themselves himself herself")
PREPOSITIONS = words_of(
    "of in on at by for with from to into onto over under above below between among through during before after "
    "about against across along around behind beside near off out up down since until till within without via per "
    "as than like despite beyond towards toward upon"
)
LINKS = words_of(
    "and or but nor while whereas because if when who which that whose where unless although though"
)
ADVERBS = words_of(
    "also then often never always still now soon again already later sometimes only even just not too here today "
    "twice once thus therefore instead together away back ahead apart abroad online overseas downstream "
    "upstream worldwide nationwide"
)
NUMBERS = words_of(
    "one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty sixty hundred "
    "thousand million noon midnight"
)
PASTS = words_of(
    "became began bit blew broke came chose drew drank drove ate fell flew forgot forgave froze gave grew knew "
    "lay rode rang ran rose saw shook shrank sang sank spoke sprang stole swam swore took tore threw underwent "
    "undertook went woke wore wove withdrew wrote arose overcame foresaw overtook mistook"
)
"""Finite wherever they stand."""
PARTICIPLES = words_of(
    "bent bought bound bred brought built burnt caught dealt dug fed felt fled fought found ground hung heard "
    "held hit kept laid led learnt left lent let lit lost made meant met paid put read said sent set shone shot "
    "shut slept slid sold sought spent split spread stood struck stuck swept swung taught thought told understood "
    "wept withstood won cost cut"
)
"""Finite, or not: a boat built in Oslo."""
AFTER_NOUNS = words_of("needed required used involved concerned named listed affected given born")
"""Participles that stand behind a noun without being its verb."""
VERBS = words_of(
    "accept achieve act add admit adopt affect agree allow appear apply arrive ask assume attend avoid bake bear "
    "become begin believe belong bind bring build burn buy call carry catch cause change choose clean clear climb "
    "close collect come compare complete connect consist contain continue contribute control cook cost cover "
    "create cross cut deal decide declare decrease define deliver demand depart depend describe design destroy "
    "determine develop die differ dig direct discover drink drive drop earn eat employ enable end enhance enjoy "
    "ensure enter establish examine exceed exclude exist expand expect explain express extend fail fall feed feel "
    "fill find finish fit fix flow fly follow forbid form gain gather generate get give go grow handle happen "
    "hear heat help hide hire hold identify improve include increase indicate induce inform inhibit install "
    "introduce invest invite involve join keep kill know lack last lead learn leave lend let lie live load lock "
    "lose lower maintain make manage measure meet melt mix move need obtain occur offer open operate order "
    "organise organize own paint pass pay perform play prefer prepare prevent print produce promote protect prove "
    "provide publish pull push put raise reach react read receive recommend record reduce refuse regulate reject "
    "release remain remove rent repair replace represent require restore return rise run sail save say see seem "
    "sell send separate serve set settle share shine show sign sing sink sit sleep sound speak spend stand start "
    "state stay stop store study suffer suggest supply support suppress survive swim take teach tell think touch "
    "train transport travel treat try turn understand use vary visit wait walk want warn wash watch wear weigh "
    "win work write"
)
"""They settle what position leaves open (the pump stops, the harbour dues); others are told by form alone."""
PLURALS = words_of(
    "acts bears causes changes controls cooks costs covers cuts deals demands designs drinks drops ends forms "
    "heats increases decreases loads locks lowers measures needs offers orders paints passes plays prints records "
    "rents repairs returns rises runs sails shares signs sounds stands starts states stores studies supplies "
    "supports touches trains transports travels treats turns visits waits walks watches works"
)
"""Forms of verbs that may as well be plurals: behind an "and" they may go on with a list."""
