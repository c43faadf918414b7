"""Asks the name servers with dig."""

import random
import subprocess
from typing import Any

from st2common.runners.base_action import Action


class DigAction(Action):
    """Runs dig and tells its answers as a list."""

    def run(
        self, hostname: str, querytype: str, queryopts: str, nameserver: str | None, count: int, rand: bool
    ) -> tuple[bool, Any]:
        """The answers of dig to `hostname`."""
        if any(word.startswith("-") for word in (hostname, querytype, nameserver or "")):
            return False, "a name may not begin with `-`"
        command = ["dig", *([f"@{nameserver}"] if nameserver else []), hostname, querytype]
        command += [f"+{option.strip().lstrip('+')}" for option in (queryopts or "").split(",") if option.strip()]
        try:
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        except FileNotFoundError:
            return False, "dig is not there; install it"
        except subprocess.CalledProcessError as error:
            return False, error.stderr or error.stdout
        answers = [line for line in output.splitlines() if line]
        if rand:
            random.shuffle(answers)
        return True, answers[:count] if count > 0 else answers
