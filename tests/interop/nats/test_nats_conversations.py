"""Exact answers to bytes, and whether the connection stays open.

The tables hold the answers of nats-server 2.15.2. If another answer is right too, the row lists it
with the reason.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from harness.fixtures import ConnectNats
from harness.nats.broker import NatsBroker
from harness.nats.raw import RawNats, connect_bytes


@dataclass(frozen=True)
class Deviation:
    """An answer that is accepted instead of nats-server's."""

    why: str
    answer: bytes = b""
    closes: bool = False


@dataclass(frozen=True)
class Talk:
    """Bytes sent by a client after CONNECT, and the answer to them."""

    what: str
    sent: bytes
    answer: bytes = b""
    # Options other than `verbose` and `pedantic`, which are false.
    options: Mapping[str, object] = field(default_factory=dict)
    accepted: Deviation | None = None


UNKNOWN = b"-ERR 'Unknown Protocol Operation'\r\n"
LONG_LINE = b"-ERR 'maximum control line exceeded'\r\n"
LONG_PAYLOAD = b"-ERR 'Maximum Payload Violation'\r\n"
INVALID_SUBJECT = b"-ERR 'Invalid Subject'\r\n"
INVALID_PUBLISH = b"-ERR 'Invalid Publish Subject'\r\n"
REFUSED = b"-ERR 'Authorization Violation'\r\n"

HEADERS = {"headers": True}
VERBOSE = {"verbose": True}
PEDANTIC = {"pedantic": True}
ASKING = {"headers": True, "no_responders": True}
BLOCK = b"NATS/1.0\r\n\r\n"
ECHO = b"SUB a 1\r\n"
X = b"MSG a 1 1\r\nx\r\n"

