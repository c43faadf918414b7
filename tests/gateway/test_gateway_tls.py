"""The gateway over TLS: protocols, certificates that scripts choose, and those of clients."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from harness.admin import ask
from harness.certificates import Certificates, certificates
from harness.deadline import DEADLINE_S
from harness.gateway import Gateway, running_gateway
from harness.tls import connected

ROUTES = """
[[route]]
path = "/"
return = { status = 200, body = "{$scheme} {$server_protocol} {$ssl_server_name}" }

[[route]]
path = "/who"
login = "required"
content = { code = 'Nginx.rputs Nginx::Var.new.remote_user' }
"""


def settings_of(made: Certificates) -> dict[str, object]:
    more = {"client_certificates": "asked", "user_from": "cn"}
    return {**made.settings(**more), "users.guest": "always"}


def get(gateway: Gateway, path: str, context: ssl.SSLContext) -> tuple[int, bytes]:
    with connected(gateway.imori, "http-tls", context) as stream:
        stream.sendall(
            f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
        )
        answer = b""
        while piece := stream.recv(65_536):
            answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def test_protocols_and_clients_over_tls(tmp_path: Path) -> None:
    made = certificates(tmp_path / "certificates", "localhost", user="joe")
    also = ("http-tls=127.0.0.1:0",)
    settings = settings_of(made)
    with running_gateway(tmp_path, ROUTES, settings=settings, also=also, admin=True) as gateway:
        body = {"password_hash": "", "tags": ""}
        assert ask(gateway.imori, "/api/users/joe", method="PUT", body=body).status == 201
        context = made.context()
        assert get(gateway, "/", context) == (200, b"https HTTP/1.1 localhost")
        assert get(gateway, "/who", context)[0] == 401
        context = made.context(with_certificate=True)
        assert get(gateway, "/who", context) == (200, b"joe")
        context.set_alpn_protocols(["h2", "http/1.1"])
        with connected(gateway.imori, "http-tls", context) as stream:
            assert stream.selected_alpn_protocol() == "h2"


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_http_2_by_curl(tmp_path: Path) -> None:
    made = certificates(tmp_path / "certificates", "localhost")
    also = ("http-tls=127.0.0.1:0",)
    with running_gateway(tmp_path, ROUTES, settings=settings_of(made), also=also) as gateway:
        _, port = gateway.imori.named["http-tls"]
        urls = [f"https://localhost:{port}/"] * 3
        command = ["curl", "-sS", "--http2", "--cacert", str(made.ca), *urls]
        command += ["--resolve", f"localhost:{port}:127.0.0.1"]
        told = subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=DEADLINE_S
        )
        assert told.stdout == "https HTTP/2.0 localhost" * 3
        plain = ["curl", "-sS", "--http2-prior-knowledge", f"{gateway.url}/"]
        told = subprocess.run(plain, check=True, capture_output=True, text=True, timeout=DEADLINE_S)
        assert told.stdout == "http HTTP/2.0 "


def test_a_script_chooses_the_certificate(tmp_path: Path) -> None:
    made = certificates(tmp_path / "broker", "localhost")
    other = certificates(tmp_path / "other", "other.example")
    routes = f"""
[scripts]
ssl_handshake = {{ code = '''
ssl = Nginx::SSL.new
if ssl.servername == "other.example"
  ssl.certificate = {json.dumps(str(other.folder / "server.pem"))}
  ssl.certificate_key = {json.dumps(str(other.folder / "server-key.pem"))}
end
''' }}
{ROUTES}"""
    also = ("http-tls=127.0.0.1:0",)
    with running_gateway(tmp_path, routes, settings=settings_of(made), also=also) as gateway:
        for host, issuer in (("localhost", made), ("other.example", other)):
            with connected(gateway.imori, "http-tls", issuer.context(), host):
                pass
        with pytest.raises(ssl.SSLCertVerificationError):
            connected(gateway.imori, "http-tls", made.context(), "other.example")


def test_the_access_log_has_a_line_for_each_request(tmp_path: Path) -> None:
    routes = '[gateway]\naccess_log = "access.log"\n' + ROUTES
    with running_gateway(tmp_path, routes, settings={"users.guest": "always"}) as gateway:
        gateway.ask("GET", "/?a=1", headers={"User-Agent": 'x"'})
        gateway.ask("GET", "/none")
        gateway.ask("GET", "/who", login="guest:guest")
        assert gateway.imori.stop() == 0
    lines = [json.loads(line) for line in (tmp_path / "access.log").read_text().splitlines()]
    assert [(line["status"], line["route"], line["user"]) for line in lines] == [
        (200, "/", None),
        (404, None, None),
        (200, "/who", "guest"),
    ]
    assert lines[0]["uri"] == "/?a=1"
    assert lines[0]["body_bytes_sent"] == len("http HTTP/1.1 ")
    assert lines[0]["request_time"] >= 0
