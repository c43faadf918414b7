"""Certificates of a CA of their own, and broker settings that use them."""

import ssl
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.imori import BINARY


@dataclass(frozen=True)
class Certificates:
    """A folder created by `imori cert dev`."""

    folder: Path

    @property
    def ca(self) -> Path:
        """The CA certificate, for clients and for the broker."""
        return self.folder / "ca.pem"

    @property
    def client(self) -> tuple[Path, Path]:
        """A client's certificate and key."""
        return self.folder / "client.pem", self.folder / "client-key.pem"

    def settings(self, **more: object) -> Mapping[str, object]:
        """Returns broker settings with its certificate; `more` adds to the section `tls`."""
        of_broker = {
            "certificate": self.folder / "server.pem",
            "key": self.folder / "server-key.pem",
            "client_ca": self.ca,
        }
        return {f"tls.{key}": value for key, value in (of_broker | more).items()}

    def context(self, *, with_certificate: bool = False) -> ssl.SSLContext:
        """Returns a client's context, optionally with the client's certificate."""
        context = ssl.create_default_context(cafile=str(self.ca))
        if with_certificate:
            context.load_cert_chain(*self.client)
        return context


def certificates(folder: Path, *names: str, user: str = "guest") -> Certificates:
    """Creates a CA, a broker's certificate for this host and `names`, and a client's."""
    command = [BINARY, "cert", "dev", "--dir", str(folder), "--user", user, *names]
    subprocess.run(command, check=True, capture_output=True)
    return Certificates(folder)
