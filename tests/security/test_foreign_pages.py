"""A page of another origin changes nothing, as shown by a browser with an operator's login."""

from __future__ import annotations

import base64
import http.client
import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from harness import http_server
from harness.admin import ask
from harness.deadline import DEADLINE_S
from harness.imori import Imori, running_imori

CHROMIUM = shutil.which("chromium")

# Root has no sandbox; the other flags keep the browser off the network.
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-popup-blocking",
]

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")

# Logs in as the operator would, in a window of its own; the browser remembers the login for the
# host. Then fetches in every way that needs no preflight, and in those that do.
FETCHES = """
const [login, url, body] = %s;
const tries = [
    {method: 'POST', mode: 'no-cors', body},
    {method: 'POST', mode: 'no-cors', headers: {'Content-Type': 'text/plain'}, body},
    {method: 'POST', headers: {'Content-Type': 'application/json'}, body},
    {method: 'DELETE'},
];
const fetched = (each) => fetch(url, {credentials: 'include', ...each});
const opened = window.open(login);
// A window can be read by the page that opened it until it shows what the broker answered.
function isAnswered() {
    try { return opened.location.href === ''; } catch { return true; }
}
async function run() {
    while (!isAnswered()) await new Promise((resolve) => setTimeout(resolve, 10));
    const outcomes = await Promise.allSettled(tries.map(fetched));
    const types = outcomes.map((outcome) => outcome.value?.type ?? 'failed');
    document.body.textContent = types.join(' ');
}
run();
"""


def serving(page: str) -> AbstractContextManager[str]:
    """Serves a page on a port of its own, which makes it an origin of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_: object) -> None:
            """Prints nothing."""

    return http_server.serving(Handler)


def opened(url: str, profile: Path) -> str:
    """Returns a page's text after its scripts have run, or the page that its form leads to."""
    assert CHROMIUM is not None
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "--virtual-time-budget=5000"]
    done = subprocess.run(
        [*command, "--dump-dom", url],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S * 3,
        check=True,
    )
    return done.stdout


@pytest.fixture
def imori(tmp_path: Path) -> Iterator[Imori]:
    with running_imori(tmp_path, admin=True) as running:
        yield running
        assert running.stop() == 0


def base(imori: Imori) -> str:
    """Returns the admin listener's URL with a login, as used by a browser that has logged in."""
    assert imori.admin is not None
    host, port = imori.admin
    return f"http://operator:{imori.operator_password()}@{host}:{port}"


def users(imori: Imori) -> set[str]:
    answer = ask(imori, "/api/users")
    return {user["name"] for user in answer.json()}


def add_spare(imori: Imori) -> None:
    """Adds an unneeded user, which a page could delete."""
    answer = ask(imori, "/api/users/spare", method="PUT", body={"password": "p", "tags": ""})
    assert answer.status == 201, answer.body


@needs_chromium
def test_a_form_of_another_origin_is_refused(imori: Imori, tmp_path: Path) -> None:
    # SECURITY WEB-02, WEB-03.
    queue = "/api/queues/%2F/asked"
    assert ask(imori, queue, method="PUT", body={"durable": True}).status == 201
    action = f"{base(imori)}/api/exchanges/%2F/amq.default/publish"
    # A plain-text form is valid JSON if its field is named accordingly.
    rest = '"routing_key": "asked", "payload_encoding": "string", "properties": {}'
    body = f"<input name='{{{rest}, \"payload\": \"' value='\"}}'>"
    form = f"<form method=post enctype=text/plain action='{action}'>{body}</form>"
    with serving(f"{form}<script>document.forms[0].submit()</script>") as page:
        shown = opened(page, tmp_path / "profile")
    taken = {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}
    assert ask(imori, f"{queue}/get", method="POST", body=taken).json() == []
    assert "a page of another origin changes nothing here" in shown


