"""STOMP clients in other languages, and clients written for another broker."""

import shutil
import subprocess
from pathlib import Path

import pytest

from harness.broker import Broker, broker_of
from harness.client import Client
from harness.fixtures import Connect, StartImori
from harness.frame import BrokerError
from harness.process import running

HERE = Path(__file__).parent
GO = HERE.parents[1] / ".tools/nats/stomp-go"


def has_net_stomp() -> bool:
    if shutil.which("perl") is None:
        return False
    probe = subprocess.run(["perl", "-MNet::Stomp", "-e", "1"], capture_output=True, check=False)
    return probe.returncode == 0


@pytest.mark.skipif(not GO.exists(), reason="run `tests/interop/nats/build.sh`, with Go")
def test_go_stomp(broker: Broker, name: str) -> None:
    with running([GO, f"{broker.host}:{broker.port}", name], HERE) as client:
        assert client.wait() == 0


@pytest.mark.skipif(not has_net_stomp(), reason="install `libnet-stomp-perl`")
def test_net_stomp(broker: Broker, name: str) -> None:
    with running(["perl", "conversation.pl", broker.port, name], HERE / "perl") as client:
        assert client.wait() == 0


def test_booleans_of_python_are_understood(connect: Connect, name: str) -> None:
    client = connect()
    headers = {"durable": True, "auto-delete": False, "exclusive": False}
    client.subscribe(f"/queue/{name}", ack="client-individual", headers=headers)
    client.send(f"/queue/{name}", b"x", {"persistent": True})
    message = client.receive()
    client.nack(message, requeue=True)
    assert client.receive().body == b"x"


@pytest.mark.parametrize(
    "header", ["activemq.subscriptionName", "durable-subscription-name", "durable-subscriber-name"]
)
def test_a_subscription_outlives_its_client_by_name(
    start_imori: StartImori, header: str, name: str
) -> None:
    imori = start_imori()

    def connected(client_id: str) -> Client:
        return Client(broker_of(imori), headers={"client-id": client_id})

    topic, named = f"/topic/{name}", {header: "reader"}
    first = connected("alice")
    first.subscribe(topic, "1", headers=named)
    first.disconnect()
    other = connected("bob")
    other.subscribe(topic, "1", headers=named)
    other.send(topic, b"kept for alice")
    assert other.receive().body == b"kept for alice"
    again = connected("alice")
    # The subscription's id may differ; its name and the client's count identify it.
    again.subscribe(topic, "2", headers=named)
    assert again.receive().body == b"kept for alice"
    again.unsubscribe("2", headers=named)
    again.disconnect()
    other.send(topic, b"kept for nobody")
    last = connected("alice")
    last.subscribe(topic, "3", headers=named)
    assert last.messages_until_now() == []


@pytest.mark.parametrize(
    ("destination", "headers", "way_out"),
    [
        ("/queue/x", {"selector": "colour = 'red' AND"}, b"character 19: a value is expected"),
        ("/topic/x", {"browser": "true"}, b"`browser` is for queues"),
        ("/topic/x", {"activemq.subscriptionName": "n"}, b"`client-id` in CONNECT"),
        ("/topic/x", {"activemq.noLocal": "true"}, b"leave it out"),
        ("/queue/x.>", {}, b"`%3E`"),
        ("/queue/Consumer.A.VirtualTopic.x", {}, b"`x-queue-name`"),
        ("/queue/x?consumer.prefetchSize=1", {}, b"`prefetch-count`"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_only_activemq_knows_is_refused_with_the_way_out(
    start_imori: StartImori, destination: str, headers: dict[str, str], way_out: bytes
) -> None:
    client = Client(broker_of(start_imori()))
    with pytest.raises(BrokerError) as refusal:
        client.subscribe(destination, headers=headers)
    assert way_out in refusal.value.frame.body


def test_an_exclusive_consumer_of_activemq_is_alone(start_imori: StartImori, name: str) -> None:
    imori = start_imori()
    queue = f"/queue/{name}"
    headers = {
        "activemq.exclusive": "true",
        "activemq.prefetchSize": "10",
        "activemq.priority": "5",
    }
    first, second = Client(broker_of(imori)), Client(broker_of(imori))
    for client in (first, second):
        client.subscribe(queue, ack="client-individual", headers=headers)
    for number in range(4):
        first.send(queue, str(number).encode())
    assert first.receive_bodies(4) == [b"0", b"1", b"2", b"3"]
    assert second.messages_until_now() == []
