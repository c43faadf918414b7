"""The driver program of each NATS client library."""

import shutil
import sys
from pathlib import Path

from harness.driver import Driver
from harness.imori import REPOSITORY

FOLDER = REPOSITORY / "tests/interop/nats"
BUILT = REPOSITORY / ".tools/nats"

DRIVERS = [
    Driver(
        client="nats.go",
        command=(str(BUILT / "driver-go"),),
        needs=(BUILT / "driver-go",),
        source=FOLDER / "go/main.go",
        scenario=r'^\t"(\w+)":',
    ),
    Driver(
        client="nats-py",
        command=(sys.executable, str(FOLDER / "python/driver.py")),
        needs=(),
        source=FOLDER / "python/driver.py",
        scenario=r"^async def (\w+)\(run: Run\) -> None:",
    ),
    Driver(
        client="async-nats",
        command=(str(BUILT / "driver-rust"),),
        needs=(BUILT / "driver-rust",),
        source=FOLDER / "rust/src/main.rs",
        scenario=r'^        "(\w+)" =>',
    ),
    Driver(
        client="nats.js",
        command=(shutil.which("node") or "node", str(FOLDER / "js/driver.mjs")),
        needs=(Path(shutil.which("node") or "/node"), FOLDER / "js/node_modules"),
        source=FOLDER / "js/driver.mjs",
        scenario=r"^  async (\w+)\(",
    ),
]

# The program that uses streams by nats.go's package `jetstream`.
JETSTREAM_GO = Driver(
    client="nats.go/jetstream",
    command=(str(BUILT / "driver-jetstream"),),
    needs=(BUILT / "driver-jetstream",),
    source=FOLDER / "go/jetstream/main.go",
    scenario=r'^\t"(\w+)":',
)

# The program that uses streams by nats.js.
JETSTREAM_JS = Driver(
    client="nats.js/jetstream",
    command=(shutil.which("node") or "node", str(FOLDER / "js/jetstream.mjs")),
    needs=(Path(shutil.which("node") or "/node"), FOLDER / "js/node_modules/@nats-io/obj"),
    source=FOLDER / "js/jetstream.mjs",
    scenario=r"^  async (\w+)\(",
)

# The program that uses streams by NATS's Java client.
JETSTREAM_JAVA = Driver(
    client="jnats",
    command=("java", "-cp", f"{BUILT}/java:{BUILT}/java/*", "JetStreamDriver"),
    needs=(Path(shutil.which("java") or "/java"), BUILT / "java/JetStreamDriver.class"),
    source=FOLDER / "java/JetStreamDriver.java",
    scenario=r'scenarios\.put\("(\w+)"',
)

# The program that checks answers and advisories against the schemas of jsm.go.
SCHEMAS = Driver(
    client="jsm.go/schemas",
    command=(str(BUILT / "driver-schemas"),),
    needs=(BUILT / "driver-schemas",),
    source=FOLDER / "go/schemas/main.go",
    scenario=r'^\t"(\w+)":',
)
