"""Function words of the languages whose keywords are read best, written for this project."""

from __future__ import annotations

from functools import cache

_ENGLISH = """
a able about above according across after again against all almost alone along already also although always am
among an and another any anybody anyone anything anywhere are aren't around as at away back based be became
because become becomes been before behind being below best better between beyond both but by came can can't
cannot come comes could couldn't did didn't do does doesn't doing don't done down during each either else
enough etc even ever every everybody everyone everything everywhere far few first following for four from full
further gave get gets getting give given gives go goes going gone good got had hadn't has hasn't have haven't
having he her here hers herself him himself his how however i i'd i'll i'm i've if in included including
indeed instead into is isn't it it's its itself just keep kept know known large last later least less let
let's like likely little long look made make makes making many may maybe me might mine more moreover most
mostly much must my myself near nearly need needs neither never new next no nobody none nor not nothing now
nowhere of off often on once one only onto or other others otherwise our ours ourselves out over own part per
perhaps please possible put quite rather really said same saw say says second see seem seems seen several
shall she should shouldn't show shown shows since small so some somebody someone something sometimes somewhere
soon still such sure take taken takes tell than that that's the their theirs them themselves then there
therefore these they they're thing things think this those though three through throughout thus to today
together told too took toward towards two under until up upon us use used useful uses using usually various
very via want wants was wasn't way ways we we're well went were weren't what whatever when where whether which
while who whole whom whose why will with within without won't would wouldn't yes yet you you'll you're you've
your yours yourself
"""
_GERMAN = """
ab aber alle allem allen aller alles als also am an andere anderem anderen anderer anderes auch auf aus bei
beide beiden beim bereits bin bis bist bleibt da dabei dadurch dafür dagegen daher damit danach daneben dann
daran darauf daraus darf darin darum darunter das dass davon davor dazu dein deine dem den denen denn dennoch
der deren des deshalb dessen deswegen die dies diese diesem diesen dieser dieses doch dort du durch dürfen
eben ebenso eher eigene eigenen eigener ein eine einem einen einer eines einfach einige einigen einiger einmal
er erst erste ersten es etwa etwas euch euer eure fast für gab ganz gar geben gegen gegenüber gehen geht
gemacht genau gerade gern gewesen gibt ging gut habe haben hat hatte hatten hätte heute hier hin hinter ich
ihm ihn ihnen ihr ihre ihrem ihren ihrer ihres im immer in indem ins ist ja je jede jedem jeden jeder jedes
jedoch jene jenen jetzt kam kann kein keine keinem keinen keiner kommen kommt konnte können könnte lange
lassen lässt laut leicht machen macht man manche mehr mein meine meinem meinen meiner meist mich mir mit
möglich muss müssen musste nach nachdem neben nein neu neue neuen neuer nicht nichts noch nun nur ob oben oder
oft ohne paar schon sehr sei seien sein seine seinem seinen seiner seines seit selbst sich sie sind so sobald
sogar solche solchen soll sollen sollte sollten sondern sonst soweit sowie statt stehen steht teil trotz über
überhaupt um und uns unser unsere unserem unseren unserer unter viel viele vielen vom von vor wann war waren
warum was weg wegen weil weiter weitere weiteren welche welchem welchen welcher welches wenig wenige weniger
wenn wer werde werden wie wieder will wir wird wo wobei wohl wollen wollte worden wurde wurden während würde
würden zu zum zur zwar zwei zwischen
"""
_FRENCH = """
à afin ai ainsi alors après assez au aucun aucune aujourd'hui auquel aussi autour autre autres aux auxquels
avaient avait avant avec avoir avons bien bon bonne car ce ceci cela celle celles celui cependant certain
certaine certaines certains ces cet cette ceux chaque chez ci comme comment contre d'abord d'un d'une dans de
dedans dehors déjà depuis des dès deux devant devrait dire dit doit doivent donc dont du durant elle elles en
encore enfin ensuite entre envers es est et étaient était étant été être eu eux faire fait faites faut font
fut grand grande grands hors ici il ils j'ai je jusqu jusque l'a l'on la laquelle le lequel les lesquelles
lesquels leur leurs loin lors lorsque lui là ma mais malgré me même mêmes mes mieux moi moins mon ne ni non
nos notre nous nouveau nouvelle on ont ou où par parce parfois parmi pas pendant personne peu peut peuvent
plus plusieurs plutôt pour pourquoi pouvait pouvoir premier première près presque puis qu'elle qu'il qu'ils
qu'on qu'un qu'une quand que quel quelle quelles quelque quelques quels qui quoi rien sa sans sauf se selon
sera serait ses seul seule si sien soit son sont sous souvent suis sur surtout ta tandis tant te tel telle
telles tels tes toi ton toujours tous tout toute toutefois toutes très trois trop tu un une va vers voici
voilà vos votre vous vraiment y
"""
_SPANISH = """
a ahí ahora al algo alguien algún alguna algunas alguno algunos allá allí ambos ante anterior antes aquel
aquella aquellas aquellos aquí así aún aunque bajo bastante bien buen buena bueno cada casi como cómo con
conmigo contra cosas cual cuál cuales cualquier cuando cuándo cuanto cuatro da dado dan de debe deben debido
decir dejar del demás dentro desde después dice dicho donde dónde dos durante e él el ella ellas ello ellos
embargo en encima entonces entre era eran eres es esa esas ese eso esos esta está están estar estas este esto
estos estoy estuvo fin fue fuera fueron gran grande grandes ha haber había habían hace hacen hacer hacia han
hasta hay haya he hecho hemos hizo hoy igual incluso ir la lado largo las le les lo los luego lugar más mayor
me mediante mejor menor menos mi mí mientras mis misma mismas mismo mismos mucha muchas mucho muchos muy nada
nadie ni ningún ninguna ninguno no nos nosotros nuestra nuestras nuestro nuestros nueva nuevas nuevo nuevos
nunca o os otra otras otro otros para parece parte pero poca pocas poco pocos podemos poder podría por porque
primer primera primero primeros propia propio próximo pudo puede pueden pues que qué quien quién quienes
quiere sabe se sea sean según segunda segundo ser será serán si sí sido siempre siendo sin sino sobre sola
solamente solo sólo son su sus tal tales también tampoco tan tanta tanto tenemos tener tenía tiene tienen toda
todas todavía todo todos tras través tres tu tú tus u un una unas uno unos usted ustedes va vamos van varias
varios veces ver vez y ya yo
"""
_LISTS = {"en": _ENGLISH, "de": _GERMAN, "fr": _FRENCH, "es": _SPANISH}
STEMMERS = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "es": "spanish", "et": "estonian", "eu": "basque", "fa": "persian", "fi": "finnish", "fr": "french", "ga": "irish",
    "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian", "lt": "lithuanian",
    "ne": "nepali", "nl": "dutch", "no": "norwegian", "pl": "polish", "pt": "portuguese", "ro": "romanian",
    "ru": "russian", "sv": "swedish", "ta": "tamil", "tr": "turkish",
}  # fmt: skip
"""The Snowball stemmer of each language that has one."""


@cache
def stop_words(language: str) -> frozenset[str]:
    """Return the function words of a language; those of all lists for a language without one."""
    chosen = [_LISTS[language]] if language in _LISTS else list(_LISTS.values())
    return frozenset(word for words in chosen for word in words.split())
