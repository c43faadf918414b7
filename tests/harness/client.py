"""stomp.py with a mailbox: tests wait for frames, never for time to pass.

Unless stated otherwise, a method requests a receipt and waits for it, so that its effect is in
place when it returns.
"""

import itertools
import threading
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import stomp

from harness.broker import Broker
from harness.deadline import DEADLINE_S
from harness.frame import BrokerError, ConnectionClosedError, Frame

T = TypeVar("T")

_CONNECTIONS = {
    "1.0": stomp.StompConnection10,
    "1.1": stomp.StompConnection11,
    "1.2": stomp.StompConnection12,
}


class Client:
    """One logged-in stomp.py connection."""

    def __init__(
        self,
        broker: Broker,
        *,
        version: str = "1.2",
        login: str | None = "guest",
        passcode: str | None = "guest",
        vhost: str = "/",
        heartbeats: tuple[int, int] = (0, 0),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.version = version
        options: dict[str, Any] = {"reconnect_attempts_max": 1, "auto_decode": False}
        if version != "1.0":
            options |= {"vhost": vhost, "heartbeats": heartbeats}
        self._stomp = _CONNECTIONS[version]([(broker.host, broker.port)], **options)
        self._mail = _Mailbox()
        self._receipts = (f"r{number}" for number in itertools.count())
        self._stomp.set_listener("mailbox", self._mail)
        # stomp.py sends CONNECT at once, and reads in a thread of its own.
        self._stomp.connect(login, passcode, wait=False, headers=dict(headers or {}))
        try:
            self.connected = self._mail.take(self._mail.connected)
        except BaseException:
            self.kill()
            raise

    # Messages

    def send(
        self, destination: str, body: bytes = b"", headers: Mapping[str, object] | None = None
    ) -> None:
        """Sends a message and waits for its receipt."""
        receipt = next(self._receipts)
        self.post(destination, body, {**(headers or {}), "receipt": receipt})
        self._mail.take_receipt(receipt)

    def post(
        self, destination: str, body: bytes = b"", headers: Mapping[str, object] | None = None
    ) -> None:
        """Sends a message without waiting for a receipt."""
        self._stomp.send(destination, body, headers=dict(headers or {}))

    def receive(self) -> Frame:
        """Returns the next MESSAGE."""
        return self._mail.take(self._mail.messages)

    def receive_bodies(self, count: int) -> list[bytes]:
        """Returns the bodies of the next `count` messages."""
        return [self.receive().body for _ in range(count)]

    def messages_until_now(self) -> list[Frame]:
        """Returns the messages that arrive before one that this client now sends to itself.

        This lets a test assert that nothing arrived, without a time-out.
        """
        fence = f"fence.{uuid.uuid4().hex}"
        self.subscribe(f"/topic/{fence}", fence)
        self.send(f"/topic/{fence}", b"fence")
        frames: list[Frame] = []
        while (frame := self.receive()).headers.get("subscription") != fence:
            frames.append(frame)
        self.unsubscribe(fence)
        return frames

    # Subscriptions and settlement

    def subscribe(
        self,
        destination: str,
        subscription: str | None = "s",
        *,
        ack: str = "auto",
        headers: Mapping[str, object] | None = None,
    ) -> None:
        """Subscribes and waits for the receipt."""
        self._with_receipt(
            lambda extra: self._stomp.subscribe(
                destination, id=subscription, ack=ack, headers={**(headers or {}), **extra}
            )
        )

    def unsubscribe(self, subscription: str, headers: Mapping[str, object] | None = None) -> None:
        """Unsubscribes and waits for the receipt."""
        self._with_receipt(
            lambda extra: self._stomp.unsubscribe(
                id=subscription, headers={**(headers or {}), **extra}
            )
        )

    def ack(self, message: Frame, *, transaction: str | None = None) -> None:
        """Accepts `message` and waits for the receipt, which in a transaction comes with COMMIT."""
        if transaction is not None:
            self._stomp.ack(*self._settle_id(message), transaction=transaction)
            return
        receipt = next(self._receipts)
        self._stomp.ack(*self._settle_id(message), receipt=receipt)
        self._mail.take_receipt(receipt)

    def ack_without_receipt(self, message: Frame) -> None:
        """Accepts `message` without waiting for a receipt."""
        self._stomp.ack(*self._settle_id(message))

    def nack(
        self, message: Frame, *, requeue: bool | None = None, transaction: str | None = None
    ) -> None:
        """Returns or rejects `message`; outside a transaction, waits for the receipt."""
        extra = {} if requeue is None else {"requeue": str(requeue).lower()}
        identity = self._settle_id(message)
        if transaction is not None:
            self._stomp.nack(*identity, transaction=transaction, **extra)
            return
        receipt = next(self._receipts)
        self._stomp.nack(*identity, receipt=receipt, **extra)
        self._mail.take_receipt(receipt)

    def _settle_id(self, message: Frame) -> tuple[str, ...]:
        if self.version == "1.2":
            return (message["ack"],)
        if self.version == "1.1":
            return (message["message-id"], message["subscription"])
        return (message["message-id"],)

    # Transactions

    def begin(self, transaction: str) -> None:
        """Opens a transaction."""
        self._with_receipt(lambda extra: self._stomp.begin(transaction, headers=extra))

    def commit(self, transaction: str) -> None:
        """Applies a transaction."""
        self._with_receipt(lambda extra: self._stomp.commit(transaction, headers=extra))

    def abort(self, transaction: str) -> None:
        """Aborts a transaction."""
        self._with_receipt(lambda extra: self._stomp.abort(transaction, headers=extra))

    # The connection

    def command(
        self, name: str, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> None:
        """Sends any frame through stomp.py's encoder and waits for the receipt."""
        self._with_receipt(
            lambda extra: self._stomp.send_frame(name, {**(headers or {}), **extra}, body)
        )

    def wait_heartbeats(self, count: int) -> None:
        """Returns once the broker has sent `count` heart-beats."""
        self._mail.wait(lambda: self._mail.heartbeats >= count or None)

    def wait_error(self) -> Frame:
        """Returns the next ERROR."""
        return self._mail.wait(lambda: self._mail.errors.popleft() if self._mail.errors else None)

    def wait_closed(self) -> None:
        """Returns once the connection has ended."""
        self._mail.wait(lambda: self._mail.is_closed or None)

    def disconnect(self) -> None:
        """Sends DISCONNECT with a receipt, and waits for the receipt and the close."""
        if not self._mail.is_closed:
            receipt = next(self._receipts)
            self._stomp.disconnect(receipt=receipt)
            self._mail.wait(lambda: receipt in self._mail.receipts or None)
            self.wait_closed()

    def kill(self) -> None:
        """Drops the connection without DISCONNECT."""
        self._stomp.transport.disconnect_socket()

    def _with_receipt(self, act: Callable[[dict[str, str]], None]) -> None:
        receipt = next(self._receipts)
        act({"receipt": receipt})
        self._mail.take_receipt(receipt)


class _Mailbox:
    """The listener: sorts the frames that stomp.py's thread reads, and wakes waiting threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.connected: deque[Frame] = deque()
        self.messages: deque[Frame] = deque()
        self.errors: deque[Frame] = deque()
        self.receipts: set[str] = set()
        self.heartbeats = 0
        self.is_closed = False

    def take(self, box: deque[Frame]) -> Frame:
        """Returns the oldest frame of `box`; raises on an ERROR or the end."""
        return self._wait_unless_broken(lambda: box.popleft() if box else None)

    def take_receipt(self, receipt: str) -> None:
        """Returns once `receipt` has arrived; raises on an ERROR or the end."""
        self._wait_unless_broken(lambda: receipt in self.receipts or None)

    def wait(self, find: Callable[[], T | None]) -> T:
        """Returns the result of `find` as soon as it has one."""
        with self._changed:
            found = self._changed.wait_for(find, DEADLINE_S)
        assert found is not None, f"nothing came within {DEADLINE_S} s"
        return found

    def _wait_unless_broken(self, find: Callable[[], T | None]) -> T:
        def find_or_raise() -> T | None:
            if self.errors:
                raise BrokerError(self.errors.popleft())
            found = find()
            if found is None and self.is_closed:
                raise ConnectionClosedError("the broker closed the connection")
            return found

        return self.wait(find_or_raise)

    def on_connecting(self, address: tuple[str, int]) -> None:
        """Called when the socket is open."""

    def on_before_message(self, frame: Any) -> None:  # noqa: ANN401
        """Called before `on_message`."""

    def on_connected(self, frame: Any) -> None:  # noqa: ANN401
        """Called at CONNECTED."""
        self._put(self.connected, frame)

    def on_message(self, frame: Any) -> None:  # noqa: ANN401
        """Called at MESSAGE."""
        self._put(self.messages, frame)

    def on_error(self, frame: Any) -> None:  # noqa: ANN401
        """Called at ERROR."""
        self._put(self.errors, frame)

    def on_receipt(self, frame: Any) -> None:  # noqa: ANN401
        """Called at RECEIPT."""
        with self._changed:
            self.receipts.add(frame.headers["receipt-id"])
            self._changed.notify_all()

    def on_heartbeat(self) -> None:
        """Called at each heart-beat."""
        with self._changed:
            self.heartbeats += 1
            self._changed.notify_all()

    def on_heartbeat_timeout(self) -> None:
        """Called when the broker fell silent, before the connection ends."""

    def on_disconnected(self) -> None:
        """Called at the end of the connection."""
        with self._changed:
            self.is_closed = True
            self._changed.notify_all()

    def _put(self, box: deque[Frame], frame: Any) -> None:  # noqa: ANN401
        with self._changed:
            box.append(Frame(frame.cmd, dict(frame.headers), bytes(frame.body or b"")))
            self._changed.notify_all()
