"""The broker under test: a fresh Imori process, or a RabbitMQ that is already running."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.behaviour import IMORI, RABBITMQ, Behaviour
from harness.imori import BINARY, Imori, running_imori


@dataclass(frozen=True)
class Broker:
    """A broker's STOMP address, and its behaviour."""

    host: str
    port: int
    behaviour: Behaviour


@contextmanager
def running_broker(folder: Path) -> Iterator[Broker]:
    """Runs the broker selected by the environment; `folder` is for its data and log."""
    if os.environ.get("BROKER") == "rabbitmq":
        port = int(os.environ.get("RABBITMQ_STOMP_PORT", "61613"))
        yield Broker("127.0.0.1", port, RABBITMQ)
        return
    with running_imori(folder) as imori:
        yield broker_of(imori)
        status = imori.stop()
        assert status == 0, f"`{BINARY}` ended with {status} after SIGTERM; see `{imori.log}`"


def broker_of(imori: Imori) -> Broker:
    """Returns the first listener of an Imori as a broker for clients."""
    host, port = imori.addresses[0]
    return Broker(host, port, IMORI)
