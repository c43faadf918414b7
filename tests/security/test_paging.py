"""Queues longer than their memory: order, and survival of a kill."""

from pathlib import Path

from harness.behaviour import IMORI
from harness.broker import Broker
from harness.frame import frame_bytes
from harness.imori import Imori, running_imori
from harness.raw import RawClient

COUNT = 6_000
SETTINGS = {"limits.queue_memory_bytes": "64KiB", "journal.files": 2}
BODY = b"x" * 2_000


def client(imori: Imori) -> RawClient:
    """Connects and logs in."""
    host, port = imori.addresses[0]
    raw = RawClient(Broker(host, port, IMORI))
    raw.login()
    return raw


def publish(raw: RawClient) -> None:
    """Sends numbered persistent messages, and waits until they are on disk."""
    headers = {"destination": "/queue/long", "persistent": "true"}
    for number in range(COUNT):
        raw.write(frame_bytes("SEND", headers, b"%d " % number + BODY))
    raw.send("SEND", headers | {"receipt": "all"}, b"-1 ")
    assert raw.read().headers["imori-level"] == "disk"


def take(raw: RawClient, count: int) -> list[int]:
    """Accepts `count` messages out of order; returns their numbers in order of arrival."""
    headers = {"id": "s", "destination": "/queue/long", "ack": "client-individual"}
    raw.send("SUBSCRIBE", headers | {"prefetch-count": "100"})
    numbers: list[int] = []
    late: list[str] = []
    while len(numbers) < count:
        message = raw.read()
        assert message.command == "MESSAGE"
        numbers.append(int(message.body.split(b" ")[0]))
        late.append(message["ack"])
        if len(late) == 50 or len(numbers) == count:
            for ack in late[::2] + late[1::2]:
                raw.write(frame_bytes("ACK", {"id": ack}))
            late.clear()
    raw.send("DISCONNECT", {"receipt": "bye"})
    while raw.read().command != "RECEIPT":
        pass
    return numbers


def test_a_queue_that_is_on_disk_keeps_its_order_across_kills(tmp_path: Path) -> None:
    numbers: list[int] = []
    with running_imori(tmp_path, settings=SETTINGS) as imori:
        with client(imori) as raw:
            publish(raw)
        assert list((tmp_path / "data/segments").glob("segment-*")), "it is on disk"
        with client(imori) as raw:
            numbers += take(raw, COUNT // 3)
        imori.process.kill()
    with running_imori(tmp_path, settings=SETTINGS) as imori:
        with client(imori) as raw:
            numbers += take(raw, COUNT // 3)
        assert imori.stop() == 0
    with running_imori(tmp_path, settings=SETTINGS) as imori, client(imori) as raw:
        numbers += take(raw, COUNT + 1 - 2 * (COUNT // 3))
    assert numbers == [*range(COUNT), -1]
