"""Rights as seen by client libraries (SECURITY AUTH-01, AUTH-02, AUTH-15)."""

import asyncio
import queue
from pathlib import Path

import nats
import pika
import pika.exceptions
import stomp
from stomp.utils import Frame

from harness.admin import ask
from harness.deadline import DEADLINE_S
from harness.imori import Imori, running_imori

ALL = {"configure": ".*", "write": ".*", "read": ".*"}
NAME, PASSWORD = "joe", "secret"

# A permission, a topic permission, and whether a client may publish to `a.b` and subscribe to `a.#`
# in `amq.topic`.
ROWS: list[tuple[dict[str, str], dict[str, str], bool, bool]] = [
    ({}, {}, True, True),
    ({"write": "^amq[.](default|gen)"}, {}, False, True),
    ({"read": "^(q|amq[.]gen)"}, {}, True, False),
    ({"write": "^(amq[.]|q)", "read": "topic$"}, {}, True, True),
    ({}, {"write": "^a[.]", "read": "^b"}, True, False),
    ({}, {"write": "^{username}$", "read": "^a[.]#$"}, False, True),
]


def test_every_protocol_decides_by_the_same_table(tmp_path: Path) -> None:
    with running_imori(tmp_path, admin=True, nats=True, amqp=True) as imori:
        put(imori, f"/api/users/{NAME}", {"password": PASSWORD, "tags": ""})
        for row, (permission, topic, publishes, subscribes) in enumerate(ROWS):
            put(imori, f"/api/permissions/%2F/{NAME}", {**ALL, **permission})
            path = f"/api/topic-permissions/%2F/{NAME}"
            if topic:
                put(imori, path, {"exchange": "amq.topic", **topic})
            for act in (by_stomp, by_nats, by_amqp):
                told = (row, act.__name__)
                assert act(imori, False) is publishes, told
                assert act(imori, True) is subscribes, told
            if topic:
                assert ask(imori, path, method="DELETE").status == 204
        assert imori.stop() == 0


def put(imori: Imori, path: str, body: object) -> None:
    assert ask(imori, path, method="PUT", body=body).status in (201, 204)


class Listener(stomp.ConnectionListener):  # type: ignore[misc]
    """Collects receipts and errors."""

    def __init__(self) -> None:
        self.answers: queue.Queue[bool] = queue.Queue()

    def on_receipt(self, frame: Frame) -> None:
        self.answers.put(True)

    def on_error(self, frame: Frame) -> None:
        assert frame.headers["message"] == "access_refused", frame
        self.answers.put(False)


def by_stomp(imori: Imori, subscribes: bool) -> bool:
    """Returns whether stomp.py is allowed; an ERROR ends its connection."""
    listener = Listener()
    connection = stomp.Connection12([imori.addresses[0]], reconnect_attempts_max=1)
    connection.set_listener("", listener)
    connection.connect(NAME, PASSWORD, wait=True, headers={"host": "/"})
    if subscribes:
        connection.subscribe("/topic/a.#", "1", headers={"receipt": "r"})
    else:
        connection.send("/topic/a.b", "x", headers={"receipt": "r"})
    answer = listener.answers.get(timeout=DEADLINE_S)
    if answer:
        connection.disconnect()
    return answer


def by_nats(imori: Imori, subscribes: bool) -> bool:
    """Returns whether nats-py is allowed; its connection continues either way."""

    async def act() -> bool:
        errors: list[str] = []

        async def failed(error: Exception) -> None:
            errors.append(str(error))

        assert imori.nats is not None
        host, port = imori.nats
        client = await nats.connect(
            f"nats://{host}:{port}", user=NAME, password=PASSWORD, error_cb=failed
        )
        if subscribes:
            await client.subscribe("a.>")
        else:
            await client.publish("a.b", b"x")
        for _ in range(2):
            await client.flush(int(DEADLINE_S))
        assert client.is_connected
        await client.close()
        assert all("permissions violation" in error.lower() for error in errors), errors
        return not errors

    return asyncio.run(act())


def by_amqp(imori: Imori, subscribes: bool) -> bool:
    """Returns whether pika is allowed; otherwise its channel ends, but not its connection."""
    assert imori.amqp is not None
    host, port = imori.amqp
    credentials = pika.PlainCredentials(NAME, PASSWORD)
    with pika.BlockingConnection(
        pika.ConnectionParameters(host, port, "/", credentials)
    ) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        try:
            if subscribes:
                own = channel.queue_declare("", exclusive=True).method.queue
                channel.queue_bind(own, "amq.topic", "a.#")
            else:
                channel.basic_publish("amq.topic", "a.b", b"x")
        except pika.exceptions.ChannelClosedByBroker as error:
            code, text = error.reply_code, error.reply_text
        else:
            return True
        assert (code, connection.is_open) == (403, True)
        assert text.endswith(f"in vhost '/' refused for user '{NAME}'")
        return False
