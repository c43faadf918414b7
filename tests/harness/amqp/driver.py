"""The driver program of each AMQP 0-9-1 client library."""

import shutil
import sys
from pathlib import Path

from harness.amqp.suite import INSTALLED
from harness.driver import Driver
from harness.imori import REPOSITORY

FOLDER = REPOSITORY / "tests/interop/amqp"


def _program(name: str) -> Path:
    """Returns the path of a program, or one that does not exist."""
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
    Driver(
        client="amqplib",
        command=("node", str(FOLDER / "js/driver.mjs")),
        needs=(_program("node"), FOLDER / "js/node_modules"),
        source=FOLDER / "js/driver.mjs",
        scenario=r"^  async (\w+)\(",
    ),
    Driver(
        client="bunny",
        command=("ruby", str(FOLDER / "ruby/driver.rb")),
        needs=(_program("ruby"), INSTALLED / "bunny"),
        source=FOLDER / "ruby/driver.rb",
        scenario=r"^  (\w+): lambda",
    ),
    Driver(
        client="php-amqplib",
        command=("php", str(FOLDER / "php/driver.php")),
        needs=(_program("php"), INSTALLED / "php-amqplib"),
        source=FOLDER / "php/driver.php",
        scenario=r"^    '(\w+)' => function",
    ),
    Driver(
        client="amqp-client",
        command=("java", "-cp", f"{INSTALLED}/java:{INSTALLED}/java/*", "Driver"),
        needs=(_program("java"), INSTALLED / "java/Driver.class"),
        source=FOLDER / "java/Driver.java",
        scenario=r'^        scenarios\.put\("(\w+)"',
    ),
    Driver(
        client="lapin",
        command=(str(INSTALLED / "driver-lapin"),),
        needs=(INSTALLED / "driver-lapin",),
        source=FOLDER / "rust/src/main.rs",
        scenario=r'^        "(\w+)" =>',
    ),
]
