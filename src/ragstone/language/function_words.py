"""Function words that a search by word leaves out of a query, by language; written for this project.

A word that is also a noun or a verb of its own ("son" is a sound in French, "man" a man in Swedish) is not listed.
"""

from __future__ import annotations

from collections.abc import Mapping

_LISTS = {
    "da": (
        "af at da de dem den der deres det dette dig din dit dog du eller en end er et for fra ham han hans har havde "
        "hende hendes her hos hun hvad hvem hvilke hvilken hvis hvor hvordan hvorfor hvornår i ikke ind jeg jer kan "
        "kunne man med men mig min mit mod måtte ned nogle nu når og om op os over på sig sin sit skal skulle som "
        "så til ud under var ved vi vil ville være været"
    ),
    "de": (
        "aber als am an auch auf aus bei beim bin bis bist da damit dann das dass dein dem den denn der deren des "
        "dessen die dies diese diesem diesen dieser dieses doch du durch ein eine einem einen einer eines er es etwas "
        "euch euer für gegen habe haben hat hatte hatten ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in ins ist "
        "ja jede jedem jeden jeder jedes kann kein keine keinen können man mein meine mich mir mit muss müssen nach "
        "nicht noch nun nur ob oder ohne sehr sein seine seinem seinen seiner selbst sich sie sind so soll sollen "
        "sollte über um und uns unser unsere unter vom von vor wann war waren warum was weil welche welchem welchen "
        "welcher welches wenn wer werden wie wir wird wo wurde wurden während zu zum zur zwischen"
    ),
    "es": (
        "a al ante como cómo con cual cuál cuales cuáles cuando cuándo cuanto cuánto cuántos de del desde donde dónde "
        "e el él ella ellas ellos en entre eran es esa esas ese eso esos esta está estas este esto estos están fue "
        "fueron ha había han has hasta hay la las le les lo los más me mi mis mucho muy no nos nuestra nuestro o os "
        "para pero por porque que qué quien quién se ser sí si sin son su sus también te tiene tienen tu tus un "
        "una unas uno unos y ya yo"
    ),
    "fi": (
        "ei eivät en he hän ja jo jos joka jotka kanssa kuin kuinka kuka kun me mikä miksi millainen milloin minä "
        "missä miten mitä mutta myös ne niin nyt ole oli olivat olla on ovat sekä se sen sinä siitä siinä tai "
        "te tämä tässä tätä vai vaikka että"
    ),
    "fr": (
        "à au aux avec avait c ce ces cet cette ceux comme comment d dans de des donc dont du elle elles en entre "
        "est et étaient était être eu eux il ils j je jusqu l la laquelle le lequel les lesquelles "
        "lesquels leur leurs lui m ma mais me même mes moi mon n ne ni nos notre nous on ont ou où par pas plus "
        "pour pourquoi qu quand que quel quelle quelles quels qui quoi s sa sans se sera ses si soit sont sous sur t "
        "ta te tes toi très tu un une vos votre vous y"
    ),
    "it": (
        "a ad agli al all alla alle allo anche c che chi ci coi col come con cui d da dagli dai dal dall dalla "
        "dalle degli dei del dell della delle dello di dove e è ed erano fra gli ha hai hanno ho i il in io l "
        "la le lei li lo loro lui m ma mi mia mie mio ne negli nei nel nell nella nelle noi non o per perché più qual "
        "quale quali quando quanto quell quella quelle quelli quello quest questa queste questi questo s se si "
        "sia sono su sua sue sugli sui sul sull sulla sulle suo t ti tra tu tua un una uno v vi voi"
    ),
    "nl": (
        "aan al als bij dan dat de den der deze die dit door een en er ge geen had haar hadden hebben heeft hem het "
        "hij hoe hun ik in is je kan kunnen maar me men met mij mijn moet na naar niet nog nu of om omdat ons onze "
        "ook op over s t te tot u uit uw van voor waar waarom wanneer waren was wat we welk welke werd wie wij "
        "worden wordt zal ze zich zij zijn zo zonder zou"
    ),
    "no": (
        "at av da de dem den denne der deres det dette deg di din ditt du eller en enn er et ett for fra ham han hans "
        "har hadde henne hennes hos hun hva hvem hvilke hvilken hvis hvor hvordan hvorfor i ikke inn jeg kan kunne "
        "man med meg men min mitt mot når noe noen nå og også om opp oss over på seg sin sitt skal skulle som så til "
        "under ut var ved vi vil ville vår være vært"
    ),
    "pt": (
        "a à ao aos as às até com como da das de dela dele deles do dos e é ela elas ele eles em entre eram essa "
        "esse esta está este estes eu foi foram há isso isto já lhe mais mas me meu minha muito na nas não nem no nos "
        "nossa nosso num numa o onde os ou para pela pelas pelo pelos por porque qual quais quando quanto quantos "
        "que quem são se sem ser seu seus só sua suas também te tem teu um uma umas uns você vocês"
    ),
    "ru": (
        "а без бы был была были было быть в вам вас весь во вот все всё вы где да для до его ее её если есть еще ещё "
        "же за здесь и из или им их к как какая какие какой кем когда ко кто ли меня мне может мой мы на над надо нам "
        "нас не него нее неё нет ни них но о об он она они оно от по под почему при про с сам свой со так такой там "
        "то тоже только тот ты у уже чем что чтобы чья эта эти это этот я"
    ),
    "sv": (
        "alla att av blev bli blir de dem den denna deras dess dessa det detta dig din ditt du där efter eller en er "
        "ett från för ha hade han hans har hennes henne hon honom hur här i icke inte jag kan kunde med mellan men mig "
        "min mitt mot mycket när nu och om oss på sedan sig sin sitt ska skall som så till under upp ut utan vad var "
        "varför vara varit vem vi vid vilka vilken vilket är än"
    ),
}
FUNCTION_WORDS: Mapping[str, frozenset[str]] = {
    language: frozenset(words.split()) for language, words in _LISTS.items()
}
