"""A cloud host: answers oslo.messaging calls, listens to notifications, and makes calls.

host.py URL NAME

Reads commands from standard input, one JSON object per line, and answers each with one line of
JSON.
"""

import json
import sys
import threading
from typing import Any

import oslo_messaging
from oslo_config import cfg

TOPIC = "compute"


class Plain:
    """Methods without a namespace, of version 1.0."""

    def __init__(self, host: "Host") -> None:
        self.host = host

    def who(self, context: dict[str, Any], **given: Any) -> dict[str, Any]:  # noqa: ANN401
        """Returns the name of the host that answers, and the arguments of the call."""
        self.host.note(f"who {given}")
        return {"host": self.host.name, "given": given, "request": context["request"]}

    def refuse(self, _context: dict[str, Any]) -> None:
        """Raises an error that the caller must receive."""
        raise ValueError("no such instance")

    def wait(self, _context: dict[str, Any]) -> str:
        """Answers once the command `answer` was given."""
        self.host.note("wait")
        self.host.may_answer.wait()
        return self.host.name


class Versioned:
    """Methods with a namespace and version of their own."""

    target = oslo_messaging.Target(namespace="instances", version="2.3")

    def __init__(self, host: "Host") -> None:
        self.host = host

    def who(self, _context: dict[str, Any]) -> str:
        """Returns which of the two methods with this name answers."""
        return f"{self.host.name} of instances"


class Listener:
    """Records each notification."""

    def __init__(self, host: "Host") -> None:
        self.host = host

    def info(self, _context: Any, publisher: str, kind: str, payload: Any, _more: Any) -> None:  # noqa: ANN401
        """A notification of priority `info`."""
        self.host.note(f"info {publisher} {kind} {payload}")

    def error(self, _context: Any, publisher: str, kind: str, payload: Any, _more: Any) -> None:  # noqa: ANN401
        """A notification of priority `error`."""
        self.host.note(f"error {publisher} {kind} {payload}")


class Host:
    """The commands of this program, one per public method."""

    def __init__(self, url: str, name: str) -> None:
        self.name = name
        self.may_answer = threading.Event()
        self._seen: list[str] = []
        conf = cfg.CONF
        conf([], default_config_files=[])
        self._calls = oslo_messaging.get_rpc_transport(
            conf, url=url, allowed_remote_exmods=["builtins"]
        )
        self._notifications = oslo_messaging.get_notification_transport(conf, url=url)
        self._server = oslo_messaging.get_rpc_server(
            self._calls,
            oslo_messaging.Target(topic=TOPIC, server=name),
            [Plain(self), Versioned(self)],
            executor="threading",
        )
        self._server.start()

    def note(self, what: str) -> None:
        """Records an event for `seen`."""
        self._seen.append(what)

    def seen(self) -> list[str]:
        """Returns the events since the last call."""
        seen, self._seen = self._seen, []
        return seen

    def answer(self) -> None:
        """Lets the current and future calls of `wait` return."""
        self.may_answer.set()

    def listen(self, topic: str, pool: str | None = None) -> None:
        """Listens to a topic's notifications, optionally in a pool."""
        oslo_messaging.get_notification_listener(
            self._notifications,
            [oslo_messaging.Target(topic=topic)],
            [Listener(self)],
            executor="threading",
            pool=pool,
        ).start()

    def notify(self, topic: str, priority: str, kind: str, payload: str) -> None:
        """Sends a notification."""
        notifier = oslo_messaging.Notifier(
            self._notifications, self.name, driver="messagingv2", topics=[topic]
        )
        getattr(notifier, priority)({}, kind, payload)

    def call(self, method: str, target: dict[str, Any], given: dict[str, Any]) -> Any:  # noqa: ANN401
        """Calls a method; returns its result, or the error's name and text."""
        try:
            return self._client(target).call({"request": "id"}, method, **given)
        except Exception as error:
            return f"{type(error).__name__}: {error}".splitlines()[0]

    def cast(self, method: str, target: dict[str, Any], given: dict[str, Any]) -> None:
        """Calls a method without waiting for it."""
        self._client(target).cast({"request": "id"}, method, **given)

    def _client(self, target: dict[str, Any]) -> Any:  # noqa: ANN401
        options = {
            key: target.pop(key) for key in ("timeout", "call_monitor_timeout") if key in target
        }
        client = oslo_messaging.get_rpc_client(
            self._calls, oslo_messaging.Target(topic=target.pop("topic", TOPIC))
        )
        return client.prepare(**target, **options)


def main() -> None:
    """Executes commands, several in parallel, until the input ends."""
    _, url, name = sys.argv
    host = Host(url, name)
    writing = threading.Lock()

    def obey(command: dict[str, Any]) -> None:
        answer = getattr(host, command["verb"])(**command["given"])
        with writing:
            print(json.dumps({"id": command["id"], "answer": answer}), flush=True)

    for line in sys.stdin:
        threading.Thread(target=obey, args=(json.loads(line),), daemon=True).start()


if __name__ == "__main__":
    main()
