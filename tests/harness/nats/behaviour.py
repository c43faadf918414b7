"""Where brokers that speak NATS differ by design, one field a difference.

A field says what the tests may expect; the comment says why the brokers disagree.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class NatsBehaviour:
    """What a broker does where the client protocol leaves room."""

    # nats-server closes without a word when the arguments of a command are wrong.
    # Imori says why before it closes.
    explains_wrong_arguments: bool

    # The tables of conversations say what nats-server answers, and beside it what else is
    # accepted and why. nats-server itself has to answer what it says there.
    may_deviate: bool


IMORI = NatsBehaviour(explains_wrong_arguments=True, may_deviate=True)

NATS_SERVER = NatsBehaviour(explains_wrong_arguments=False, may_deviate=False)
