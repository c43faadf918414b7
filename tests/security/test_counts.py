"""Everything that can be counted has a limit: one more is refused, and others continue.

SECURITY LIM-10.
"""

from collections.abc import Callable

import pytest

from harness.fixtures import ConnectRaw, StartImori
from harness.frame import Frame, frame_bytes
from harness.raw import RawClient

HEADERS_MAX = 128
HEADER_BYTES_MAX = 64 * 1024
TRANSACTIONS_MAX = 16
ACTIONS_MAX = 1024
INBOXES_MAX = 4096
SUBSCRIPTIONS_MAX = 65_536
SUBJECT_BYTES_MAX = 1024
SUBJECT_TOKENS_MAX = 128


def send_headers(raw: RawClient, name: str, count: int) -> None:
    extra = {f"h{number}": "v" for number in range(count - 2)}
    raw.send("SEND", {"destination": f"/topic/{name}", "receipt": "r", **extra})


def send_header_bytes(raw: RawClient, name: str, count: int) -> None:
    lines = f"destination:/topic/{name}\nreceipt:r\nx:"
    raw.write(f"SEND\n{lines}{'v' * (count - len(lines) - 1)}\n\n\0".encode())


def open_transactions(raw: RawClient, _: str, count: int) -> None:
    for number in range(count - 1):
        raw.send("BEGIN", {"transaction": str(number)})
    raw.send("BEGIN", {"transaction": "last", "receipt": "r"})


def fill_transaction(raw: RawClient, name: str, count: int) -> None:
    raw.send("BEGIN", {"transaction": "t"})
    action = {"destination": f"/topic/{name}", "transaction": "t"}
    raw.write(frame_bytes("SEND", action) * (count - 1))
    # Its RECEIPT comes with COMMIT.
    last = frame_bytes("SEND", {**action, "receipt": "r"})
    raw.write(last + frame_bytes("COMMIT", {"transaction": "t"}))


def open_inboxes(raw: RawClient, name: str, count: int) -> None:
    for number in range(count - 1):
        raw.send("SEND", {"destination": f"/topic/{name}", "reply-to": f"/temp-queue/{number}"})
    request = {"destination": f"/topic/{name}", "reply-to": "/temp-queue/last", "receipt": "r"}
    raw.send("SEND", request)


def subscribe(raw: RawClient, name: str, count: int) -> None:
    frames = (
        frame_bytes("SUBSCRIBE", {"id": str(number), "destination": f"/topic/{name}.{number}"})
        for number in range(count - 1)
    )
    raw.write(b"".join(frames))
    raw.send("SUBSCRIBE", {"id": "last", "destination": f"/topic/{name}", "receipt": "r"})


def send_to_long_name(raw: RawClient, name: str, count: int) -> None:
    raw.send("SEND", {"destination": f"/topic/{name.ljust(count, 'x')}", "receipt": "r"})


def subscribe_to_tokens(raw: RawClient, name: str, count: int) -> None:
    pattern = ".".join([name] + ["x"] * (count - 1))
    raw.send("SUBSCRIBE", {"id": "s", "destination": f"/topic/{pattern}", "receipt": "r"})


@pytest.mark.parametrize(
    ("act", "limit"),
    [
        (send_headers, HEADERS_MAX),
        (send_header_bytes, HEADER_BYTES_MAX),
        (open_transactions, TRANSACTIONS_MAX),
        (fill_transaction, ACTIONS_MAX),
        (open_inboxes, INBOXES_MAX),
        (subscribe, SUBSCRIPTIONS_MAX),
        (send_to_long_name, SUBJECT_BYTES_MAX),
        (subscribe_to_tokens, SUBJECT_TOKENS_MAX),
    ],
)
def test_one_more_than_the_limit_of_a_connection_is_refused(
    connect_raw: ConnectRaw, name: str, act: Callable[[RawClient, str, int], None], limit: int
) -> None:
    other = connect_raw()
    other.login()
    for count, expected in ((limit, "RECEIPT"), (limit + 1, "ERROR")):
        raw = connect_raw()
        raw.login()
        act(raw, name, count)
        assert raw.read().command == expected, count
        raw.close()
    assert other.fence() == []


def declare(raw: RawClient, number: int) -> None:
    raw.send("SEND", {"destination": f"/queue/{number}", "receipt": "r"})


def subscribe_live(raw: RawClient, number: int) -> None:
    raw.send("SUBSCRIBE", {"id": str(number), "destination": f"/topic/{number}", "receipt": "r"})


def bind(raw: RawClient, number: int) -> None:
    headers = {"id": str(number), "ack": "client", "destination": f"/topic/{number}"}
    raw.send("SUBSCRIBE", {**headers, "receipt": "r"})


@pytest.mark.parametrize(
    ("key", "act"),
    [
        ("limits.queues", declare),
        ("limits.subscriptions", subscribe_live),
        ("limits.bindings", bind),
    ],
)
def test_one_more_than_the_limit_of_a_vhost_is_refused(
    start_imori: StartImori,
    connect_raw: ConnectRaw,
    key: str,
    act: Callable[[RawClient, int], None],
) -> None:
    imori = start_imori(settings={key: 5})
    other = connect_raw(imori)
    other.login()
    raw = connect_raw(imori)
    raw.login()
    answers: list[Frame] = []
    for number in range(6):
        act(raw, number)
        answers.append(raw.read())
    assert [answer.command for answer in answers] == ["RECEIPT"] * 5 + ["ERROR"]
    assert answers[-1]["message"] == "resource_error"
    assert raw.read_until_closed() == []
    other.send("SEND", {"destination": "/topic/any", "receipt": "r"})
    assert other.read().command == "RECEIPT"
