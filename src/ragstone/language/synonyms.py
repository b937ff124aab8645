"""Words that a writer may put for each other without saying anything else; written for this project.

Only words that mean the same in most sentences stand in one group. A word may be in several groups. Words for the
other side of a deal (buy and sell) or for a part of a thing are never in one group.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache

from ragstone.language.inflection import Roots, base_forms, find_root

_GROUPS = """
about approximately roughly around nearly circa some, almost nearly, abandon desert forsake leave quit,
abolish eliminate end scrap repeal cancel, accept agree consent, accident crash incident collision mishap,
accomplish achieve attain reach,
according per, accurate precise exact correct right, accuse charge allege, acquire buy purchase obtain get procure,
act law statute legislation, action step measure move, active busy, adapt adjust modify change alter, add append
attach include, address speech talk lecture, address location, advise recommend suggest counsel, affect influence
impact alter, afraid scared frightened fearful, age era period epoch, agency body authority organization office
bureau, aid help assist assistance support relief, aim goal purpose objective target intend intention, aircraft
airplane plane aeroplane jet airliner, allow permit let enable authorize, alive living, also too additionally moreover
furthermore besides likewise, although though despite while whereas, amount quantity sum volume, ancient old, angry
furious enraged, announce declare proclaim reveal say state, annual yearly year, answer reply respond response,
anticipate expect foresee predict forecast, appear seem look emerge, applicant candidate, appoint name choose select
nominate, approach method way technique procedure, approve endorse back ratify pass sanction authorize, area region
zone district territory, argue contend maintain claim assert say, arise occur emerge originate, army military troops
forces soldiers, arrange organize plan, arrest detain capture apprehend, arrive reach come land, article story piece
report, ask request inquire query, assess evaluate judge appraise measure estimate, assign allocate allot give, attack
assault strike raid, attempt try effort endeavor seek, attorney lawyer counsel solicitor, author writer, automatic
automatically itself, average mean, award prize honor grant give, aware conscious know, baby infant newborn, backing
support endorsement, bad poor, ban prohibit forbid bar outlaw prohibition, base found ground, battle fight combat
clash, begin start commence launch open initiate beginning onset, believe think hold consider, big large great huge
vast enormous massive sizeable substantial major considerable, bill invoice, birthplace born, blaze fire, block
obstruct prevent, body corpse, boat ship vessel ferry craft, book volume work, boost raise increase, border frontier
boundary, boss head chief leader manager director, brave courageous bold, break fracture, brief short, bring carry
take deliver, build construct erect make assemble construction, building structure edifice, burn scorch, business
company firm corporation enterprise, buyer purchaser, buy purchase acquire bought, call name term dub title describe,
cancel revoke annul scrap, capable able, captain skipper commander, car automobile vehicle, care look, carry transport
bear convey haul, carry conduct perform, cash money, catch capture trap, cause lead produce trigger bring result
provoke prompt reason, cease stop end halt discontinue, celebrate mark commemorate, center middle heart core, certain
sure, challenge dispute contest, change alter modify convert shift switch transform adjust, cheap inexpensive, check
verify examine inspect test control, chief main principal primary head leading key major, child kid youngster minor,
choose select pick opt elect prefer, citizen resident inhabitant national, city town municipality, claim assert say
state argue contend maintain, clash conflict, clear obvious evident plain apparent, clear remove delete erase empty,
clergyman priest minister pastor, close near nearby, close shut, coast shore seaside, cold chilly, collect gather
amass assemble, command order instruct direct, command instruction, comment remark, common frequent usual widespread,
communicate transmit convey, compel force oblige make, competition contest rivalry tournament, complete finish
conclude full whole entire total end, completely entirely fully totally wholly, component part element, compose write,
comprise consist contain include, concern worry regard involve, conclude end finish decide, condition state
circumstance, conduct carry perform run, confine limit restrict, confirm verify corroborate prove, connect link join
attach, consequence result outcome effect, considerable significant substantial large, constant continuous steady,
consult ask, contain hold include comprise, contaminate pollute, continue go keep remain persist proceed carry,
contract agreement deal pact, control run manage govern operate, convert change turn transform, cooperate collaborate
work, copy duplicate replicate, correct fix repair amend, cost price fee charge, country nation state land, couple
pair two, courtroom court, cover span, create make produce form establish build generate found, crew team, criticize
condemn attack fault criticism critique, crop harvest, crucial vital essential critical key, cure heal, current present
existing today now, currently presently now today, customer client buyer, cut reduce lower slash decrease, damage harm
hurt injure, damaging harmful, danger risk hazard peril threat, dangerous hazardous risky unsafe, daughter child,
dead deceased,
deadly fatal lethal, debate discuss argue, decide determine resolve choose, decline fall drop decrease diminish
dwindle sink lessen shrink, decrease reduce reduction fall decline drop lower, default standard, defeat beat overcome
vanquish, defect fault flaw bug, delay postpone defer put, deliver supply bring, demand require call insist, demolish
destroy raze, demonstrate show prove, deny reject refuse, department ministry office, depart leave, departure leaving,
depict portray show represent, describe portray characterize, design plan devise, desire want wish, destroy ruin wreck
demolish devastate, detect discover find spot notice, determine establish find decide, develop create make evolve,
device machine apparatus instrument gadget, die perish death dead decease, differ vary, difference distinction,
different distinct other various, difficult hard tough, difficulty problem trouble, dig excavate, diminish lessen
reduce, direct lead manage run head, directory folder, disable deactivate, disappear vanish, disaster catastrophe,
discover find detect identify uncover, discuss talk, disease illness sickness condition disorder ailment, dismiss fire
sack, display show exhibit present, distribute spread share hand, divide split separate, doctor physician medic,
document file record paper, double twice, draw sketch, drug medicine medication treatment, dwelling house home
residence, early initial, earn make gain receive, earth ground soil world, easily readily, eat consume, edge border
margin, educate teach train school, effect result impact influence consequence, eliminate remove, employ hire use
engage, employee worker staff, empower enable, enable allow activate let, encounter meet face, encourage urge, end
finish conclude terminate stop close expire, endure last survive, engine motor, enhance improve, enlarge expand
extend, enough sufficient adequate, enter join, entire whole full complete all, environment surroundings, equal same,
equip furnish fit, error mistake fault, especially particularly notably, essential necessary vital crucial required
needed, establish found set create start institute, estimate reckon, event incident occurrence, eventually finally
ultimately, every each all, examine inspect study investigate check review, example instance, exceed surpass top,
exceptional outstanding, exchange trade swap, execute run perform, exist be, expand grow extend widen enlarge,
expedition journey voyage, expense cost, expensive costly, expert specialist, explain clarify account, explore
investigate, expose reveal, extend stretch expand lengthen prolong span, extra additional further more, extremely very
highly, factory plant mill works, fail unsuccessful, famous renowned celebrated noted well-known, farmer grower, fast
quick rapid swift, fatality death, father parent, feature characteristic trait, female woman, fight battle combat
struggle, final last, finance fund pay, find discover locate, first initial earliest, fit suit, fix repair mend, flee
escape, flood inundate, follow come pursue succeed obey, follower supporter adherent, foreigner alien, forest woods
woodland, form shape, former previous earlier ex, formerly previously earlier once, fortify strengthen, founder
creator, free liberate release, freedom liberty, frequently often regularly, function work operate, fund finance
money, gain obtain get win, generally usually normally typically, get obtain receive, giant huge, give grant provide
supply donate hand, global worldwide international, go travel, govern rule, government administration state, gradually
slowly, group band team, grow increase rise expand, guard protect, guide lead, guilty culpable, handle process deal
manage treat, happen occur take, harbor port, head lead chief, healthy well, hide conceal, high tall, highest top,
highlight emphasize stress, hire employ recruit engage, hit strike, hold keep, hold possess own have, hot warm,
however but nevertheless nonetheless, humid damp moist, hurt injure wound, idea concept notion, identify recognize
determine, ignore disregard, ill sick unwell, illegal unlawful, illegally unlawfully, image picture photograph photo,
immediately instantly straight directly once, immense huge, implement introduce execute, important significant major
key, impose levy, imprison jail incarcerate, improve enhance better upgrade, improvement enhancement, inaugurate open,
income revenue earnings, increase rise grow raise growth gain climb, independence autonomy, indicate show suggest
signal, individual person, industry sector, inform notify tell, initially originally first, injury wound, inquiry
investigation probe, insert add, inside within, install set put, instruct teach order, instrument tool, insurance
cover, intelligent clever smart, intend plan mean, intense strong, interior inside, interrupt disturb, introduce
present bring launch, invade occupy, invent devise create, investigate examine probe study research, invite ask,
involve include, island isle, issue publish release, issue problem matter, jail prison, job post position occupation
employment role, join enter connect, journalist reporter, journey trip voyage travel, judge court, jump leap, keep
retain hold maintain store preserve, kill slay murder, kind type sort, king monarch ruler sovereign, label tag mark,
land ground, language tongue, largest biggest, later afterwards subsequently after, launch start begin introduce, law
legislation rule, learn discover, leave depart go exit quit, legal lawful, less fewer, level degree, liable
responsible, link connect connection, liquid fluid, list enumerate, little small, live reside dwell, locate find
situate, long lengthy, mad insane, magazine journal, mainly mostly primarily chiefly largely, make create produce
build manufacture, male man, mandatory compulsory required obligatory, manner way, manual handbook guide, manufacturer
maker producer, many numerous several, map chart, marine sea, mark sign, marry wed, material substance, maximum most
highest largest upper, meaning sense, measure gauge, meeting conference gathering session, memory recollection,
mention name cite refer, message note, migrate move, minimum least lowest smallest, minister secretary, minor small,
missing absent lost, mission task, mix blend combine, modern contemporary, money funds cash, monitor watch observe,
mother parent, motion movement, mount climb, move relocate shift transfer, movie film picture, native indigenous, need
require, new recent novel, newspaper paper, next following subsequent, normal usual regular standard, notable famous,
note observe, notice see, novel book, number figure, object thing, occupy fill, ocean sea, offer provide, officer
official, old former, omit skip, operate run work, operation surgery, opinion view, opponent rival, opportunity
chance, oppose resist, option choice setting, order sequence, ordinary normal, origin source, original first, outside
beyond, overall total, oversee supervise, owner proprietor, painter artist, parameter setting option, part portion
section piece, participant subject, participate take, particular specific certain, passenger traveler, path route,
pause stop, pay spend, perform do execute carry, period time, permanent lasting, permission consent authorization,
person individual human, persuade convince, phase stage, phone telephone call, place put position set, place location
site spot, plan scheme, play perform, poem verse, poison toxin, poisonous toxic, poll survey, possible potential,
power strength, powerful strong mighty, prefer favor, premier minister, prepare ready, preserve keep conserve,
president head, press push, prevent stop avert avoid block, previous earlier prior preceding, prime main, principle
rule, prior before, prisoner inmate, private personal, probable likely, problem difficulty issue, procedure process,
product goods, production output, profession occupation, profit earnings, program programme plan scheme, progress
advance, project scheme, promise pledge vow, promote advance, proof evidence, property estate, propose suggest,
protect guard defend shield safeguard, protest demonstrate, provide give supply offer furnish, province region,
publish issue release print, pull draw, punish penalize, pupil student, pursue chase follow, question ask, quickly
rapidly swiftly fast, quiet silent, railway railroad train, raise increase lift, rarely seldom, rate speed, react
respond, real actual genuine true, realize understand, rebel insurgent, rebuild reconstruct restore, recall remember,
recently lately, record register, recover regain, recovery recuperation, refuse reject decline deny, register enroll,
regulate control, release free publish issue, religion faith, remain stay, remote distant, remove delete take
eliminate, rent lease hire, repeatedly again, replace substitute succeed supersede, report account say describe,
require need demand must, rescue save, researcher scientist, resign quit step, resolve settle solve, respond answer
react, rest remainder, restart reboot, restore return, return come, reveal show disclose, revolt rebellion uprising,
rich wealthy, river stream, road street highway, rob steal, robber thief, rock stone, role part, room chamber, route
path way, safe secure, sailor seaman mariner, salary wage pay, same identical, say state tell, schedule timetable
plan, scholar academic, search look seek hunt, see view watch, seize capture take grab, send dispatch transmit,
serious severe grave, several multiple many, share portion, shop store, show demonstrate indicate reveal display,
similar alike comparable, simple easy, single one sole, situated located, skill ability, slightly somewhat, small
little tiny, smash break, soldier troop, sound noise, speak talk, special particular, specify define give state, speed
pace rate velocity, stable steady, staff personnel employees workers, standard norm, statement declaration, step
stage, store keep save, story tale, straight direct, strange odd, strategy plan, strengthen reinforce, study research
investigate investigation trial, subject topic, suddenly abruptly, suitable appropriate fit, summit peak top, support
back help, suppose assume, survive live, symbol sign, task job, tax duty levy, teacher instructor, territory land,
test trial examine, throughout across, throw hurl, trade commerce, tradition custom, traditional conventional, travel
go journey, treatment therapy, unhappy sad, unusual rare, use employ utilize apply usage, variable parameter setting,
version edition release, victory win, war conflict, warn caution alert, warning alert, weapon arm, wedding marriage,
wide broad, widely broadly, wife spouse, husband spouse, withdraw remove pull, withstand resist endure, witness see,
wood timber, worker employee laborer, world globe, worldwide globally, worried concerned, worth value, write author
compose pen, wrong incorrect, ability capability capacity, abbreviate shorten, advantage benefit, afterwards
thereafter later then, ancestor forerunner predecessor precursor forefather, anticipate await, appropriate suitable
proper, arise appear emerge, ascertain determine establish, attend visit participate, attendee participant, barrier
obstacle, base derive, bear carry have, bright luminous, bulk majority most, calculate compute reckon determine,
categorize classify, cease stop end finish, cite quote mention, circumvent bypass avoid, collapse fall, colleague
coworker, combine merge unite, commemorate celebrate celebration commemoration, compensate offset, complex complicated
intricate, comprehensive thorough complete, conceive invent devise create, concurrent simultaneous, concurrently
simultaneously, confused baffled, consecutive successive, constituent component ingredient, contribute donate give
supply, controller supervisor, cop policeman officer police, cruel brutal savage, decree order command, deduce infer
conclude, deficit shortage lack, degrade worsen deteriorate, dependable reliable, depend rely, designate name appoint
call, discrepancy difference, disclose reveal publish, distinguish differentiate discriminate tell, distant remote
far, diverse varied various, diversity variety, document record describe, dominant main principal, drift move wander,
enclose surround, entity body organization, equal match same, equivalent equal same, evolve develop grow, exhaust
deplete consume, explode burst, extract take obtain, facilitate ease help, fashion manner way, fetch retrieve get
obtain, finance sponsor fund back pay, fire shoot shot, folk people person, formal official, frighten scare
intimidate, fundamental basic elementary, gigantic huge enormous, guarantee ensure assure, handful few, imitate copy
mimic, implement realize carry, imprisonment jail prison incarceration, incorporate include integrate add, indict
charge accuse, innovation novelty, instant moment, invoke call run, isolate cut separate, lag trail, latest newest
recent, lead head spearhead direct guide, legend myth, lessen reduce decrease diminish, licence license, lifetime
lifespan life live, limitation restriction constraint limit, link tie connect, log record, luminosity brightness,
magnitude size, maintain keep look tend, maker creator author, manipulate handle, match correspond, mistakenly wrongly
erroneously, motive reason, nominate propose appoint, obscure hide, obsolete outdated, occasionally sometimes, orbit
circle revolve, outer outside, overheads costs, partially partly, perimeter edge border, perpetrator culprit offender,
persist last continue remain endure, picket striker, post publish put, prescribe require, primitive simple crude
basic, project undertaking, radiate emit, rank position, reason cause ground, recount tell relate, redesign rework,
reimplementation rewrite, relate tell report, remedy fix solve, represent symbolize stand mean depict, resemblance
similarity likeness, rewrite rework, rotate spin turn revolve, rotation spin, rule decide, sacred holy, scientist
astronomer researcher, shorten reduce cut, shrink contract, simulate imitate, spike peak surge, sponsor support fund,
spread disseminate distribute, startup start, strike walkout, submit send, suffice enough, sustain keep maintain,
synchronize align, terror fear, tool program utility, trim cut reduce, tweak adjust change modify, universal global,
untrusted unknown, variant version, vulnerable exposed, weather withstand survive, weathered withstood, website site,
work labor, yield produce, bill account, boundary border limit line, cluster group, congress convention conference,
crowd mass throng, delegation delegate, distribution release, emit give radiate, engine machine, excess surplus,
feature property, flight journey, format layout, fuse merge, gather collect meet, immediate instant prompt,
immediately promptly, interval period, lay put, mean signify, mode manner, modest small, overlook miss, owner holder,
parse read, patch fix, platform system, plot plan, prompt quick, public open, raid search, redo repeat, refer point,
repeat duplicate, rest remain, revise update, sample specimen, sever cut, sole only, specify state name, subset part,
surface face, survive outlive, term word name, test try check, track follow, tribe people, turn become, verify check
confirm, visible seen, vote elect, wait await, write pen draft, france french, spain spanish, britain british uk,
england english, netherlands dutch holland, ireland irish, wales welsh, switzerland swiss, denmark danish, greece
greek, poland polish, scotland scottish, america american us usa, january jan, february feb, percent percentage,
kilometer km
"""


@cache
def _read_groups() -> dict[str, frozenset[int]]:
    groups: dict[str, set[int]] = {}
    for number, group in enumerate(_GROUPS.replace("\n", " ").split(",")):
        words = group.split()
        if len(words) > 1:
            for word in words:
                for base in base_forms(word):
                    groups.setdefault(find_root(base), set()).add(number)
    return {root: frozenset(found) for root, found in groups.items()}


@lru_cache(20_000)
def groups_of(word: str) -> frozenset[int]:
    """Return the numbers of the groups that hold a word in lower case, in any of its forms."""
    groups = _read_groups()
    return frozenset[int]().union(*(groups.get(find_root(base), frozenset()) for base in base_forms(word)))


class AlikeWords:
    """Words in lower case, to look up whether one of them is a form of another word or means the same."""

    def __init__(self, words: Iterable[str]) -> None:
        known = frozenset(words)
        self._bases = frozenset[str]().union(*map(base_forms, known))
        self._groups = frozenset[int]().union(*map(groups_of, known))
        self._roots = Roots(self._bases)

    def has(self, word: str) -> bool:
        """Return whether one of the words is alike to a word in lower case."""
        other = _read_word(word)
        if not self._bases.isdisjoint(other._bases) or not self._groups.isdisjoint(other._groups):
            return True
        return self._roots.meet(other._roots)


@lru_cache(4096)
def _read_word(word: str) -> AlikeWords:
    return AlikeWords((word,))


def are_alike(one: str, other: str) -> bool:
    """Return whether two words in lower case are forms of one word or mean the same."""
    return one == other or _read_word(one).has(other)
