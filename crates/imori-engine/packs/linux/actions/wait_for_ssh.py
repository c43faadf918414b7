"""Waits until a host answers as an SSH server."""

import socket
import time
from typing import Any

from st2common.runners.base_action import Action


class WaitForSshAction(Action):
    """Connects until the server sends its version."""

    def run(self, hostname: str, port: int, ssh_timeout: int, sleep_delay: int, retries: int, **_: Any) -> bool:
        """True once the server answers; raises when the last try failed."""
        for attempt in range(1, retries + 1):
            try:
                with socket.create_connection((hostname, port), ssh_timeout) as connection:
                    if connection.recv(4) == b"SSH-":
                        return True
                    reason = "the server speaks something else"
            except OSError as error:
                reason = str(error)
            self.logger.debug("try %d of %d: %s", attempt, retries, reason)
            if attempt < retries:
                time.sleep(sleep_delay)
        raise TimeoutError(f"{hostname}:{port} did not answer in {retries} tries")
