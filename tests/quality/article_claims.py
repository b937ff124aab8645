"""A knowledge base of mail, feeds and papers about a harbour, and statements on it: true ones and altered ones."""

from __future__ import annotations

MAILS = {
    "Dredging of the north channel": (
        "The dredger Halvard begins work in the north channel on 3 March. The channel will be deepened from six to "
        "eight metres. The work costs 4.2 million crowns and is paid for by the harbour board. Ships longer than 90 "
        "metres must use the south channel until 28 April. The survey of the sea bed was made by Ingrid Sole."
    ),
    "New opening hours of the lock": (
        "The lock opens at 5:30 on working days and at 7:00 on Sundays. The last vessel is let in 40 minutes before "
        "the lock closes. Pleasure boats pay 15 crowns for each passage. The lock keeper can be reached on channel 12. "
        "Boats under sail may not enter the lock."
    ),
    "Accident at berth four": (
        "The tanker Brisa damaged a fender at berth four on Tuesday. Nobody was injured. The repair was done by Lund "
        "Marine within nine days. The pilot on board was Tomas Reuter. Berth four was closed for two days."
    ),
}
FEED = {
    "Ferry line orders two electric vessels": (
        "The Coastal Line has ordered two electric ferries from the yard in Vik. Each ferry carries 120 cars and 400 "
        "passengers. The batteries are charged in eleven minutes at the northern terminal. The first vessel will be "
        "named Morgenrot. The ferries replace three diesel vessels that were built in 1987."
    ),
    "Harbour museum reopens": (
        "The harbour museum reopens on 14 June after a renovation of eighteen months. The steam crane of 1902 is shown "
        "again. Admission is free for children under twelve. The museum received 31,000 visitors in its last full "
        "year. Its director is Maren Holt."
    ),
    "Storm closes the outer pier": (
        "A storm closed the outer pier for four days in January. Waves reached a height of seven metres. The "
        "lighthouse lost its antenna but kept its light. The repair of the pier began in February. The harbour board "
        "decided against a second breakwater."
    ),
}
PAPERS = {
    "Sediment transport in the estuary": (
        "We measured sediment transport at 24 stations over three years. The flood tide carries 60 percent more "
        "sediment than the ebb tide. Most of the sediment settles in the inner basin. Dredging every second year is "
        "sufficient to keep a depth of eight metres. The model was calibrated with data from 2019."
    ),
    "Noise of vessels and harbour porpoises": (
        "Harbour porpoises avoid vessels that are louder than 120 decibels. We followed 38 porpoises with passive "
        "acoustic sensors. Electric ferries were detected at a distance of 300 metres. Diesel ferries were detected at "
        "2,100 metres. The animals returned within twenty minutes after a vessel had passed."
    ),
    "Growth of mussels on harbour walls": (
        "Mussels grow faster on concrete than on steel. After two summers the mean length was 41 millimetres on "
        "concrete. Copper paint prevents growth for about five years. The mussels filter up to four litres of water an "
        "hour. The samples were taken at six harbours by the Institute of Marine Biology."
    ),
}
TRUE = (
    "The dredger Halvard begins work in the north channel on 3 March.",
    "The north channel will be deepened from six to eight metres.",
    "The work costs 4.2 million crowns.",
    "The harbour board pays for the work in the north channel.",
    "Ships longer than 90 metres must use the south channel until 28 April.",
    "Ingrid Sole made the survey of the sea bed.",
    "The lock opens at 5:30 on working days.",
    "The lock opens at 7:00 on Sundays.",
    "The last vessel is let in 40 minutes before the lock closes.",
    "Pleasure boats pay 15 crowns for each passage.",
    "The lock keeper can be reached on channel 12.",
    "Boats under sail may not enter the lock.",
    "The tanker Brisa damaged a fender at berth four.",
    "Nobody was injured in the accident at berth four.",
    "Lund Marine did the repair within nine days.",
    "The pilot on board of the tanker Brisa was Tomas Reuter.",
    "Berth four was closed for two days.",
    "The Coastal Line has ordered two electric ferries.",
    "The electric ferries come from the yard in Vik.",
    "Each electric ferry carries 120 cars and 400 passengers.",
    "The batteries are charged in eleven minutes.",
    "The batteries are charged at the northern terminal.",
    "The first electric vessel will be named Morgenrot.",
    "The electric ferries replace three diesel vessels.",
    "The three diesel vessels were built in 1987.",
    "The harbour museum reopens on 14 June.",
    "The renovation of the harbour museum took eighteen months.",
    "The museum shows the steam crane of 1902 again.",
    "Admission to the museum is free for children under twelve.",
    "The museum received 31,000 visitors in its last full year.",
    "The director of the harbour museum is Maren Holt.",
    "A storm closed the outer pier for four days in January.",
    "The waves of the storm reached a height of seven metres.",
    "The lighthouse lost its antenna in the storm.",
    "The lighthouse kept its light.",
    "The repair of the pier began in February.",
    "The harbour board decided against a second breakwater.",
    "Sediment transport was measured at 24 stations over three years.",
    "The flood tide carries 60 percent more sediment than the ebb tide.",
    "Most of the sediment settles in the inner basin.",
    "The model of sediment transport was calibrated with data from 2019.",
    "Harbour porpoises avoid vessels that are louder than 120 decibels.",
    "The study followed 38 porpoises with passive acoustic sensors.",
    "Electric ferries were detected at a distance of 300 metres.",
    "Diesel ferries were detected at 2,100 metres.",
    "Mussels grow faster on concrete than on steel.",
    "After two summers the mean length was 41 millimetres on concrete.",
    "Copper paint prevents growth for about five years.",
    "Mussels filter up to four litres of water an hour.",
    "The samples were taken at six harbours.",
)
ALTERED = (
    "The dredger Halvard begins work in the north channel on 13 March.",
    "The north channel will be deepened from eight to six metres.",
    "The work costs 42 million crowns.",
    "The work in the north channel is paid for by the Coastal Line.",
    "Ships shorter than 90 metres must use the south channel until 28 April.",
    "The survey of the sea bed was made by Maren Holt.",
    "The lock opens at 7:00 on working days.",
    "The last vessel is let in 40 minutes after the lock closes.",
    "Pleasure boats pay 50 crowns for each passage.",
    "Boats under sail may enter the lock.",
    "The tanker Brisa damaged a fender at berth five on Tuesday.",
    "Three sailors were injured in the accident at berth four.",
    "The repair was done by Holt Brothers within nine days.",
    "The Coastal Line has ordered two diesel ferries from the yard in Vik.",
    "Each electric ferry carries 400 cars and 120 passengers.",
    "The batteries are charged in eleven hours at the northern terminal.",
    "The electric ferries replace three diesel vessels that were built in 1997.",
    "The harbour museum closes on 14 June.",
    "The museum received 31,000 visitors in its last full year, most of them from Denmark.",
    "Admission to the museum is free for children under sixteen.",
    "The lighthouse lost its light but kept its antenna.",
    "The harbour board decided to build a second breakwater.",
    "Waves reached a height of seventeen metres.",
    "The flood tide carries 60 percent less sediment than the ebb tide.",
    "Most of the sediment settles in the outer basin.",
    "Dredging every second year is not sufficient to keep a depth of eight metres.",
    "Electric ferries were detected at a distance of 2,100 metres.",
    "Harbour porpoises avoid vessels that are louder than 120 metres.",
    "Mussels grow faster on steel than on concrete.",
    "Copper paint prevents growth for about fifteen years.",
)
