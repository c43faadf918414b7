"""A subscriber that settles nothing: prints its number of messages, and waits to be killed.

Run as `python -m harness.hoarder PORT DESTINATION COUNT`.
"""

import sys

from harness.behaviour import IMORI
from harness.broker import Broker
from harness.raw import RawClient


def main(port: int, destination: str, count: int) -> None:
    """Receives `count` messages and keeps them unsettled."""
    with RawClient(Broker("127.0.0.1", port, IMORI)) as client:
        client.login()
        client.send("SUBSCRIBE", {"destination": destination, "id": "s", "ack": "client"})
        for _ in range(count):
            client.read()
        print(count, flush=True)
        client.read_until_closed()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
