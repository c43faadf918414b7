"""AMQP 1.0 transactions with python-qpid-proton: sends and settlements in one discharge."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from proton import Delivery, Message
from proton.handlers import TransactionHandler
from proton.utils import BlockingConnection

from harness.admin import ask, clear, read
from harness.deadline import DEADLINE_S, wait_for
from harness.imori import Imori, running_imori

# One broker serves them all.
pytestmark = pytest.mark.xdist_group("amqp10_transactions")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    with running_imori(tmp_path_factory.mktemp("broker"), amqp=True, admin=True) as running:
        yield running
        assert running.stop() == 0


@pytest.fixture
def imori(broker: Imori) -> Iterator[Imori]:
    """A broker with the queues `one` and `two`."""
    for queue in ["one", "two"]:
        declare(broker, queue)
    yield broker
    clear(broker)


def declare(imori: Imori, queue: str, arguments: dict[str, Any] | None = None) -> None:
    body = {"durable": True, "arguments": arguments or {}}
    answer = ask(imori, f"/api/queues/%2F/{queue}", method="PUT", body=body)
    assert answer.status == 201, answer


def counts(imori: Imori, queue: str) -> tuple[int, int]:
    """Returns the numbers of ready and of unsettled messages in a queue."""
    state = read(imori, f"/v1/queues/%2F/{queue}")
    return state["ready"], state["unsettled"]


class Discharges(TransactionHandler):
    """Records the outcomes of declarations and discharges, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []
        self.reasons: list[str] = []

    def on_transaction_declared(self, _: Any) -> None:  # noqa: ANN401
        self.told.append("declared")

    def on_transaction_declare_failed(self, _: Any) -> None:  # noqa: ANN401
        self.told.append("not declared")

    def on_transaction_committed(self, _: Any) -> None:  # noqa: ANN401
        self.told.append("committed")

    def on_transaction_aborted(self, _: Any) -> None:  # noqa: ANN401
        self.told.append("rolled back")

    def on_transaction_commit_failed(self, event: Any) -> None:  # noqa: ANN401
        self.told.append("failed")
        condition = event.delivery.remote.condition
        self.reasons.append(f"{condition.name}: {condition.description}")


class Client:
    """A connection with one transaction at a time."""

    def __init__(self, imori: Imori) -> None:
        assert imori.amqp is not None
        host, port = imori.amqp
        self.connection = BlockingConnection(
            f"amqp://{host}:{port}",
            timeout=DEADLINE_S,
            user="guest",
            password="guest",
            allowed_mechs="PLAIN",
        )
        self.discharges = Discharges()
        self.transaction: Any = None
        self.receivers: dict[str, Any] = {}
        self.senders: dict[str, Any] = {}

    def declare(self, *, settles_before: bool = False) -> None:
        container: Any = self.connection.container
        self.transaction = container.declare_transaction(
            self.connection.conn, self.discharges, settle_before_discharge=settles_before
        )
        self._await("declared")

    def send(self, queue: str, text: str) -> Any:  # noqa: ANN401
        """Sends within the transaction; returns the delivery once it has an outcome."""
        if queue not in self.senders:
            self.senders[queue] = self.connection.create_sender(queue)
        delivery = self.transaction.send(self.senders[queue].link, Message(text, durable=True))
        self.connection.wait(lambda: delivery.remote_state != 0)
        return delivery

    def receive(self, queue: str) -> tuple[str, Any]:
        """Returns the next message of a queue, and its delivery."""
        if queue not in self.receivers:
            self.receivers[queue] = self.connection.create_receiver(queue, credit=10)
        receiver = self.receivers[queue]
        message = receiver.receive(timeout=DEADLINE_S)
        return message.body, receiver.fetcher.unsettled.pop()

    def commit(self) -> str:
        self.transaction.commit()
        return self._await_end()

    def roll_back(self) -> str:
        self.transaction.abort()
        return self._await_end()

    def _await(self, word: str) -> None:
        self.connection.wait(lambda: bool(self.discharges.told))
        assert self.discharges.told.pop(0) == word

    def _await_end(self) -> str:
        self.connection.wait(lambda: bool(self.discharges.told))
        return self.discharges.told.pop(0)


@contextmanager
def client(imori: Imori) -> Iterator[Client]:
    made = Client(imori)
    try:
        yield made
    finally:
        made.connection.close()


def fill(imori: Imori, queue: str, count: int) -> None:
    with client(imori) as other:
        sender = other.connection.create_sender(queue)
        for number in range(count):
            sender.send(Message(str(number), durable=True))


def test_what_is_sent_is_there_with_the_commit(imori: Imori) -> None:
    with client(imori) as one:
        one.declare()
        for queue in ["one", "two", "made"]:
            delivery = one.send(queue, "x")
            # A transactional state with the provisional outcome.
            assert delivery.remote_state == 0x34
            assert delivery.settled
        assert [counts(imori, queue) for queue in ["one", "two", "made"]] == [(0, 0)] * 3
        assert one.commit() == "committed"
        assert [counts(imori, queue) for queue in ["one", "two", "made"]] == [(1, 0)] * 3
        one.declare()
        one.send("one", "y")
        assert one.roll_back() == "rolled back"
        assert counts(imori, "one") == (1, 0)


