"""The program for each client library of AMQP 0-9-1."""

import shutil
import sys
from pathlib import Path

from harness.amqp.suite import INSTALLED
from harness.driver import Driver
from harness.imori import REPOSITORY

FOLDER = REPOSITORY / "tests/interop/amqp"


def _program(name: str) -> Path:
    """Where a program is, or something that is nowhere."""
    return Path(shutil.which(name) or f"/{name}")


DRIVERS = [
    Driver(
        client="aio-pika",
        command=(sys.executable, str(FOLDER / "python/driver.py")),
        needs=(),
        source=FOLDER / "python/driver.py",
        scenario=r"^async def (\w+)\(run: Run\) -> None:",
    ),
    Driver(
        client="amqp091-go",
        command=(str(INSTALLED / "driver-go"),),
        needs=(INSTALLED / "driver-go",),
        source=FOLDER / "go/main.go",
        scenario=r'^\t"(\w+)":',
    ),
]
