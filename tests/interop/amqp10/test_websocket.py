"""AMQP 1.0 over WebSocket, with the subprotocol `amqp`."""

import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress

import proton
import pytest
import websocket
from proton.utils import BlockingConnection

from harness.amqp.suite import need
from harness.deadline import DEADLINE_S
from harness.imori import REPOSITORY, Imori, running_imori

INSTALLED = REPOSITORY / ".tools/amqp10"
PROGRAM_S = 60
SASL_HEADER = b"AMQP\x03\x01\x00\x00"
AMQP_HEADER = b"AMQP\x00\x01\x00\x00"
# sasl-init: PLAIN, guest and guest; open: container `c`.
SASL_INIT = bytes.fromhex("0000002302010000005341c01602a305504c41494ea00c006775657374006775657374")
OPEN = bytes.fromhex("0000001102000000005310c00401a10163")
# More than four of the broker's frames can hold.
LARGE_BYTES = 500_000


@pytest.fixture(scope="module")
def imori(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    """A broker that listens for AMQP, also over WebSocket."""
    folder = tmp_path_factory.mktemp("websocket")
    with running_imori(folder, protocol="amqp", websocket="127.0.0.1:0") as imori:
        yield imori
        assert imori.stop() == 0


def connect(imori: Imori) -> websocket.WebSocket:
    """Opens a WebSocket for AMQP."""
    assert imori.websocket is not None
    host, port = imori.websocket
    client = websocket.create_connection(
        f"ws://{host}:{port}/", subprotocols=["amqp"], timeout=DEADLINE_S
    )
    assert client.subprotocol == "amqp"
    return client


def test_a_client_logs_in_over_a_websocket(imori: Imori) -> None:
    client = connect(imori)
    client.send_binary(SASL_HEADER + SASL_INIT)
    answer = b""
    while b"\x00\x53\x44" not in answer:
        answer += client.recv_data()[1]
    assert answer.startswith(SASL_HEADER)
    client.send_binary(AMQP_HEADER + OPEN)
    while b"\x00\x53\x10" not in answer:
        answer += client.recv_data()[1]
    assert AMQP_HEADER in answer
    client.close()


def relay(imori: Imori, listener: socket.socket) -> None:
    """Relays one TCP client over a WebSocket, until the client closes its connection."""
    stream, _ = listener.accept()
    client = connect(imori)

    def back() -> None:
        # The broker closes the connection after its last frame.
        with suppress(websocket.WebSocketConnectionClosedException):
            while data := client.recv_data()[1]:
                stream.sendall(data)

    answers = threading.Thread(target=back)
    answers.start()
    while data := stream.recv(65_536):
        client.send_binary(data)
    answers.join(DEADLINE_S)
    stream.close()
    client.close()


def test_a_large_message_goes_in_several_frames(imori: Imori) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        carrier = threading.Thread(target=relay, args=(imori, listener))
        carrier.start()
        host, port = listener.getsockname()
        connection = BlockingConnection(
            f"{host}:{port}",
            timeout=DEADLINE_S,
            user="guest",
            password="guest",
            allowed_mechs="PLAIN",
        )
        sender = connection.create_sender("/queues/large")
        body = bytes(range(250)) * (LARGE_BYTES // 250)
        sender.send(proton.Message(body=body, durable=True))
        receiver = connection.create_receiver("/queues/large")
        received = receiver.receive(DEADLINE_S)
        assert isinstance(received.body, bytes | memoryview)
        assert bytes(received.body) == body
        receiver.accept()
        connection.close()
        carrier.join(DEADLINE_S)
        assert not carrier.is_alive()


def test_qpid_jms_sends_and_receives_over_a_websocket(imori: Imori) -> None:
    need("java", INSTALLED / "patterns.sha256")
    assert imori.websocket is not None
    host, port = imori.websocket
    jars = f"{INSTALLED / 'patterns'}:{INSTALLED / 'patterns-jars'}/*"
    ran = subprocess.run(
        ["java", "-cp", jars, "OneQueueEach", f"amqpws://{host}:{port}/"],
        capture_output=True,
        text=True,
        timeout=PROGRAM_S,
        check=False,
    )
    assert "tokyo has order 6" in ran.stdout, ran.stderr
