"""A responder process: reads requests from a queue, and answers each n with n + 1.

Run as `python -m harness.responder PORT DESTINATION COUNT`; it ends after COUNT replies.
"""

import sys

from harness.behaviour import IMORI
from harness.broker import Broker
from harness.frame import frame_bytes
from harness.raw import RawClient


def main(port: int, destination: str, count: int) -> None:
    """Answers `count` requests."""
    with RawClient(Broker("127.0.0.1", port, IMORI)) as client:
        client.login()
        client.send("SUBSCRIBE", {"destination": destination, "id": "s"})
        for _ in range(count):
            request = client.read()
            body = str(int(request.body) + 1).encode()
            client.write(frame_bytes("SEND", {"destination": request["reply-to"]}, body))
        client.send("DISCONNECT", {"receipt": "bye"})
        client.read_until_closed()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
