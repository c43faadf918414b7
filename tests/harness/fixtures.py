"""The types of fixtures that are functions.

They are imported from here, not from `conftest`: several folders have a `conftest`, and Python
imports only the first of a name.
"""

from collections.abc import Callable

from harness.client import Client
from harness.imori import Imori
from harness.nats.broker import NatsBroker
from harness.nats.raw import RawNats
from harness.raw import RawClient

Connect = Callable[..., Client]
ConnectRaw = Callable[..., RawClient]
StartImori = Callable[..., Imori]
StartNats = Callable[..., NatsBroker]
ConnectNats = Callable[..., RawNats]
