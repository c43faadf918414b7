"""The driver program of each AMQP 1.0 client library."""

import shutil
import sys
from pathlib import Path

from harness.driver import Driver
from harness.imori import REPOSITORY

FOLDER = REPOSITORY / "tests/interop/amqp10"
# The folder filled by tests/interop/amqp10/install.sh.
INSTALLED = REPOSITORY / ".tools/amqp10"


def _program(name: str) -> Path:
    """Returns the path of a program, or one that does not exist."""
    return Path(shutil.which(name) or f"/{name}")


DRIVERS = [
    Driver(
        client="protonj2",
        command=(
            "java",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            f"{INSTALLED}/protonj2:{INSTALLED}/protonj2-jars/*",
            "Driver",
        ),
        needs=(_program("java"), INSTALLED / "protonj2.sha256"),
        source=FOLDER / "protonj2/Driver.java",
        scenario=r'^        scenarios\.put\("(\w+)"',
    ),
    Driver(
        client="python-qpid-proton",
        command=(sys.executable, str(FOLDER / "proton-python/driver.py")),
        needs=(),
        source=FOLDER / "proton-python/driver.py",
        scenario=r"^def (\w+)\(\) -> None:",
    ),
    Driver(
        client="proton-cpp",
        command=(str(INSTALLED / "driver-proton-cpp"),),
        needs=(INSTALLED / "driver-proton-cpp",),
        source=FOLDER / "proton-cpp/driver.cpp",
        scenario=r'^    \{"(\w+)", \w+\},',
    ),
    Driver(
        client="fe2o3-amqp",
        command=(str(INSTALLED / "driver-fe2o3"),),
        needs=(INSTALLED / "driver-fe2o3",),
        source=FOLDER / "fe2o3/src/main.rs",
        scenario=r'^        "(\w+)" =>',
    ),
    Driver(
        client="rhea",
        command=("node", str(FOLDER / "rhea/driver.mjs")),
        needs=(_program("node"), FOLDER / "rhea/node_modules"),
        source=FOLDER / "rhea/driver.mjs",
        scenario=r"^  async (\w+)\(\) \{",
    ),
]
