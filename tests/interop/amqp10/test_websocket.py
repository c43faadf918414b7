"""AMQP 1.0 over WebSocket, as its subprotocol `amqp`."""

from pathlib import Path

import websocket

from harness.deadline import DEADLINE_S
from harness.imori import running_imori

SASL_HEADER = b"AMQP\x03\x01\x00\x00"
AMQP_HEADER = b"AMQP\x00\x01\x00\x00"
# sasl-init: PLAIN, guest and guest; open: container `c`.
SASL_INIT = bytes.fromhex("0000002302010000005341c01602a305504c41494ea00c006775657374006775657374")
OPEN = bytes.fromhex("0000001102000000005310c00401a10163")


def test_a_client_logs_in_over_a_websocket(tmp_path: Path) -> None:
    with running_imori(tmp_path, protocol="amqp", websocket="127.0.0.1:0") as imori:
        assert imori.websocket is not None
        host, port = imori.websocket
        client = websocket.create_connection(
            f"ws://{host}:{port}/", subprotocols=["amqp"], timeout=DEADLINE_S
        )
        assert client.subprotocol == "amqp"
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
