"""Appends its id to a file."""

import os
import subprocess
import time

from st2common.runners.base_action import Action


class Append(Action):
    """Writes before and after a pause, in its own process and in another one."""

    def run(self, id: str, file: str, pause: float) -> str:
        """Appends the id, and returns it."""
        print("began", id, flush=True)
        time.sleep(pause)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(descriptor, f"{id}\n".encode())
        os.close(descriptor)
        subprocess.run(["echo", "said", id], check=True)
        return id
