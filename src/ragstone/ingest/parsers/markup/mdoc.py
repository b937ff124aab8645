"""The words of a line of mdoc: its macros may stand in the middle of a line and call one another."""

from __future__ import annotations

from collections.abc import Sequence

from ragstone.ingest.parsers.markup.roff import unescape

_OPENING = frozenset("([")
_CLOSING = frozenset({".", ",", ":", ";", ")", "]", "?", "!"})
_STOPS = frozenset(".,:;")
_AROUND = {
    "Op": "[]", "Oo": "[]", "Aq": "<>", "Ao": "<>", "Bq": "[]", "Bo": "[]", "Brq": "{}", "Bro": "{}", "Dq": "“”",
    "Do": "“”", "Pq": "()", "Po": "()", "Qq": '""', "Qo": '""', "Sq": "‘’", "So": "‘’", "Ql": "‘’",
}  # fmt: skip
_LEFT_OPEN = frozenset({"Oo", "Ao", "Bo", "Bro", "Do", "Po", "Qo", "So"})
"""Their end is a macro of its own, often on a later line."""
_ENDS = {"Oc": "]", "Ac": ">", "Bc": "]", "Brc": "}", "Dc": "”", "Pc": ")", "Qc": '"', "Sc": "’"}
_NAMES = {
    "At": "AT&T UNIX", "Bx": "BSD", "Bsx": "BSD/OS", "Fx": "FreeBSD", "Nx": "NetBSD", "Ox": "OpenBSD",
    "Dx": "DragonFly", "Ux": "UNIX", "Bt": "is currently in beta test.", "Ud": "currently under development.",
    "Nd": "–",
}  # fmt: skip
_WORDS = frozenset({
    "Ad", "An", "Ap", "Ar", "Cd", "Cm", "Dv", "Em", "Er", "Ev", "Ex", "Fa", "Fd", "Fl", "Fn", "Fo", "Fc", "Fr", "Ft",
    "Ic", "In", "Lb", "Li", "Lk", "Ms", "Mt", "Nm", "No", "Ns", "Ot", "Pa", "Pf", "Rv", "St", "Sx", "Sy", "Ta", "Tn",
    "Va", "Vt", "Xr", "Xo", "Xc", "Eo", "Ec", "Es", "En", "Rs", "Re", "%A", "%B", "%C", "%D", "%I", "%J", "%N", "%O",
    "%P", "%Q", "%R", "%T", "%U", "%V",
})  # fmt: skip
_JOINS = frozenset({"Ns", "Ap", "Pf", "Xo", "Xc", "Ta"})
_KNOWN = _WORDS | _AROUND.keys() | _ENDS.keys() | _NAMES.keys()


class MdocWords:
    """Says lines of one page, whose name `Nm` stands for."""

    def __init__(self) -> None:
        self._name = ""

    def knows(self, macro: str) -> bool:
        """Return whether this is a macro of words."""
        return macro in _KNOWN

    def say(self, tokens: Sequence[str]) -> str:
        """Return the words of a line of macros and arguments."""
        line = _MdocLine()
        position = 0
        while position < len(tokens):
            macro = tokens[position]
            end = position + 1
            while end < len(tokens) and tokens[end] not in _KNOWN:
                end += 1
            if position == 0 or macro in _KNOWN:
                self._say_macro(line, macro, [unescape(token) for token in tokens[position + 1 : end]])
                if macro == "Fl" and end == position + 1 and tokens[end : end + 1] == ["Fl"]:
                    line.join()
            position = end
        return line.finish()

    def _say_macro(self, line: _MdocLine, macro: str, arguments: list[str]) -> None:
        if macro in _JOINS:
            self._say_join(line, macro, arguments)
            return
        if macro in _AROUND:
            line.open(_AROUND[macro], stays=macro in _LEFT_OPEN)
        elif macro in _ENDS or macro == "Fc":
            line.close(_ENDS.get(macro, ")"))
        elif macro in _NAMES:
            line.add(_NAMES[macro])
        for argument in self._complete(macro, arguments):
            line.add(argument)

    def _complete(self, macro: str, arguments: list[str]) -> list[str]:
        """Return the arguments of a macro as it shows them."""
        if macro == "Nm":
            self._name = self._name or (arguments[0] if arguments else "")
            return arguments if arguments and arguments[0] not in _CLOSING else [self._name, *arguments]
        if macro == "Fl":
            return _flags(arguments)
        if macro == "Ex":
            return [f"The {self._name} utility exits 0 on success, and >0 if an error occurs."]
        if macro in ("Fn", "Fo") and arguments:
            return [f"{arguments[0]}({', '.join(arguments[1:])}{')' if macro == 'Fn' else ''}"]
        if macro == "Xr" and len(arguments) > 1 and arguments[1] not in _CLOSING:
            return [f"{arguments[0]}({arguments[1]})", *arguments[2:]]
        if macro == "Lk" and len(arguments) > 1:
            return [arguments[1], f"({arguments[0]})", *arguments[2:]]
        return arguments

    def _say_join(self, line: _MdocLine, macro: str, arguments: list[str]) -> None:
        if macro == "Ta":
            line.add("\t")
        if macro == "Ap":
            line.join()
            line.add("'")
        if macro in ("Ns", "Ap"):
            line.join()
        for number, argument in enumerate(arguments):
            line.add(argument)
            if macro == "Pf" and number == 0:
                line.join()
        if macro == "Pf":
            line.join()


def _flags(arguments: list[str]) -> list[str]:
    """Return arguments as flags; a flag without a name is a dash."""
    if not arguments or arguments[0] in _CLOSING:
        return ["-", *arguments]
    return [
        argument if argument in _CLOSING or argument in ("|", "(", "[") else f"-{argument}" for argument in arguments
    ]


class _MdocLine:
    """Words with the spaces between them where they belong."""

    def __init__(self) -> None:
        self._words: list[str] = []
        self._joined = True
        self._closers: list[str] = []

    def add(self, word: str) -> None:
        if not word:
            return
        if not (self._joined or word in _CLOSING):
            self._words.append(" ")
        self._words.append(word)
        self._joined = word in _OPENING

    def join(self) -> None:
        self._joined = True

    def open(self, marks: str, *, stays: bool) -> None:
        self.add(marks[0])
        self._joined = True
        if not stays:
            self._closers.append(marks[1])

    def close(self, mark: str) -> None:
        self._words.append(mark)
        self._joined = False

    def finish(self) -> str:
        """Return the line with what is still open closed, before the punctuation at its end."""
        tail: list[str] = []
        while self._closers and self._words and self._words[-1] in _STOPS:
            tail.append(self._words.pop())
        return "".join((*self._words, *reversed(self._closers), *reversed(tail))).strip(" ")
