"""The Joram tests of JMS 1.1, over Qpid JMS."""

import zipfile
from pathlib import Path

import pytest

from harness.amqp.suite import SUITE_S, need, run_suite
from harness.imori import REPOSITORY, running_imori

pytestmark = pytest.mark.timeout(SUITE_S)

INSTALLED = REPOSITORY / ".tools/amqp10"
TESTS = INSTALLED / "joram-jars/joram-jms-tests-1.0.jar"


def test_joram(tmp_path: Path) -> None:
    need("java", INSTALLED / "joram.sha256")
    with zipfile.ZipFile(TESTS) as jar:
        tests = [
            name for name in jar.namelist() if "/conform/" in name and name.endswith("Test.class")
        ]
    classes = [name.removesuffix(".class").replace("/", ".") for name in tests]
    with running_imori(tmp_path, protocol="amqp") as imori:
        host, port = imori.addresses[0]
        # The tests expect no user in a message that was sent without one.
        broker = f"amqp://{host}:{port}?jms.populateJMSXUserID=false"
        jars = f"{INSTALLED / 'joram'}:{INSTALLED / 'joram-jars'}/*"
        junit = ["java", f"-Dbroker={broker}", "-cp", jars, "org.junit.runner.JUnitCore"]
        printed = run_suite([*junit, *classes], tmp_path, {})
    assert "OK (196 tests)" in printed