OPEN = [
    # Verbs, white space, line ends.
    Talk("verbs in small letters", b"sub a 1\r\npub a 1\r\nx\r\nunsub 1\r\n", X),
    Talk("verbs in mixed letters", b"sUb a 1\r\nPuB a 1\r\nx\r\n", X),
    Talk("tabs between arguments", b"SUB\ta\t1\r\nPUB\ta\t1\r\nx\r\n", X),
    Talk("runs of spaces", b"SUB  a   1  \r\nPUB   a  1  \r\nx\r\n", X),
    Talk("lines that end in a line feed alone", b"SUB a 1\nPUB a 1\nx\r\n", X),
    Talk("text after PING", b"PING hello\r\n", b"PONG\r\n"),
    Talk("text glued to PING", b"PINGX\r\n", b"PONG\r\n"),
    Talk("text after PONG", b"PONG x\r\n"),
    Talk("a PONG that nobody asked for", b"PONG\r\n"),
    Talk("+OK from a client", b"+OK\r\n"),
    Talk("INFO from a client", b'INFO {"max_payload":1}\r\n'),
    # Messages.
    Talk("an empty message", ECHO + b"PUB a 0\r\n\r\n", b"MSG a 1 0\r\n\r\n"),
    Talk(
        "a length with a leading zero",
        ECHO + b"PUB a 01\r\nx\r\n",
        b"MSG a 1 01\r\nx\r\n",
        accepted=Deviation("a length is a number, not a text to be passed on", X),
    ),
    Talk("a body of line ends", ECHO + b"PUB a 4\r\n\r\n\r\n\r\n", b"MSG a 1 4\r\n\r\n\r\n\r\n"),
    Talk(
        "a body that is a command", ECHO + b"PUB a 6\r\nPING\r\n\r\n", b"MSG a 1 6\r\nPING\r\n\r\n"
    ),
    Talk("a reply", ECHO + b"PUB a b.c 1\r\nx\r\n", b"MSG a 1 b.c 1\r\nx\r\n"),
    Talk("nobody subscribed", b"PUB a 1\r\nx\r\n"),
    Talk(
        "a reply with an empty token", ECHO + b"PUB a b..c 1\r\nx\r\n", b"MSG a 1 b..c 1\r\nx\r\n"
    ),
    Talk("a reply with a wildcard", ECHO + b"PUB a b.* 1\r\nx\r\n", b"MSG a 1 b.* 1\r\nx\r\n"),
    # Headers.
    Talk(
        "headers",
        ECHO + b"HPUB a 12 13\r\n" + BLOCK + b"x\r\n",
        b"HMSG a 1 12 13\r\n" + BLOCK + b"x\r\n",
        HEADERS,
    ),
    Talk(
        "headers and a reply",
        ECHO + b"HPUB a b 12 12\r\n" + BLOCK + b"\r\n",
        b"HMSG a 1 b 12 12\r\n" + BLOCK + b"\r\n",
        HEADERS,
    ),
    Talk(
        "a status that a client wrote",
        ECHO + b"HPUB a 16 16\r\nNATS/1.0 503\r\n\r\n\r\n",
        b"HMSG a 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n",
        HEADERS,
    ),
    Talk("headers of no bytes", ECHO + b"HPUB a 0 1\r\nx\r\n", X, HEADERS),
    Talk(
        "bytes for headers",
        ECHO + b"HPUB a 3 4\r\nabcd\r\n",
        b"HMSG a 1 3 4\r\nabcd\r\n",
        HEADERS,
    ),
    # Subscriptions.
    Talk("any word as sid", b"SUB a abc\r\nPUB a 1\r\nx\r\n", b"MSG a abc 1\r\nx\r\n"),
    Talk("any bytes as sid", b"SUB a \xff\xfe\r\nPUB a 1\r\nx\r\n", b"MSG a \xff\xfe 1\r\nx\r\n"),
    Talk("a sid twice", ECHO + ECHO + b"PUB a 1\r\nx\r\n", X),
    Talk(
        "a sid twice, the second elsewhere",
        ECHO + b"SUB b 1\r\nPUB b 1\r\ny\r\nPUB a 1\r\nx\r\n",
        X,
    ),
    Talk(
        "a sid again after UNSUB",
        ECHO + b"UNSUB 1\r\nSUB b 1\r\nPUB b 1\r\ny\r\n",
        b"MSG b 1 1\r\ny\r\n",
    ),
    Talk("UNSUB of an unknown sid", b"UNSUB 99\r\n"),
    Talk("UNSUB", ECHO + b"UNSUB 1\r\nPUB a 1\r\nx\r\n"),
    Talk("UNSUB after none", ECHO + b"UNSUB 1 0\r\nPUB a 1\r\nx\r\n"),
    Talk("UNSUB after less than none", ECHO + b"UNSUB 1 -1\r\nPUB a 1\r\nx\r\n"),
    Talk("UNSUB after no number", ECHO + b"UNSUB 1 x\r\nPUB a 1\r\nx\r\n"),
    Talk("UNSUB after one", ECHO + b"UNSUB 1 1\r\n" + b"PUB a 1\r\nx\r\n" * 2, X),
    Talk(
        "UNSUB after one that has come", ECHO + b"PUB a 1\r\nx\r\nUNSUB 1 1\r\nPUB a 1\r\nx\r\n", X
    ),
    Talk(
        "UNSUB after two, one has come",
        ECHO + b"PUB a 1\r\nx\r\nUNSUB 1 2\r\n" + b"PUB a 1\r\nx\r\n" * 2,
        X + X,
    ),
    Talk("UNSUB of one of two", ECHO + b"SUB a 2\r\nUNSUB 2\r\nPUB a 1\r\nx\r\n", X),
    Talk("a queue group of one", b"SUB a g 1\r\nPUB a 1\r\nx\r\n", X),
    Talk("a queue group with dots and stars", b"SUB a g.* 1\r\nPUB a 1\r\nx\r\n", X),
    Talk("no echo", ECHO + b"PUB a 1\r\nx\r\n", options={"echo": False}),
    # Subjects.
    Talk("an empty token in SUB", b"SUB a..b 1\r\n", INVALID_SUBJECT),
    Talk("a leading dot in SUB", b"SUB .a 1\r\n", INVALID_SUBJECT),
    Talk("a trailing dot in SUB", b"SUB a. 1\r\n", INVALID_SUBJECT),
    Talk("`>` before the end", b"SUB a.>.b 1\r\n", INVALID_SUBJECT),
    Talk("`>` first and not last", b"SUB >.a 1\r\n", INVALID_SUBJECT),
    Talk(
        "a refused sid is free", b"SUB a..b 1\r\nSUB a 1\r\nPUB a 1\r\nx\r\n", INVALID_SUBJECT + X
    ),
    Talk("a star within a token", b"SUB a*.b 1\r\nPUB a*.b 1\r\nx\r\n", b"MSG a*.b 1 1\r\nx\r\n"),
    Talk("a star within a token is none", b"SUB a*.b 1\r\nPUB ac.b 1\r\nx\r\n"),
    Talk("`>` within a token", b"SUB a> 1\r\nPUB a> 1\r\nx\r\n", b"MSG a> 1 1\r\nx\r\n"),
    Talk(
        "a subject beyond ASCII",
        "SUB é 1\r\nPUB é 1\r\nx\r\n".encode(),
        "MSG é 1 1\r\nx\r\n".encode(),
    ),
    Talk("PUB to an empty token", b"SUB > 1\r\nPUB a..b 1\r\nx\r\n"),
    Talk("PUB to a star", b"SUB a.> 1\r\nPUB a.* 1\r\nx\r\n", b"MSG a.* 1 1\r\nx\r\n"),
    Talk("pedantic: PUB to a star", b"PUB a.* 1\r\nx\r\n", INVALID_PUBLISH, PEDANTIC),
    Talk("pedantic: PUB to `>`", b"PUB a.> 1\r\nx\r\n", INVALID_PUBLISH, PEDANTIC),
    Talk("pedantic: PUB to an empty token", b"PUB a..b 1\r\nx\r\n", INVALID_PUBLISH, PEDANTIC),
    Talk("pedantic: SUB to an empty token", b"SUB a..b 1\r\n", INVALID_SUBJECT, PEDANTIC),
    Talk("pedantic: PUB to a subject", ECHO + b"PUB a 1\r\nx\r\n", X, PEDANTIC),
    # Verbose.
    Talk("verbose: CONNECT", b"", b"+OK\r\n", VERBOSE),
    Talk("verbose: SUB and UNSUB", b"SUB a 1\r\nUNSUB 1\r\n", b"+OK\r\n" * 3, VERBOSE),
    Talk("verbose: PUB", b"PUB a 1\r\nx\r\n", b"+OK\r\n" * 2, VERBOSE),
    Talk("verbose: UNSUB of an unknown sid", b"UNSUB 9\r\n", b"+OK\r\n" * 2, VERBOSE),
    Talk("verbose: PING has its own answer", b"PING\r\n", b"+OK\r\nPONG\r\n", VERBOSE),
    Talk("verbose: PONG has none", b"PONG\r\n", b"+OK\r\n", VERBOSE),
    Talk("verbose: an error instead", b"SUB a..b 1\r\n", b"+OK\r\n" + INVALID_SUBJECT, VERBOSE),
    Talk("verbose: a second CONNECT", b"CONNECT {}\r\n", b"+OK\r\n" * 2, VERBOSE),
    # CONNECT again changes the options.
    Talk("a second CONNECT", b'CONNECT {"verbose":true}\r\nPUB a 1\r\nx\r\n', b"+OK\r\n" * 2),
    # No responders.
    Talk("no responders, not asked for", b"SUB r 1\r\nPUB a r 1\r\nx\r\n", options=HEADERS),
    Talk("no responders, nobody to be told", b"PUB a r 1\r\nx\r\n", options=ASKING),
    Talk("no responders, no reply", b"PUB a 1\r\nx\r\n", options=ASKING),
    Talk(
        "a responder", b"SUB r 1\r\nSUB a 2\r\nPUB a r 1\r\nx\r\n", b"MSG a 2 r 1\r\nx\r\n", ASKING
    ),
]

