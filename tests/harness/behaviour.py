"""Where brokers differ by design, one field a difference, so that no test names a broker.

A field says what the tests may expect; the comment says why the brokers disagree.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """What a broker does where STOMP leaves room or is not followed."""

    # STOMP 1.1 and 1.2 demand a close after every ERROR. RabbitMQ closes after errors of its
    # core alone and goes on after those that its STOMP layer finds.
    closes_after_every_error: bool

    # RabbitMQ knows the virtual host by its exact name, so that `localhost` is refused.
    # Imori takes an IP literal, `localhost` or an own name for `/`.
    own_host_names_mean_root: bool

    # Imori refuses a body over 16 MiB, over 128 headers or 64 KiB of them, a transaction too
    # many (16) and an action too many in one (1,024). RabbitMQ 3.10 has none of these limits.
    has_stated_limits: bool

    # RabbitMQ 3.10 takes no `x-overflow` and no `x-priority` from a SUBSCRIBE: they are ignored.
    honours_overflow_and_priority: bool

    # STOMP counts a cumulative ACK within its subscription. RabbitMQ has one channel for all
    # subscriptions of a connection, and settles what came before on any of them.
    cumulates_over_the_connection: bool

    # RabbitMQ names the temporary queue as `subscription` to STOMP 1.0 clients too.
    # Imori names it to those that asked for 1.1 or later, as 1.0 does not know the header.
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