def test_a_commit_waits_where_a_message_of_it_would(imori: Imori) -> None:
    def limit(value: int) -> None:
        path = "/api/vhost-limits/%2F/max-publish-rate"
        assert ask(imori, path, method="PUT", body={"value": value}).status == 204

    limit(1)
    with client(imori) as one, ThreadPoolExecutor() as thread:
        one.declare()
        for number in range(100):
            one.send("one", str(number))
        assert one.commit() == "committed", "what goes beyond the rate is owed from now on"
        one.declare()
        one.send("two", "x")
        committed = thread.submit(one.commit)
        wait_for(
            lambda: "imori_publishers_rate_limited_total 0\n" not in ask(imori, "/metrics").body
        )
        assert counts(imori, "two") == (0, 0)
        limit(-1)
        assert committed.result(DEADLINE_S) == "committed"
        assert counts(imori, "two") == (1, 0)


@pytest.mark.parametrize("settles_before", [False, True])
def test_what_is_received_is_gone_with_the_commit(imori: Imori, settles_before: bool) -> None:
    fill(imori, "one", 5)
    with client(imori) as one:
        one.declare(settles_before=settles_before)
        for number in range(3):
            text, delivery = one.receive("one")
            assert text == str(number)
            one.transaction.accept(delivery)
        one.send("two", "from one to two")
        assert counts(imori, "one") == (0, 5)
        assert one.commit() == "committed"
        assert counts(imori, "one") == (0, 2)
        assert counts(imori, "two") == (1, 0)
    wait_for(lambda: counts(imori, "one") == (2, 0))


@pytest.mark.parametrize("settles_before", [False, True])
def test_what_is_received_comes_back_after_a_rollback(imori: Imori, settles_before: bool) -> None:
    fill(imori, "one", 2)
    with client(imori) as one:
        one.declare(settles_before=settles_before)
        _, delivery = one.receive("one")
        one.transaction.accept(delivery)
        one.send("two", "never")
        assert one.roll_back() == "rolled back"
        assert counts(imori, "two") == (0, 0)
        one.receivers.pop("one").close()
        wait_for(lambda: counts(imori, "one") == (2, 0))
        text, delivery = one.receive("one")
        assert text == "0", "it is in its place again"
        delivery.update(Delivery.ACCEPTED)
        delivery.settle()


def test_a_connection_that_dies_rolls_back(imori: Imori) -> None:
    fill(imori, "one", 1)
    one = Client(imori)
    one.declare(settles_before=True)
    _, delivery = one.receive("one")
    one.transaction.accept(delivery)
    one.send("two", "never")
    one.connection.close()
    wait_for(lambda: counts(imori, "one") == (1, 0))
    assert counts(imori, "two") == (0, 0)


def test_a_coordinator_that_is_detached_rolls_back(imori: Imori) -> None:
    fill(imori, "one", 1)
    with client(imori) as one:
        one.declare(settles_before=True)
        _, delivery = one.receive("one")
        one.transaction.accept(delivery)
        one.send("two", "never")
        link = one.transaction.txn_ctrl
        link.close()
        one.connection.wait(lambda: link.state & 32 != 0)
        text, delivery = one.receive("one")
        assert text == "0", "it is given out again"
        assert counts(imori, "two") == (0, 0)


def test_a_commit_that_a_queue_refuses_does_nothing(imori: Imori) -> None:
    declare(imori, "full", {"x-max-length": 1, "x-overflow": "reject-publish"})
    fill(imori, "full", 1)
    fill(imori, "one", 1)
    with client(imori) as one:
        one.declare(settles_before=True)
        _, delivery = one.receive("one")
        one.transaction.accept(delivery)
        one.send("two", "never")
        one.send("full", "too much")
        assert one.commit() == "failed"
        assert one.discharges.reasons == [
            "amqp:transaction:rollback: queue `full` is at its length limit; "
            "send again when it is shorter"
        ]
        assert counts(imori, "two") == (0, 0)
        text, delivery = one.receive("one")
        assert text == "0"


def test_many_transactions_hold_for_several_links(imori: Imori) -> None:
    fill(imori, "one", 20)
    with client(imori) as one:
        for number in range(20):
            one.declare(settles_before=number % 2 == 0)
            text, delivery = one.receive("one")
            one.transaction.accept(delivery)
            one.send("two", text)
            assert one.commit() == "committed"
        assert counts(imori, "one") == (0, 0)
        assert [one.receive("two")[0] for _ in range(20)] == [str(number) for number in range(20)]


def test_there_are_so_many_transactions_at_most(imori: Imori) -> None:
    # SECURITY LIM-10.
    with client(imori) as one:
        for _ in range(64):
            one.declare()
        container: Any = one.connection.container
        container.declare_transaction(one.connection.conn, one.discharges)
        one.connection.wait(lambda: bool(one.discharges.told))
        assert one.discharges.told == ["not declared"]


def test_a_large_message_of_a_transaction_comes_whole(imori: Imori) -> None:
    with client(imori) as one:
        one.declare()
        one.send("one", "x" * 1_000_000)
        assert counts(imori, "one") == (0, 0)
        assert one.commit() == "committed"
        assert len(one.receive("one")[0]) == 1_000_000
