"""A stand-in for an IMAP server on loopback: enough of IMAP4rev1 to read mail, faults, a record of commands."""

from __future__ import annotations

import base64
import re
import socketserver
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

_FETCH = re.compile(r"([\d:,*]+) \((.+)\)")


@dataclass
class MailboxDouble:
    """Messages by UID, in order of their number."""

    validity: int = 1
    messages: dict[int, bytes] = field(default_factory=dict)


@dataclass
class ImapDouble:
    """Serves in a thread while it is entered.

    `answers` replaces the reply to commands that begin with its key: a status line such as `NO not now`, or
    `CUT` to end the connection. `sizes` are told instead of the true ones.
    """

    mailboxes: dict[str, MailboxDouble]
    user: str = "anna"
    password: str = "secret"
    capabilities: str = "IMAP4rev1 AUTH=PLAIN"
    uid_behind: bool = False
    """Whether a message's number is told behind its content."""
    answers: dict[str, str] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)
    commands: list[str] = field(default_factory=list)

    def __enter__(self) -> ImapDouble:
        double = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                _Conversation(double, self).run()

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])


class _Conversation:
    def __init__(self, double: ImapDouble, handler: socketserver.StreamRequestHandler) -> None:
        self._double = double
        self._in = handler.rfile
        self._out = handler.wfile
        self._mailbox = MailboxDouble()

    def run(self) -> None:
        self._say("* OK ready")
        while line := self._in.readline().decode("utf-8", "replace").rstrip("\r\n"):
            tag, _, command = line.partition(" ")
            self._double.commands.append(command)
            planned = next((text for key, text in self._double.answers.items() if command.startswith(key)), None)
            if planned == "CUT":
                return
            self._say(f"{tag} {planned or self._answer(command)}")
            if command == "LOGOUT":
                return

    def _answer(self, command: str) -> str:
        verb, _, rest = command.partition(" ")
        match verb:
            case "CAPABILITY":
                self._say(f"* CAPABILITY {self._double.capabilities}")
            case "LOGIN":
                return self._signed_in(rest == f'"{self._double.user}" "{self._double.password}"')
            case "AUTHENTICATE":
                self._say("+ ")
                given = base64.b64decode(self._in.readline()).decode()
                return self._signed_in(given == f"\0{self._double.user}\0{self._double.password}")
            case "EXAMINE":
                return self._examine(rest)
            case "FETCH":
                self._fetch(rest, by_uid=False)
            case "UID":
                self._fetch(rest.removeprefix("FETCH "), by_uid=True)
            case "LOGOUT":
                self._say("* BYE")
            case _:
                return "BAD unknown command"
        return "OK done"

    def _signed_in(self, right: bool) -> str:
        return "OK welcome" if right else f"NO not with {self._double.password}"

    def _examine(self, quoted: str) -> str:
        name = quoted.strip('"').replace('\\"', '"').replace("\\\\", "\\")
        if name not in self._double.mailboxes:
            return "NO no such mailbox"
        self._mailbox = self._double.mailboxes[name]
        self._say(f"* {len(self._mailbox.messages)} EXISTS")
        self._say(f"* OK [UIDVALIDITY {self._mailbox.validity}] valid")
        return "OK [READ-ONLY] opened"

    def _fetch(self, arguments: str, *, by_uid: bool) -> None:
        found = _FETCH.fullmatch(arguments)
        wanted = set(_numbers(found[1] if found else ""))
        for number, (uid, content) in enumerate(self._mailbox.messages.items(), start=1):
            if (uid if by_uid else number) not in wanted:
                continue
            if "BODY.PEEK[]" in arguments:
                told, behind = ("", f" UID {uid}") if self._double.uid_behind else (f"UID {uid} ", "")
                self._say(f"* {number} FETCH ({told}BODY[] {{{len(content)}}}")
                self._out.write(content + f"{behind})\r\n".encode())
            else:
                size = self._double.sizes.get(uid, len(content))
                self._say(f"* {number} FETCH (UID {uid} RFC822.SIZE {size})")

    def _say(self, line: str) -> None:
        self._out.write(f"{line}\r\n".encode())


def _numbers(spans: str) -> Iterator[int]:
    for span in spans.split(","):
        first, _, last = span.partition(":")
        yield from range(int(first), int(last or first) + 1)
