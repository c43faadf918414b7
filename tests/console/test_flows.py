"""The web console in a browser, beside the real broker: `console/flows` by its own runner."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.admin import ask
from harness.imori import REPOSITORY, Imori, running_imori

CONSOLE = REPOSITORY / "console"
FLOWS = sorted(path.name for path in (CONSOLE / "flows").glob("*.test.mjs"))
BROWSER = shutil.which("chromium")

# The flows give their user a vhost, so it has to be a stored one.
USER, PASSWORD = "flows", "flows-password"

# Routes of the gateway: one answers, and the script of the other fails.
ROUTES = """
[[route]]
path = "/hello"
return = { status = 200, body = "hello" }

[[route]]
path = "/broken"
content = { code = 'raise "a newt is missing"' }
"""

# Seconds for a file of flows, each of which opens a page or two.
LONGEST_S = 240


@pytest.fixture(scope="module")
def imori(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Imori]:
    """A broker with its console, every protocol, the automation and the gateway."""
    folder = tmp_path_factory.mktemp("console")
    routes = folder / "routes.toml"
    routes.write_text(ROUTES)
    settings = {"gateway.routes": str(routes)}
    also = ["automation=127.0.0.1:0", "http=127.0.0.1:0"]
    with running_imori(
        folder, settings=settings, also=also, amqp=True, nats=True, admin=True
    ) as imori:
        body = {"password": PASSWORD, "tags": ["administrator"]}
        assert ask(imori, f"/v1/users/{USER}", method="PUT", body=body).status in {201, 204}
        yield imori
        assert imori.stop() == 0


def test_there_are_flows() -> None:
    assert FLOWS


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")
@pytest.mark.parametrize("file", FLOWS)
def test_flows_pass(imori: Imori, file: str, tmp_path: Path) -> None:
    assert imori.admin is not None
    host, port = imori.admin
    environment = os.environ | {
        "IMORI_ADMIN": f"http://{host}:{port}",
        "IMORI_LOGIN": f"{USER}:{PASSWORD}",
        "CHROMIUM": str(BROWSER),
        "HOME": str(tmp_path),
    }
    ended = subprocess.run(
        ["node", "--test", f"flows/{file}"],
        cwd=CONSOLE,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
