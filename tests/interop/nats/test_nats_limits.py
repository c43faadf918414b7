"""Errors of a broker configured to reach its limits early: limits, rights, silence."""

from harness.fixtures import ConnectNats, StartNats
from harness.nats.broker import Settings
from harness.nats.raw import connect_bytes

TOO_LONG = b"-ERR 'Maximum Payload Violation'\r\n"

# A login is required.
CLOSED_DOOR = "authorization {{ timeout: {timeout}, users: [{{ user: guest, password: guest }}] }}"

RIGHTS = """
authorization { users: [{
    user: guest, password: guest
    permissions: { publish: ["x"], subscribe: ["x", "y q"] }
}] }
"""


def test_a_client_that_does_not_log_in_is_cut(
    start_nats: StartNats, connect_nats: ConnectNats
) -> None:
    broker = start_nats(
        Settings(nats_server=CLOSED_DOOR.format(timeout="0.5"), imori={"limits.login_timeout_s": 1})
    )
    raw = connect_nats(broker)
    raw.greeting()
    assert raw.until_closed() == b"-ERR 'Authentication Timeout'\r\n"


def test_where_a_login_is_wanted_nothing_goes_before_it(
    start_nats: StartNats, connect_nats: ConnectNats
) -> None:
    broker = start_nats(Settings(nats_server=CLOSED_DOOR.format(timeout="10"), imori=None))
    for first in (b"PING\r\n", b"SUB > 1\r\n", b"PUB a 1\r\nx\r\n", b"junk\r\n", b"CONNECT {}\r\n"):
        raw = connect_nats(broker)
        assert raw.greeting()["auth_required"] is True
        raw.write(first)
        assert raw.until_closed() == b"-ERR 'Authorization Violation'\r\n"


def test_a_client_that_answers_no_ping_is_cut(
    start_nats: StartNats, connect_nats: ConnectNats
) -> None:
    broker = start_nats(Settings(nats_server='ping_interval: "100ms"\nping_max: 1', imori=None))
    raw = connect_nats(broker)
    raw.login()
    assert raw.until_closed().endswith(b"PING\r\n-ERR 'Stale Connection'\r\n")


def test_the_payload_of_a_message_is_limited(
    start_nats: StartNats, connect_nats: ConnectNats
) -> None:
    broker = start_nats(Settings(nats_server="max_payload: 1024", imori=None))
    for head, status in ((b"PUB a 1024", "open"), (b"PUB a 1025", "closed")):
        raw = connect_nats(broker)
        assert raw.greeting()["max_payload"] == 1024
        raw.write(connect_bytes({"verbose": False, "headers": True}))
        raw.write(head + b"\r\n" + bytes(1024) + b"\r\n")
        if status == "open":
            assert raw.until_pong() == b""
        else:
            # The rest is not read, so the reset may overtake the broker's answer.
            assert raw.until_closed() in (TOO_LONG, b"")


def test_connections_are_limited(start_nats: StartNats, connect_nats: ConnectNats) -> None:
    broker = start_nats(Settings(nats_server="max_connections: 2", imori=None))
    for raw in (connect_nats(broker), connect_nats(broker)):
        raw.login()
        assert raw.until_pong() == b""
    late = connect_nats(broker)
    assert late.until_closed().endswith(b"-ERR 'maximum connections exceeded'\r\n")


def test_subscriptions_are_limited(start_nats: StartNats, connect_nats: ConnectNats) -> None:
    broker = start_nats(Settings(nats_server="max_subscriptions: 2", imori=None))
    raw = connect_nats(broker)
    raw.login()
    raw.write(b"SUB a 1\r\nSUB a 2\r\nSUB a 3\r\n")
    assert raw.until_pong() == b"-ERR 'maximum subscriptions exceeded'\r\n"
    raw.write(b"PUB a 1\r\nx\r\n")
    assert sorted(raw.until_pong().split(b"MSG ")[1:]) == [b"a 1 1\r\nx\r\n", b"a 2 1\r\nx\r\n"]


def test_what_is_not_allowed_is_named_and_the_connection_stays(
    start_nats: StartNats, connect_nats: ConnectNats
) -> None:
    broker = start_nats(Settings(nats_server=RIGHTS, imori=None))
    raw = connect_nats(broker)
    raw.login({"user": "guest", "pass": "guest"})
    assert raw.until_pong() == b""
    for sent, what in (
        (b"PUB y 1\r\nx\r\n", b'Publish to "y"'),
        (b"SUB z 1\r\n", b'Subscription to "z"'),
        (b"SUB y 1\r\n", b'Subscription to "y"'),
        (b"SUB z q 1\r\n", b'Subscription to "z" using queue "q"'),
        (b"SUB > 1\r\n", b'Subscription to ">"'),
    ):
        raw.write(sent)
        assert raw.until_pong() == b"-ERR 'Permissions Violation for " + what + b"'\r\n"
    raw.write(b"SUB x 1\r\nSUB y q 2\r\nPUB x 1\r\nx\r\n")
    assert raw.until_pong() == b"MSG x 1 1\r\nx\r\n"
