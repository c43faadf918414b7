"""Differences between brokers by design, one field each, so that no test names a broker.

A field says what tests may expect; its comment says why the brokers differ.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """The behaviour of a broker where STOMP leaves room or is not followed."""

    # STOMP 1.1 and 1.2 demand a close after every ERROR. RabbitMQ closes after errors of its core,
    # but not after those that its STOMP layer finds.
    closes_after_every_error: bool

    # RabbitMQ matches the name of the virtual host exactly, so it refuses `localhost`. Imori takes
    # an IP literal, `localhost` or its own host name as `/`.
    own_host_names_mean_root: bool

    # Imori refuses a body over 16 MiB, more than 128 headers or 64 KiB of them, more than 16 open
    # transactions and more than 1,024 actions in one. RabbitMQ 3.10 has none of these limits.
    has_stated_limits: bool

    # RabbitMQ 3.10 ignores `x-overflow` and `x-priority` in a SUBSCRIBE.
    honours_overflow_and_priority: bool

    # STOMP defines a cumulative ACK per subscription. RabbitMQ has one channel for all
    # subscriptions of a connection, and settles earlier deliveries of any of them.
    cumulates_over_the_connection: bool

    # RabbitMQ puts the name of the temporary queue into `subscription` for STOMP 1.0 clients too.
    # Imori does so from 1.1 on, because 1.0 does not know the header.
    names_inbox_to_stomp_1_0: bool


IMORI = Behaviour(
    closes_after_every_error=True,
    own_host_names_mean_root=True,
    has_stated_limits=True,
    cumulates_over_the_connection=False,
    honours_overflow_and_priority=True,
    names_inbox_to_stomp_1_0=False,
)

RABBITMQ = Behaviour(
    closes_after_every_error=False,
    own_host_names_mean_root=False,
    has_stated_limits=False,
    cumulates_over_the_connection=True,
    honours_overflow_and_priority=False,
    names_inbox_to_stomp_1_0=True,
)
