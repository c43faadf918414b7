"""The users of a nats-server configuration, imported and then used by NATS clients."""

import asyncio
import os
import subprocess
from pathlib import Path

import nats
import nkeys
import pytest
from nats.aio.msg import Msg

from harness.admin import read
from harness.deadline import DEADLINE_S
from harness.imori import BINARY, Imori, running_imori

SEED = b"SUAMK2FG4MI6UE3ACF3FK3OIQBCEIEZV7NSWFFEW63UXMRLFM2XLAXK4GY"


def public(seed: bytes) -> str:
    """Returns the public key of a seed."""
    key: bytes = nkeys.from_seed(bytearray(seed)).public_key
    return key.decode()


CONFIGURATION = """
# As an operator of nats-server writes it.
port: 4222
REQUESTS = [ "requests.>", "_INBOX.>" ]
authorization {
  users = [
    { user: ann, password: 'an"n', permissions: {
        publish: { allow: ["orders.>", $REQUESTS], deny: "orders.secret" }
        subscribe: ["_INBOX.>", "news.*"] } }
    { user: service, password: $PASSWORD, permissions: {
        subscribe: "requests.>", allow_responses: true } }
    { nkey: NKEY }
  ]
}
include accounts.conf
"""


def imported(imori: Imori, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Imports the configuration as the operator."""
    assert imori.admin is not None
    host, port = imori.admin
    text = CONFIGURATION.replace("NKEY", public(SEED)).replace(", $REQUESTS", ', "requests.>"')
    (folder / "nats.conf").write_text(text)
    (folder / "accounts.conf").write_text(
        "accounts { SHOP: { users: [{user: bob, password: 1234}], jetstream: enabled } }\n"
    )
    environment = {
        **os.environ,
        "PASSWORD": "'s e'",
        "IMORI_ADMIN": f"http://{host}:{port}",
        "IMORI__BROKER__DATA_DIR": str(imori.log.parent / "data"),
    }
    command = [BINARY, "definitions", "import", *options, str(folder / "nats.conf")]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, timeout=DEADLINE_S
    )


@pytest.mark.parametrize("options", [(), ("--from", "nats-server")])
def test_users_of_a_nats_server_log_in_with_their_rights(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    # SECURITY AUTH-03.
    with running_imori(tmp_path, protocol="nats", admin=True) as imori:
        run = imported(imori, tmp_path, *options)
        assert "left out: " in run.stderr
        for part in ["nats.conf:3: `port`", "REQUESTS", "accounts.conf:1: `jetstream`"]:
            assert part in run.stderr.replace("`requests`", "REQUESTS"), run.stderr
        assert 'an"n' not in run.stdout + run.stderr
        assert "SHOP" in [vhost["name"] for vhost in read(imori, "/api/vhosts")]
        asyncio.run(use(imori))


async def use(imori: Imori) -> None:
    """Checks what each user may and may not do."""
    host, port = imori.addresses[0]
    refused: list[str] = []

    async def note(error: Exception) -> None:
        refused.append(str(error))

    url = f"nats://{host}:{port}"
    ann = await nats.connect(url, user="ann", password='an"n', error_cb=note)
    service = await nats.connect(url, user="service", password="s e", error_cb=note)
    bob = await nats.connect(url, user="bob", password="1234")
    key = await nats.connect(url, nkeys_seed_str=SEED.decode())

    async def answer(message: Msg) -> None:
        await message.respond(b"yes")

    await service.subscribe("requests.>", cb=answer)
    await service.flush()
    assert (await ann.request("requests.one", b"?", timeout=DEADLINE_S)).data == b"yes"
    heard = await key.subscribe(">")
    elsewhere = await bob.subscribe(">")
    await key.flush()
    await bob.flush()
    await ann.publish("orders.new", b"1")
    await ann.publish("orders.secret", b"2")
    await ann.publish("other", b"3")
    await ann.flush()
    assert (await heard.next_msg(timeout=DEADLINE_S)).subject == "orders.new"
    await key.publish("end", b"")
    assert (await heard.next_msg(timeout=DEADLINE_S)).subject == "end"
    # Accounts are isolated from each other.
    await bob.publish("own", b"")
    assert (await elsewhere.next_msg(timeout=DEADLINE_S)).subject == "own"
    assert len([text for text in refused if "permissions violation" in text.lower()]) == 2, refused
    for client in (ann, service, bob, key):
        await client.close()
