"""Configurations of nginx with mruby directives, imported and served with their Ruby unchanged."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

from harness.gateway import StartGateway, running_gateway
from harness.imori import BINARY

CONFIGURATIONS = Path(__file__).resolve().parents[2] / "crates/imori-nginx/tests/nginx"


def imported(name: str, **replaced: str) -> str:
    """Returns the routes that come of a configuration, some texts in it replaced before."""
    text = (CONFIGURATIONS / f"{name}.conf").read_text()
    for old, new in replaced.items():
        text = text.replace(old.removeprefix("_"), new)
    command = [BINARY, "gateway", "import-nginx", "/dev/stdin"]
    told = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return told.stdout


def test_an_api_and_a_gateway_of_nginx_run_with_their_ruby_unchanged(
    tmp_path: Path, start_gateway: StartGateway
) -> None:
    ports = []
    for _ in range(2):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            ports.append(str(free.getsockname()[1]))
    api_port, own_port = ports
    routes = imported("async_api", _8081=api_port)
    also = (f"http=127.0.0.1:{api_port}",)
    with running_gateway(tmp_path / "api", routes, listen_http=False, also=also) as api:
        assert api.ask("GET", "/api?ms=7").json == {"slept": 7}
        assert api.ask("GET", "/blocking").body == b"slept\n"
        routes = imported("async_gateway", _8081=api_port, _8080=own_port)
        gateway = start_gateway(routes, listen_http=False, also=(f"http=127.0.0.1:{own_port}",))
        answer = gateway.ask("GET", "/hello")
        assert answer.status == 200, answer.body
        assert b"slept" in answer.body
        assert gateway.ask("GET", "/proxy").status == 404, "it is internal"
        assert gateway.imori.stop() == 0


def test_what_cannot_be_taken_over_is_named_with_its_line() -> None:
    command = [BINARY, "gateway", "import-nginx", str(CONFIGURATIONS / "left_out.conf")]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 2
    assert "left_out.conf:" in told.stderr
