"""Names and headers from outside cannot reach other users' objects, and cannot break clients."""

import time

import pytest

from harness.fixtures import ConnectRaw
from harness.frame import Frame, frame_bytes
from harness.raw import RawClient

COUNT = 1000


def subscribe(raw: RawClient, destination: str, identity: str = "s", **headers: str) -> Frame:
    """Subscribes and returns the answer."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    raw.send("SUBSCRIBE", {"id": identity, "destination": destination, "receipt": "r", **named})
    return raw.read()


def inbox_of(requester: RawClient, responder: RawClient, name: str) -> str:
    """Returns the address of an inbox of `requester`, as seen by `responder`."""
    assert subscribe(responder, f"/queue/{name}").command == "RECEIPT"
    request = {"destination": f"/queue/{name}", "reply-to": "/temp-queue/mine"}
    requester.send("SEND", request)
    return responder.read()["reply-to"]


THEFTS = [
    ("SUBSCRIBE", "/reply-queue/{}"),
    ("SUBSCRIBE", "/queue/{}"),
    ("SUBSCRIBE", "/amq/queue/{}"),
    ("SUBSCRIBE", "{}"),
    ("SUBSCRIBE", "/topic/{}"),
    ("SUBSCRIBE", "/topic/imori.inbox.*"),
    ("SUBSCRIBE", "/topic/imori.#"),
    ("SUBSCRIBE", "/topic/#"),
    ("SUBSCRIBE", "/exchange/amq.topic/#"),
    ("SUBSCRIBE", "/exchange/amq.direct/{}"),
    ("SUBSCRIBE", "/exchange/amq.fanout"),
    ("SUBSCRIBE", "/temp-queue/mine"),
]


def test_a_thief_gets_none_of_a_thousand_replies(connect_raw: ConnectRaw, name: str) -> None:
    # SECURITY AUTH-06.
    requester, responder = connect_raw(), connect_raw()
    requester.login()
    responder.login()
    address = inbox_of(requester, responder, name)
    bare = address.removeprefix("/reply-queue/")
    thieves = []
    for command, destination in THEFTS:
        thief = connect_raw()
        thief.login()
        thief.send(command, {"id": "s", "destination": destination.format(bare), "receipt": "r"})
        if thief.read().command == "RECEIPT":
            thieves.append(thief)
    # The name of the underlying queue, chosen by the thief.
    thief = connect_raw()
    thief.login()
    if subscribe(thief, f"/topic/{name}", x_queue_name=bare).command == "RECEIPT":
        thieves.append(thief)
    # The same name in the thief's own connection.
    namesake = connect_raw()
    namesake.login()
    namesake.send("SEND", {"destination": f"/topic/{name}", "reply-to": "/temp-queue/mine"})
    namesake.send("SEND", {"destination": f"/topic/{name}", "reply-to": address})
    thieves.append(namesake)
    for number in range(COUNT):
        responder.send("SEND", {"destination": address}, f"reply {number}".encode())
    replies = [requester.read() for _ in range(COUNT)]
    assert [reply.body for reply in replies] == [f"reply {n}".encode() for n in range(COUNT)]
    for thief in thieves:
        assert [frame for frame in thief.fence() if frame.body.startswith(b"reply")] == []


def test_a_guessed_address_reaches_nobody(connect_raw: ConnectRaw, name: str) -> None:
    # SECURITY AUTH-06: every single character counts, and so does every missing part.
    requester, responder = connect_raw(), connect_raw()
    requester.login()
    responder.login()
    address = inbox_of(requester, responder, name)
    start = len("/reply-queue/imori.inbox.")
    other = {character: "B" if character == "A" else "A" for character in address}
    guesses = [
        address[:at] + other[address[at]] + address[at + 1 :] for at in range(start, len(address))
    ]
    guesses += [address[:-1], address + "A", address[:start], address[: start + 16]]
    guesses += [address.lower(), address[:start] + address[start:].upper(), address + "%00"]
    guesses += [address[: start + 16] + "A" * 22]
    for guess in guesses:
        responder.send("SEND", {"destination": guess, "receipt": guess}, b"guessed")
        answer = responder.read()
        assert answer.command == "RECEIPT", "who sends to nobody is not told so"
    assert requester.fence() == []
    responder.send("SEND", {"destination": address}, b"right")
    assert requester.read().body == b"right"


def test_a_reply_to_an_owner_that_is_gone_vanishes_with_its_receipt(
    connect_raw: ConnectRaw, name: str
) -> None:
    # SECURITY AUTH-06: a client that reuses the owner's place gets another address, and no
    # messages.
    responder = connect_raw()
    responder.login()
    requester = connect_raw()
    requester.login()
    address = inbox_of(requester, responder, name)
    requester.send("DISCONNECT", {"receipt": "bye"})
    requester.read_until_closed()
    followers = [connect_raw() for _ in range(5)]
    for follower in followers:
        follower.login()
        follower.send("SEND", {"destination": f"/queue/{name}", "reply-to": "/temp-queue/mine"})
    fresh = [responder.read()["reply-to"] for _ in followers]
    assert address not in fresh
    assert len(set(fresh)) == len(fresh)
    responder.send("SEND", {"destination": address, "receipt": "r"}, b"late")
    assert responder.read()["receipt-id"] == "r"
    for follower in followers:
        assert follower.fence() == []


def test_dead_letters_do_not_reach_an_inbox(connect_raw: ConnectRaw, name: str) -> None:
    # SECURITY AUTH-05, AUTH-06: a queue cannot bypass the check of the address.
    requester, responder = connect_raw(), connect_raw()
    requester.login()
    responder.login()
    bare = inbox_of(requester, responder, name).removeprefix("/reply-queue/")
    headers = {"x_dead_letter_exchange": "", "x_dead_letter_routing_key": bare}
    queue = f"/queue/{name}.q"
    assert subscribe(responder, queue, "q", ack="client", **headers).command == "RECEIPT"
    responder.send("SEND", {"destination": queue.replace("/queue", "/amq/queue")}, b"forged")
    responder.send("NACK", {"id": responder.read()["ack"], "requeue": "false"})
    assert responder.fence() == []
    assert requester.fence() == []


RESERVED = [
    ("SEND", "/queue/amq.mine", {}),
    ("SEND", "/queue/amq%2Emine", {}),
    ("SEND", "amq.mine", {}),
    ("SEND", "/queue/imori.mine", {}),
    ("SEND", "/temp-queue/mine", {}),
    ("SUBSCRIBE", "/queue/amq.mine", {}),
    ("SUBSCRIBE", "/queue/imori.mine", {}),
    ("SUBSCRIBE", "/queue/imori.inbox.x", {}),
    ("SUBSCRIBE", "/reply-queue/imori.inbox.x", {}),
    ("SUBSCRIBE", "/temp-queue/mine", {}),
    ("SUBSCRIBE", "/topic/x", {"x-queue-name": "amq.mine"}),
    ("SUBSCRIBE", "/topic/x", {"x-queue-name": "imori.mine"}),
    ("SUBSCRIBE", "/topic/x", {"x-queue-name": "imori.inbox.x", "durable": "true"}),
    ("SUBSCRIBE", "/exchange//x", {}),
    ("SUBSCRIBE", "/queue/x", {"id": "/temp-queue/x"}),
    ("SEND", "/queue/x", {"message-id": "mine"}),
    ("SEND", "/queue/x", {"user-id": "root"}),
]


@pytest.mark.parametrize(("command", "destination", "headers"), RESERVED)
def test_reserved_names_are_refused(
    connect_raw: ConnectRaw, command: str, destination: str, headers: dict[str, str]
) -> None:
    # SECURITY AUTH-05, AUTH-08.
    raw = connect_raw()
    raw.login()
    raw.send(command, {"id": "s", "destination": destination, "receipt": "r", **headers})
    assert [frame.command for frame in raw.read_until_closed()] == ["ERROR"]


@pytest.mark.parametrize("subject", ["_INBOX.x", "$SYS.x", "$JS.ACK.x", "$x"])
def test_wildcards_do_not_hear_reserved_subjects(connect_raw: ConnectRaw, subject: str) -> None:
    # SECURITY AUTH-05.
    raw = connect_raw()
    raw.login()
    for at, pattern in enumerate(["#", "*.x", "*", "#.x"]):
        assert subscribe(raw, f"/topic/{pattern}", str(at)).command == "RECEIPT"
    raw.send("SEND", {"destination": f"/topic/{subject}"}, b"hidden")
    assert [frame for frame in raw.fence() if frame.body == b"hidden"] == []


def test_a_durable_subscription_is_its_users_own(connect_raw: ConnectRaw, name: str) -> None:
    # SECURITY AUTH-07: differently composed parts never name the same queue.
    first, second = connect_raw(), connect_raw()
    first.login()
    second.login()
    durable = {"durable": "true", "auto_delete": "true"}
    assert subscribe(first, f"/topic/{name}", "a/b", **durable).command == "RECEIPT"
    for identity in ("a%2Fb", "a", "a/", "/a/b", "A/B"):
        assert subscribe(second, f"/topic/{name}", identity, **durable).command == "RECEIPT"
        second.send("UNSUBSCRIBE", {"id": identity, "durable": "true"})
    first.send("SEND", {"destination": f"/topic/{name}"}, b"mine")
    assert first.read().body == b"mine"


FORGED = {
    "redelivered": "true",
    "subscription": "forged",
    "ack": "forged",
    "x-death-count": "7",
    "x-first-death-queue": "forged",
    "x-first-death-reason": "forged",
    "content-length": "",
}


def test_headers_of_the_broker_cannot_be_forged(connect_raw: ConnectRaw, name: str) -> None:
    # SECURITY AUTH-08.
    raw = connect_raw()
    raw.login()
    assert subscribe(raw, f"/queue/{name}").command == "RECEIPT"
    forged = {header: value for header, value in FORGED.items() if value}
    raw.send("SEND", {"destination": f"/queue/{name}", **forged}, b"x")
    message = raw.read()
    assert {key: message.headers.get(key) for key in forged if key.startswith("x-")} == {
        key: None for key in forged if key.startswith("x-")
    }
    assert (message["redelivered"], message["subscription"]) == ("false", "s")
    assert "ack" not in message.headers


BYTES = [
    b"\\n",
    b"\\r",
    b"\\c",
    b"\\\\",
    b"\\r\\n\\r\\n",
    b"\xc3\xa9",
    b"\x01",
    b"\x1b[2J",
    b" ",
]
BYTES += [
    b"\\nMESSAGE\\n\\nx",
    b"\\ncontent-length\\c0\\n",
    b"\t",
    b"\x7f",
    b"\xe2\x80\xa8",
    b"#",
    b"%00",
]


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_no_byte_of_a_header_changes_what_a_receiver_reads(
    connect_raw: ConnectRaw, name: str, version: str
) -> None:
    # SECURITY XPI-01, XPI-04: complete, or omitted.
    receiver, sender = connect_raw(), connect_raw()
    receiver.login(version=version)
    sender.login()
    assert subscribe(receiver, f"/topic/{name}.#").command == "RECEIPT"
    for at, text in enumerate(BYTES):
        head = b"SEND\ndestination:/topic/%s.%s\n" % (name.encode(), text)
        sender.write(
            head + b"user%s:%s\ncorrelation-id:%s\nat:%d\n\nbody\0" % (text, text, text, at)
        )
    for at in range(len(BYTES)):
        message = receiver.read_bytes()
        lines = message.split(b"\n\n", 1)[0].split(b"\n")
        assert lines[0] == b"MESSAGE"
        assert b"at:%d" % at in lines
        assert sum(line.startswith(b"content-length:") for line in lines) == 1
        assert all(b":" in line and b"\0" not in line and b"\r" not in line for line in lines[1:])
        assert message.endswith(b"\n\nbody\0")
        # Many clients fail on a header that is not UTF-8, which their specification requires.
        message.decode()
        # Many clients fail on a header that is not UTF-8, which their specification requires.
        message.decode()
    assert receiver.fence() == []


@pytest.mark.parametrize("version", ["1.1", "1.2"])
@pytest.mark.parametrize(
    "text", [b"\xff", b"\xc3", b"\xc3\x28", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"]
)
def test_headers_that_are_not_utf_8_are_refused(
    connect_raw: ConnectRaw, name: str, version: str, text: bytes
) -> None:
    # SECURITY XPI-04: one such message would end every client that reads it.
    for line in (b"user:" + text, b"user" + text + b":x", b"destination:/queue/" + text):
        raw = connect_raw()
        raw.login(version=version)
        raw.write(b"SEND\ndestination:/queue/%s\nreceipt:r\n%s\n\n\0" % (name.encode(), line))
        assert [frame.command for frame in raw.read_until_closed()] == ["ERROR"]


def test_what_1_0_sends_that_is_not_utf_8_is_left_out_for_others(
    connect_raw: ConnectRaw, name: str
) -> None:
    # SECURITY XPI-04: STOMP 1.0 specifies no encoding.
    sender, old, new = connect_raw(), connect_raw(), connect_raw()
    sender.login(version="1.0")
    old.login(version="1.0")
    new.login()
    for raw in (old, new):
        assert subscribe(raw, f"/topic/{name}").command == "RECEIPT"
    sender.write(b"SEND\ndestination:/topic/%s\nlatin:\xe9\nplain:x\n\n\0" % name.encode())
    assert b"\nlatin:\xe9\nplain:x\n" in old.read_bytes()
    message = new.read_bytes()
    assert b"\nplain:x\n" in message
    assert b"latin" not in message


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 1_000_000, 16 * 1024 * 1024])
def test_a_body_comes_whole_or_not_at_all(connect_raw: ConnectRaw, name: str, size: int) -> None:
    # SECURITY XPI-04.
    raw = connect_raw()
    raw.login()
    assert subscribe(raw, f"/queue/{name}").command == "RECEIPT"
    body = (bytes(range(256)) * (size // 256 + 1))[:size]
    raw.send("SEND", {"destination": f"/queue/{name}", "content-length": str(size)}, body)
    assert raw.read().body == body


def seconds_of(raw: RawClient, frame: bytes) -> float:
    """Returns the time for a thousand frames, the best of five."""
    end = frame_bytes("SEND", {"destination": "/topic/end", "receipt": "end"})
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        raw.write(frame * 20 + end)
        while raw.read().headers.get("receipt-id") != "end":
            pass
        best = min(best, time.perf_counter() - start)
    return best


@pytest.mark.parametrize(
    "pattern",
    ["#.a.#.a.#.b", ".".join(["*"] * 127) + ".b", "#." + "*." * 100 + "b", "a." * 126 + "#.b"],
)
def test_wildcards_do_not_make_a_match_long(
    connect_raw: ConnectRaw, name: str, pattern: str
) -> None:
    # SECURITY LIM-12: nothing matches, after as much work as a pattern can cause.
    raw = connect_raw()
    raw.login()
    raw.send("SUBSCRIBE", {"id": "s", "destination": f"/topic/{pattern}", "receipt": "r"})
    if raw.read().command == "ERROR":
        return
    # A different subject each time, so that routes are not cached.
    long = ".".join(["a"] * 127)
    hard = b"".join(
        frame_bytes("SEND", {"destination": f"/topic/{long}.{name}{at}"}) for at in range(50)
    )
    easy = b"".join(
        frame_bytes("SEND", {"destination": f"/topic/{name}{at}.{long}"}) for at in range(50)
    )
    assert seconds_of(raw, hard) < 4 * seconds_of(raw, easy) + 0.5
