"""A name server that knows every name: each has the address 127.0.0.1, and no other record."""

import socket
import struct

ADDRESS, HEADER_BYTES = 1, 12


def answer(question: bytes) -> bytes:
    """Returns the answer to a packet with one question."""
    end = HEADER_BYTES
    while question[end]:
        end += question[end] + 1
    (kind,) = struct.unpack_from(">H", question, end + 1)
    count = int(kind == ADDRESS)
    # A response with recursion available: one question, and an answer that repeats its name.
    head = question[:2] + struct.pack(">5H", 0x8180, 1, count, 0, 0)
    record = b"\xc0\x0c" + struct.pack(">HHIH", ADDRESS, 1, 60, 4) + bytes([127, 0, 0, 1])
    return head + question[HEADER_BYTES : end + 5] + record * count


def main() -> None:
    """Answers until it is killed."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 53))
        print("ready", flush=True)
        while True:
            question, asker = server.recvfrom(512)
            server.sendto(answer(question), asker)


if __name__ == "__main__":
    main()
