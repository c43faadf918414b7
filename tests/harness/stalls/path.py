"""A TCP proxy that can be stopped to cut the network: `python -m harness.stalls.path PORT…`.

For each port, it prints the port on which it listens, one per line.
"""

from __future__ import annotations

import socket
import sys
import threading


def pass_on(source: socket.socket, target: socket.socket) -> None:
    """Copies bytes until one side ends."""
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return


def accept(listener: socket.socket, port: int) -> None:
    """Connects each client to the target."""
    while True:
        near, _ = listener.accept()
        far = socket.create_connection(("127.0.0.1", port))
        for side in near, far:
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=pass_on, args=(near, far), daemon=True).start()
        threading.Thread(target=pass_on, args=(far, near), daemon=True).start()


def main() -> None:
    """Relays until standard input ends."""
    for port in sys.argv[1:]:
        listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=accept, args=(listener, int(port)), daemon=True).start()
        print(listener.getsockname()[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
