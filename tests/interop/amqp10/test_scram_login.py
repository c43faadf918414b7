"""Qpid JMS logs in with SASL SCRAM-SHA-256."""

import subprocess
from pathlib import Path

import pytest

from harness.admin import ask
from harness.amqp.suite import need
from harness.imori import REPOSITORY, Imori, running_imori

INSTALLED = REPOSITORY / ".tools/amqp10"
PROGRAM_S = 60
SCRAM = "amqp.saslMechanisms=SCRAM-SHA-256"


def run(imori: Imori, options: str) -> subprocess.CompletedProcess[str]:
    """Runs a program that logs in as `guest` with the password `guest`."""
    host, port = imori.addresses[0]
    jars = f"{INSTALLED / 'patterns'}:{INSTALLED / 'patterns-jars'}/*"
    url = f"amqp://{host}:{port}?{options}"
    return subprocess.run(
        ["java", "-cp", jars, "OneQueueEach", url],
        capture_output=True,
        text=True,
        timeout=PROGRAM_S,
        check=False,
    )


@pytest.mark.parametrize("options", [SCRAM, "amqp.saslMechanisms=PLAIN", ""])
def test_qpid_jms_proves_its_password_and_is_let_in(tmp_path: Path, options: str) -> None:
    need("java", INSTALLED / "patterns.sha256")
    settings = {"users.scram": "true"}
    with running_imori(tmp_path, protocol="amqp", admin=True, settings=settings) as imori:
        ran = run(imori, options)
        assert "tokyo has order 1" in ran.stdout, ran.stderr
        # A created user with that name replaces the built-in one.
        user = {"password": "another", "tags": ""}
        assert ask(imori, "/api/users/guest", method="PUT", body=user).status == 201
        ran = run(imori, options)
        assert "JMSSecurity" in ran.stderr, ran.stderr
        assert not ran.stdout


def test_qpid_jms_is_let_in_by_plain_where_a_user_has_no_keys(tmp_path: Path) -> None:
    need("java", INSTALLED / "patterns.sha256")
    user = {"password": "guest", "tags": ""}
    with running_imori(tmp_path, protocol="amqp", admin=True) as imori:
        for name in ("guest", "ann"):
            assert ask(imori, f"/api/users/{name}", method="PUT", body=user).status == 201
        granted = {"configure": ".*", "write": ".*", "read": ".*"}
        path = "/api/permissions/%2F/guest"
        assert ask(imori, path, method="PUT", body=granted).status == 201
    settings = {"users.scram": "true"}
    with running_imori(tmp_path, protocol="amqp", admin=True, settings=settings) as imori:
        ran = run(imori, "")
        assert "tokyo has order 1" in ran.stdout, ran.stderr
        # The other user still has no SCRAM keys.
        refused = run(imori, SCRAM)
        assert "JMS" in refused.stderr, refused.stderr
        for name in ("ann", "admin"):
            body = user | {"tags": "administrator" if name == "admin" else ""}
            assert ask(imori, f"/api/users/{name}", method="PUT", body=body).status == 204
        ran = run(imori, SCRAM)
        assert "tokyo has order 1" in ran.stdout, ran.stderr
