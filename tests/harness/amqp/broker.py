"""The broker under test, for AMQP clients: an Imori process, or a RabbitMQ that is already running.

Either can be ended and restarted at the same address.
"""

import os
import subprocess
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from harness.admin import read
from harness.imori import Imori, running_imori

IS_RABBITMQ = os.environ.get("BROKER") == "rabbitmq"


class AmqpBroker(Protocol):
    """A broker with a listener for AMQP 0-9-1."""

    port: int

    @property
    def url(self) -> str:
        """The URL for clients."""

    def restart(self) -> None:
        """Shuts the broker down in an orderly way, and restarts it on the same data and port."""

    def consumers(self) -> int:
        """Returns the current number of consumers."""


class _Imori:
    """Imori processes on one folder, one at a time."""

    def __init__(self, folder: Path, settings: Mapping[str, object]) -> None:
        self.port = 0
        self._folder = folder
        self._settings = settings
        self._stack = ExitStack()
        self._start()

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}/"

    def restart(self) -> None:
        self.end()
        self._start()

    def consumers(self) -> int:
        return sum(queue["consumers"] for queue in read(self._imori, "/api/queues"))

    def end(self) -> None:
        """Ends the process, which must exit with status 0."""
        assert self._imori.stop() == 0, f"see `{self._imori.log}`"
        self._stack.close()

    def kill(self) -> None:
        """Kills the process if it still runs."""
        self._stack.close()

    def _start(self) -> None:
        self._imori: Imori = self._stack.enter_context(
            running_imori(
                self._folder,
                settings=self._settings,
                listen=(f"127.0.0.1:{self.port}",),
                protocol="amqp",
                admin=True,
            )
        )
        self.port = self._imori.addresses[0][1]


class _RabbitMq:
    """A vhost of a RabbitMQ on its default port that obeys `rabbitmqctl`."""

    port = 5672

    def __init__(self, vhost: str | None) -> None:
        self.vhost = vhost or f"test-{uuid.uuid4().hex[:12]}"
        self._is_own = vhost is None
        if self._is_own:
            _rabbitmqctl("add_vhost", self.vhost)
            _rabbitmqctl("set_permissions", "-p", self.vhost, "guest", ".*", ".*", ".*")

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}/{self.vhost.removeprefix('/')}"

    def restart(self) -> None:
        for verb in ("stop_app", "start_app", "await_startup"):
            _rabbitmqctl(verb)

    def consumers(self) -> int:
        listed = ("list_consumers", "-p", self.vhost, "--no-table-headers", "consumer_tag")
        return len(_rabbitmqctl(*listed).splitlines())

    def end(self) -> None:
        """Removes what the tests created."""
        if self._is_own:
            _rabbitmqctl("delete_vhost", self.vhost)


def _rabbitmqctl(*words: str) -> str:
    command = ["rabbitmqctl", "-q", *words]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


@contextmanager
def running_amqp(
    folder: Path, settings: Mapping[str, object] | None = None, vhost: str | None = None
) -> Iterator[AmqpBroker]:
    """Runs the broker selected by the environment; `folder` and `settings` are for an Imori.

    A RabbitMQ gets a vhost of its own, unless the client can only use `vhost`.
    """
    if IS_RABBITMQ:
        rabbitmq = _RabbitMq(vhost)
        yield rabbitmq
        rabbitmq.end()
        return
    imori = _Imori(folder, settings or {})
    try:
        yield imori
        imori.end()
    finally:
        imori.kill()
