"""A copy of a stream as `nats stream backup` takes it, and a stream from a copy."""

import json
from dataclasses import dataclass
from typing import Any

from nats.aio.client import Client

from harness.deadline import DEADLINE_S


@dataclass(frozen=True)
class Copy:
    """The answer to a snapshot, and the archive that followed."""

    config: dict[str, Any]
    state: dict[str, Any]
    archive: bytes
    # The header block of the last message.
    status: str | None


async def snapshot(client: Client, stream: str, **request: object) -> Copy:
    """Takes a snapshot of a stream, as natscli does."""
    inbox = client.new_inbox()
    pieces = await client.subscribe(inbox)
    body = json.dumps({"deliver_subject": inbox, **request}).encode()
    reply = await client.request(f"$JS.API.STREAM.SNAPSHOT.{stream}", body, timeout=DEADLINE_S)
    answer = json.loads(reply.data)
    assert "error" not in answer, answer
    assert answer["type"] == "io.nats.jetstream.api.v1.stream_snapshot_response"
    archive = b""
    while (piece := await pieces.next_msg(DEADLINE_S)).data:
        archive += piece.data
        if piece.reply:
            await client.publish(piece.reply, b"")
    await pieces.unsubscribe()
    headers = piece.headers or {}
    return Copy(answer["config"], answer["state"], archive, headers.get("Status"))


async def restore(
    client: Client, copy: Copy, *, piece_bytes: int = 64 * 1024, **changes: object
) -> dict[str, Any]:
    """Restores a stream from a copy, with changes of its configuration; returns the last answer."""
    config = copy.config | changes
    body = json.dumps({"config": config, "state": copy.state}).encode()
    subject = f"$JS.API.STREAM.RESTORE.{config['name']}"
    answer = json.loads((await client.request(subject, body, timeout=DEADLINE_S)).data)
    if "error" in answer:
        return dict(answer)
    assert answer["type"] == "io.nats.jetstream.api.v1.stream_restore_response"
    to = answer["deliver_subject"]
    for start in range(0, len(copy.archive), piece_bytes):
        piece = copy.archive[start : start + piece_bytes]
        reply = await client.request(to, piece, timeout=DEADLINE_S)
        if reply.data:
            return dict(json.loads(reply.data))
    return dict(json.loads((await client.request(to, b"", timeout=DEADLINE_S)).data))