@needs_chromium
def test_fetches_of_another_origin_change_nothing(imori: Imori, tmp_path: Path) -> None:
    # SECURITY WEB-02, WEB-03.
    add_spare(imori)
    assert imori.admin is not None
    host, port = imori.admin
    url = f"http://{host}:{port}/api/users/bulk-delete"
    script = FETCHES % json.dumps([f"{base(imori)}/api/whoami", url, '{"users": ["spare"]}'])
    with serving(f"<body></body><script>{script}</script>") as page:
        shown = opened(page, tmp_path / "profile")
    # Requests without a preflight are sent, but the page cannot read their responses.
    assert "opaque opaque failed failed" in shown
    assert "spare" in users(imori)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Type": "application/json; charset=utf-8"}, 201),
        ({"Sec-Fetch-Site": "same-origin"}, 201),
    ],
)
@pytest.mark.parametrize("api", ["/api", "/v1"])
def test_a_change_says_whose_it_is(
    imori: Imori, api: str, headers: dict[str, str], status: int
) -> None:
    # SECURITY WEB-03.
    path = f"{api}/queues/%2F/asked"
    answer = ask(imori, path, method="PUT", headers=headers, body={"durable": True})
    assert answer.status == status, answer.body
    if status in (403, 415):
        assert answer.headers["Connection"] == "close"
        assert ask(imori, f"/api{path.removeprefix(api)}").status == 404


def form(*parts: tuple[str, bytes]) -> bytes:
    """Returns a form with these fields, as a browser writes it."""
    head = 'Content-Disposition: form-data; name="{}"; filename="d.json"\r\n'
    kind = "Content-Type: application/json\r\n\r\n"
    fields = [f"--x\r\n{head.format(name)}{kind}".encode() + body for name, body in parts]
    return b"\r\n".join([*fields, b"--x--\r\n"])


DOCUMENT = json.dumps({"users": [{"name": "uploaded", "password": "p", "tags": ""}]}).encode()


def upload(
    imori: Imori,
    headers: dict[str, str],
    *,
    path: str = "/api/definitions",
    body: bytes = form(("file", DOCUMENT)),
    has_login: bool = True,
) -> int:
    """Sends a form and returns the status."""
    assert imori.admin is not None
    kind = "multipart/form-data; boundary=x"
    login = base64.b64encode(f"operator:{imori.operator_password()}".encode()).decode()
    own = {"Content-Type": kind} | ({"Authorization": f"Basic {login}"} if has_login else {})
    connection = http.client.HTTPConnection(*imori.admin, timeout=DEADLINE_S)
    try:
        connection.request("POST", path, body, own | headers)
        return connection.getresponse().status
    finally:
        connection.close()


def session(imori: Imori) -> str:
    """Returns the cookie of a session of the console."""
    body = {"user": "operator", "password": imori.operator_password()}
    answer = ask(imori, "/v1/session", method="POST", login=None, body=body)
    assert answer.status in {200, 201}, answer
    return answer.headers["Set-Cookie"].split(";")[0]


def test_a_program_uploads_definitions_as_a_form(imori: Imori) -> None:
    # SECURITY WEB-03.
    assert upload(imori, {}, body=form(("auth", b"x"), ("file", DOCUMENT))) == 204
    assert "uploaded" in users(imori)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Cookie": "a=b"},
    ],
)
def test_a_form_of_a_page_is_refused(imori: Imori, headers: dict[str, str]) -> None:
    # SECURITY WEB-03.
    assert upload(imori, headers) == 403
    assert "uploaded" not in users(imori)


def test_a_form_is_taken_by_no_cookie_and_at_one_path(imori: Imori) -> None:
    # SECURITY WEB-03.
    own = {"Cookie": session(imori), "Sec-Fetch-Site": "same-origin"}
    assert upload(imori, own, has_login=False) == 403
    assert upload(imori, {}, has_login=False) == 403
    for path in (
        "/api/definitions/",
        "/api/definitions/%2F",
        "/api/users/bulk-delete",
        "/v1/config",
    ):
        assert upload(imori, {}, path=path) == 415, path
    assert "uploaded" not in users(imori)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"--x",
        b"--x--\r\n",
        b"--x\r\n\r\n",
        form(("other", DOCUMENT)),
        form(("file", b"[]")),
        form(("file", DOCUMENT)).removesuffix(b"\r\n--x--\r\n"),
        form(*[("other", b"")] * 17, ("file", DOCUMENT)),
        form(("file", DOCUMENT)).replace(b"--x", b"--y"),
    ],
)
def test_what_is_no_form_with_a_document_is_refused(imori: Imori, body: bytes) -> None:
    # SECURITY WEB-07.
    assert upload(imori, {}, body=body) == 400
    assert users(imori) == {"admin"}