# The broker closes after its answer.
CLOSED = [
    Talk("an unknown verb", b"FOO\r\n", UNKNOWN),
    Talk("a verb of the broker", b"MSG a 1 1\r\nx\r\n", UNKNOWN),
    Talk("an empty line", b"\r\n", UNKNOWN),
    Talk("a line feed", b"\n", UNKNOWN),
    Talk("a leading space", b" PING\r\n", UNKNOWN),
    Talk("PUB without arguments", b"PUB\r\n", UNKNOWN),
    Talk("SUB without arguments", b"SUB\r\n", UNKNOWN),
    Talk("UNSUB without arguments", b"UNSUB\r\n", UNKNOWN),
    Talk("HTTP", b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n", UNKNOWN),
    Talk("NUL", b"\0\0\0\0", UNKNOWN),
    Talk("a TLS hello", b"\x16\x03\x01\x02\x00\x01", UNKNOWN),
    Talk("a body that is too long", b"PUB a 1\r\nxy\r\n", UNKNOWN),
    Talk("a body with a line feed behind it", b"PUB a 1\r\nx\nPING\r\n", UNKNOWN),
    Talk("what came before stays done", ECHO + b"PUB a 1\r\nx\r\nFOO\r\n", X + UNKNOWN),
    Talk("a subject over the control line", b"PUB " + b"a" * 5000 + b" 1\r\nx\r\n", LONG_LINE),
    Talk("an endless control line", b"SUB " + b"a" * 5000, LONG_LINE),
    Talk("a payload over the maximum", b"PUB a 1048577\r\n", LONG_PAYLOAD),
    Talk("a payload far over it", b"PUB a 999999999\r\n", LONG_PAYLOAD),
    Talk("headers and payload over it", b"HPUB a 12 1048577\r\n", LONG_PAYLOAD, HEADERS),
]

# Wrong arguments: nats-server closes without an answer.
WRONG_ARGUMENTS = [
    Talk("PUB without a length", b"PUB a\r\n"),
    Talk("PUB of nothing", b"PUB \r\n"),
    Talk("PUB with an argument too many", b"PUB a b c 1\r\nx\r\n"),
    Talk("a length of letters", b"PUB a x\r\n"),
    Talk("a negative length", b"PUB a -1\r\nx\r\n"),
    Talk("a length with a sign", b"PUB a +1\r\nx\r\n"),
    Talk("a length of 2^31", b"PUB a 2147483648\r\n"),
    Talk("a length of 2^32 + 1", b"PUB a 4294967297\r\nx\r\n"),
    Talk("a length of 2^64 + 1", b"PUB a 18446744073709551617\r\nx\r\n"),
    Talk("SUB without a sid", b"SUB a\r\n"),
    Talk("SUB with an argument too many", b"SUB a b c d\r\n"),
    Talk("UNSUB with an argument too many", b"UNSUB 1 2 3\r\n"),
    Talk("HPUB without a length", b"HPUB a 12\r\n", options=HEADERS),
    Talk("HPUB with headers longer than all", b"HPUB a 14 13\r\n", options=HEADERS),
    Talk("HPUB with a negative length", b"HPUB a -1 13\r\n", options=HEADERS),
    Talk("HPUB of 2^64 + 12", b"HPUB a 18446744073709551628 13\r\n", options=HEADERS),
    Talk("HPUB without headers in CONNECT", b"HPUB a 12 13\r\n" + BLOCK + b"x\r\n"),
    Talk("-ERR from a client", b"-ERR 'x'\r\n"),
    Talk("CONNECT without JSON", b"CONNECT\r\n"),
    Talk("CONNECT with broken JSON", b"CONNECT {bad}\r\n"),
    Talk("CONNECT with a list", b"CONNECT []\r\n"),
    Talk("CONNECT with more behind it", b"CONNECT {}x\r\n"),
    Talk("CONNECT with a wrong type", b'CONNECT {"verbose":"yes"}\r\n'),
]

# The first bytes on a connection; `verbose` is the default for a client that does not set it.
FIRST_OPEN = [
    Talk("PING", b"PING\r\n", b"PONG\r\n"),
    Talk("PUB and SUB without CONNECT", ECHO + b"PUB a 1\r\nx\r\n", b"+OK\r\n+OK\r\n" + X),
    Talk("an empty CONNECT", b"CONNECT {}\r\n", b"+OK\r\n"),
    Talk("connect in small letters", b"connect {}\r\n", b"+OK\r\n"),
    Talk("CONNECT without a space", b"CONNECT{}\r\n", b"+OK\r\n"),
    Talk("CONNECT with a line feed alone", b"CONNECT {}\n", b"+OK\r\n"),
    Talk("an unknown option", b'CONNECT {"favourite_colour":"blue"}\r\n', b"+OK\r\n"),
    Talk("an option in capitals", b'CONNECT {"VERBOSE":false}\r\n'),
    Talk("an option twice", b'CONNECT {"verbose":true,"verbose":false}\r\n'),
    Talk("the right password", b'CONNECT {"user":"guest","pass":"guest"}\r\n', b"+OK\r\n"),
]

FIRST_CLOSED = [
    Talk("junk", b"junk\r\n", UNKNOWN),
    Talk("HTTP", b"GET / HTTP/1.1\r\n\r\n", UNKNOWN),
    Talk("a TLS hello", b"\x16\x03\x01\x02\x00\x01", UNKNOWN),
    Talk("a wrong password", b'CONNECT {"user":"guest","pass":"wrong"}\r\n', REFUSED),
    Talk("an unknown user", b'CONNECT {"user":"nobody","pass":"guest"}\r\n', REFUSED),
    Talk("a user without a password", b'CONNECT {"user":"guest"}\r\n', REFUSED),
    Talk("a token", b'CONNECT {"auth_token":"guest"}\r\n', REFUSED),
    Talk("a later protocol", b'CONNECT {"protocol":9}\r\n', b"-ERR 'invalid client protocol'\r\n"),
    Talk(
        "no responders without headers",
        b'CONNECT {"no_responders":true}\r\n',
        b"-ERR 'no responders requires headers support'\r\n",
    ),
    Talk("an endless CONNECT", b'CONNECT {"name":"' + b"x" * 5000, LONG_LINE),
]


def what(talk: Talk) -> str:
    """Names a row."""
    return talk.what


def check(raw: RawNats, broker: NatsBroker, talk: Talk, *, closes: bool) -> None:
    """Expects nats-server's answer, or the other accepted one."""
    expected = talk.answer
    if broker.behaviour.may_deviate and talk.accepted is not None:
        expected, closes = talk.accepted.answer, talk.accepted.closes
    if closes:
        assert raw.until_closed() == expected
    else:
        assert raw.until_pong(earlier=expected.count(b"PONG\r\n")) == expected


@pytest.mark.parametrize("talk", OPEN, ids=what)
def test_the_connection_stays_open(connect_nats: ConnectNats, nats: NatsBroker, talk: Talk) -> None:
    raw = connect_nats()
    raw.login(talk.options)
    raw.write(talk.sent)
    check(raw, nats, talk, closes=False)


@pytest.mark.parametrize("talk", CLOSED, ids=what)
def test_the_connection_is_closed(connect_nats: ConnectNats, nats: NatsBroker, talk: Talk) -> None:
    raw = connect_nats()
    raw.login(talk.options)
    assert raw.until_pong() == b""
    raw.write(talk.sent)
    check(raw, nats, talk, closes=True)


@pytest.mark.parametrize("talk", WRONG_ARGUMENTS, ids=what)
def test_wrong_arguments_end_the_connection(
    connect_nats: ConnectNats, nats: NatsBroker, talk: Talk
) -> None:
    raw = connect_nats()
    raw.login(talk.options)
    assert raw.until_pong() == b""
    raw.write(talk.sent)
    answer = raw.until_closed()
    if nats.behaviour.explains_wrong_arguments:
        assert re.fullmatch(rb"-ERR '[^'\r\n]+'\r\n", answer)
    else:
        assert answer == b""


@pytest.mark.parametrize("talk", FIRST_OPEN, ids=what)
def test_the_first_bytes_are_understood(
    connect_nats: ConnectNats, nats: NatsBroker, talk: Talk
) -> None:
    raw = connect_nats()
    raw.greeting()
    raw.write(talk.sent)
    check(raw, nats, talk, closes=False)


@pytest.mark.parametrize("talk", FIRST_CLOSED, ids=what)
def test_the_first_bytes_end_the_connection(
    connect_nats: ConnectNats, nats: NatsBroker, talk: Talk
) -> None:
    raw = connect_nats()
    raw.greeting()
    raw.write(talk.sent)
    check(raw, nats, talk, closes=True)


WHOLE = (
    connect_bytes({"verbose": False, **ASKING})
    + b"SUB a.* group 7\r\nPING\r\nPUB a.b r.1 5\r\nhello\r\nHPUB a.b 21 24\r\n"
    + b"NATS/1.0\r\nName: x\r\n\r\nabc\r\nPUB a.b 0\r\n\r\nUNSUB 7\r\nPUB a.b 1\r\nx\r\n"
)
WHOLE_ANSWER = (
    b"PONG\r\nMSG a.b 7 r.1 5\r\nhello\r\nHMSG a.b 7 21 24\r\nNATS/1.0\r\nName: x\r\n\r\n"
    b"abc\r\nMSG a.b 7 0\r\n\r\n"
)


def test_a_conversation_may_be_cut_anywhere(connect_nats: ConnectNats) -> None:
    for cut in range(len(WHOLE)):
        # The broker may still know the previous client, which must not receive this one's messages.
        whole = WHOLE.replace(b"group", b"g%04d" % cut)
        raw = connect_nats()
        raw.greeting()
        raw.write(whole[:cut])
        raw.write(whole[cut:])
        assert raw.until_pong(earlier=1) == WHOLE_ANSWER, cut


def test_a_conversation_may_come_byte_by_byte(connect_nats: ConnectNats) -> None:
    raw = connect_nats()
    raw.greeting()
    for byte in WHOLE:
        raw.write(bytes([byte]))
    assert raw.until_pong(earlier=1) == WHOLE_ANSWER


def test_a_client_without_headers_gets_the_body_alone(connect_nats: ConnectNats) -> None:
    old, new = connect_nats(), connect_nats()
    old.login()
    old.write(b"SUB a 1\r\n")
    assert old.until_pong() == b""
    new.login(HEADERS)
    new.write(b"HPUB a 21 24\r\nNATS/1.0\r\nName: x\r\n\r\nabc\r\n")
    assert new.until_pong() == b""
    assert old.until_pong() == b"MSG a 1 3\r\nabc\r\n"


@pytest.mark.parametrize(
    "request_", [b"PUB nobody r.1 1\r\nx\r\n", b"HPUB nobody r.1 12 12\r\n" + BLOCK + b"\r\n"]
)
def test_a_requester_is_told_that_nobody_listens(
    connect_nats: ConnectNats, request_: bytes
) -> None:
    raw = connect_nats()
    raw.login(ASKING)
    raw.write(b"SUB r.* 7\r\n" + request_)
    head, _, block = raw.until_pong().partition(b"\r\n")
    # nats-server 2.15 includes the subject of a header error; earlier versions did not.
    lengths = len(block) - 2
    assert head == b"HMSG r.1 7 %d %d" % (lengths, lengths)
    assert re.fullmatch(rb"NATS/1\.0 503\r\n(Nats-Subject: nobody\r\n)?\r\n\r\n", block)


def test_the_greeting_says_what_clients_ask_for(connect_nats: ConnectNats) -> None:
    one, other = connect_nats().greeting(), connect_nats().greeting()
    assert {"server_id", "server_name", "version", "host", "port"} <= one.keys()
    assert (one["headers"], one["proto"], one["client_ip"]) == (True, 1, "127.0.0.1")
    assert one["max_payload"] >= 1 << 20
    assert one["client_id"] != other["client_id"]
    assert not one.get("auth_required")
    assert not one.get("tls_required")
    # Clients compare versions to decide which features to use.
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", one["version"])


def test_a_client_that_leaves_in_the_middle_harms_nobody(connect_nats: ConnectNats) -> None:
    good, bad = connect_nats(), connect_nats()
    good.login()
    good.write(b"SUB a 1\r\n")
    assert good.until_pong() == b""
    bad.login()
    bad.write(b"PUB a 1000\r\nhalf a body")
    bad.close()
    good.write(b"PUB a 5\r\nwhole\r\n")
    assert good.until_pong() == b"MSG a 1 5\r\nwhole\r\n"
