"""JMS 2.0 and 3.1 over Qpid JMS: the tests in the folder `jms2`."""

from pathlib import Path

import pytest

from harness.admin import ask
from harness.amqp.suite import SUITE_S, need, run_suite
from harness.imori import REPOSITORY, running_imori

pytestmark = pytest.mark.timeout(SUITE_S)

INSTALLED = REPOSITORY / ".tools/amqp10"
SOURCES = REPOSITORY / "tests/interop/amqp10/jms2"
# A queue that refuses messages, as one test expects.
FULL = {"durable": True, "arguments": {"x-max-length": 1, "x-overflow": "reject-publish"}}


def test_jms_2(tmp_path: Path) -> None:
    need("java", INSTALLED / "jms2.sha256")
    sources = [path for path in SOURCES.glob("*Test.java") if path.stem != "BrokerTest"]
    count = sum(path.read_text().count("\n    @Test\n") for path in sources)
    settings = {"limits.message_bytes": "32MiB", "journal.file_bytes": "48MiB"}
    with running_imori(tmp_path, protocol="amqp", admin=True, settings=settings) as imori:
        assert ask(imori, "/api/queues/%2F/full", method="PUT", body=FULL).status == 201
        host, port = imori.addresses[0]
        jars = f"{INSTALLED / 'jms2'}:{INSTALLED / 'jms2-jars'}/*"
        # The small messages of these tests do not measure speed, so the first compiler is enough.
        java = ["java", "-XX:TieredStopAtLevel=1", f"-Dbroker=amqp://{host}:{port}", "-cp", jars]
        classes = sorted(path.stem for path in sources)
        printed = run_suite([*java, "org.junit.runner.JUnitCore", *classes], tmp_path, {})
    assert f"OK ({count} tests)" in printed
