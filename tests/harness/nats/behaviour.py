"""Differences between NATS brokers by design, one field each.

A field says what tests may expect; its comment says why the brokers differ.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class NatsBehaviour:
    """The behaviour of a broker where the client protocol leaves room."""

    # nats-server closes without an error if a command's arguments are wrong. Imori gives the reason
    # before it closes.
    explains_wrong_arguments: bool

    # The tables of conversations list nats-server's answers, and other accepted ones with the
    # reason. nats-server itself must give its own answers.
    may_deviate: bool

    # nats-server answers an acknowledgement before the consumer's state is in its file, so that a
    # kill makes it deliver the message again. Imori answers when the acknowledgement is safe.
    answered_acks_survive_kills: bool

    # Scenarios of `test_jetstream_schemas.py` and `test_jetstream_js.py` that the broker fails.
    # Imori has no mirrors and sources, and no advisories of dropped batches and paused consumers.
    # Its advisories of snapshots do not have the state of the stream.
    lacks: frozenset[str]


IMORI = NatsBehaviour(
    explains_wrong_arguments=True,
    may_deviate=True,
    answered_acks_survive_kills=True,
    lacks=frozenset({"copies", "snapshots", "abandoned_batch", "pause_events"}),
)

NATS_SERVER = NatsBehaviour(
    explains_wrong_arguments=False,
    may_deviate=False,
    answered_acks_survive_kills=False,
    lacks=frozenset(),
)
