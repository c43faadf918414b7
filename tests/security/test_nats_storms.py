"""Many subscriptions of one NATS client, and storms of them: others continue, nothing is left.

SECURITY LIM-10. `bench/subscriptions.py` measures their cost.
"""

import threading

from harness.fixtures import ConnectNats, StartNats
from harness.nats.broker import Settings
from harness.nats.message import messages_in
from harness.nats.raw import RawNats

COUNT = 50_000
ROUNDS = 20
ROUND = 1_000
LIMIT = 100


def subscriptions(subject: str, count: int) -> bytes:
    """Returns SUBs of `count` subjects."""
    return b"".join(f"SUB {subject}.{number} {number}\r\n".encode() for number in range(count))


def round_trips(publisher: RawNats, subscriber: RawNats, count: int) -> None:
    """Sends single messages, each received before the next."""
    for number in range(count):
        body = str(number).encode()
        publisher.write(b"PUB pair %d\r\n%s\r\n" % (len(body), body))
        assert publisher.until_pong() == b""
        assert [message.body for message in messages_in(subscriber.until_pong())] == [body]


def pair(connect: ConnectNats) -> tuple[RawNats, RawNats]:
    """Returns a publisher and its subscriber."""
    publisher, subscriber = connect(), connect()
    for raw in (publisher, subscriber):
        raw.login()
    subscriber.write(b"SUB pair 1\r\n")
    assert subscriber.until_pong() == b""
    return publisher, subscriber


def responders(raw: RawNats, subject: str) -> bool:
    """Returns whether a request has responders."""
    raw.write(f"PUB {subject} _INBOX.{subject} 0\r\n\r\n".encode())
    return raw.until_pong() == b""


def test_all_of_many_subscriptions_are_heard(connect_nats: ConnectNats, name: str) -> None:
    holder, (publisher, subscriber) = connect_nats(), pair(connect_nats)
    holder.login()
    holder.write(subscriptions(name, COUNT))
    round_trips(publisher, subscriber, 20)
    assert holder.until_pong() == b""
    numbers = range(0, COUNT, 1_000)
    publisher.write(b"".join(b"PUB %s.%d 0\r\n\r\n" % (name.encode(), n) for n in numbers))
    assert publisher.until_pong() == b""
    assert [message.sid for message in messages_in(holder.until_pong())] == [
        str(n) for n in numbers
    ]


def test_nothing_is_left_of_a_connection_with_many_subscriptions(
    connect_nats: ConnectNats, name: str
) -> None:
    publisher, subscriber = pair(connect_nats)
    requester = connect_nats()
    requester.login({"headers": True, "no_responders": True})
    requester.write(b"SUB _INBOX.> 1\r\n")
    for _ in range(2):
        holder = connect_nats()
        holder.login()
        holder.write(subscriptions(name, COUNT))
        assert holder.until_pong() == b""
        assert responders(requester, f"{name}.0")
        assert responders(requester, f"{name}.{COUNT - 1}")
        holder.close()
        round_trips(publisher, subscriber, 100)
        # The broker removes the subscriptions in the background, but it removes all of them.
        for number in (0, COUNT - 1):
            while responders(requester, f"{name}.{number}"):
                pass


def test_a_storm_of_subscriptions_leaves_others_at_work(
    connect_nats: ConnectNats, name: str
) -> None:
    publisher, subscriber = pair(connect_nats)
    stormy = connect_nats()
    stormy.login()

    def storm() -> None:
        ends = b"".join(b"UNSUB %d\r\n" % number for number in range(ROUND))
        for _ in range(ROUNDS):
            stormy.write(subscriptions(name, ROUND) + ends)
            assert stormy.until_pong() == b""

    thread = threading.Thread(target=storm)
    thread.start()
    while thread.is_alive():
        round_trips(publisher, subscriber, 10)
    thread.join()
    publisher.write(f"PUB {name}.0 0\r\n\r\n".encode())
    assert publisher.until_pong() == b""
    assert stormy.until_pong() == b"", "all of them have ended"


def test_one_subscription_more_than_the_limit_is_refused(
    start_nats: StartNats, connect_nats: ConnectNats, name: str
) -> None:
    broker = start_nats(
        Settings(nats_server=f"max_subscriptions: {LIMIT}", imori={"nats.max_subscriptions": LIMIT})
    )
    raw = connect_nats(broker)
    raw.login()
    raw.write(subscriptions(name, LIMIT + 1))
    assert raw.until_pong() == b"-ERR 'maximum subscriptions exceeded'\r\n"
    raw.write(f"UNSUB 0\r\nSUB {name} last\r\nPUB {name} 0\r\n\r\n".encode())
    assert [message.sid for message in messages_in(raw.until_pong())] == ["last"]


def test_subscriptions_of_all_clients_are_limited(
    start_nats: StartNats, connect_nats: ConnectNats, name: str
) -> None:
    broker = start_nats(Settings(imori={"limits.subscriptions": LIMIT}))
    first, second = connect_nats(broker), connect_nats(broker)
    for raw in (first, second):
        raw.login()
    first.write(subscriptions(name, LIMIT - 1))
    assert first.until_pong() == b""
    second.write(b"SUB a 1\r\nSUB b 2\r\n")
    answer = second.until_pong()
    assert answer == b"-ERR 'maximum subscriptions exceeded'\r\n", answer
    first.close()
