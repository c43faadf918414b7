#!/usr/bin/env python3
"""Lists processes as JSON: search, by state, name or pid, and criteria."""

import json
import re
import sys
from pathlib import Path


def processes() -> list[dict[str, str]]:
    """All processes with pid, name and state."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            stat = (folder / "stat").read_text(errors="replace")
        except OSError:
            continue
        # The name stands in parentheses and may hold some itself.
        name = stat[stat.index("(") + 1 : stat.rindex(")")]
        found.append({"pid": folder.name, "name": name, "state": stat[stat.rindex(")") + 2 :].split()[0]})
    return sorted(found, key=lambda process: int(process["pid"]))


def main() -> int:
    """Prints the processes that match; the exit code is 1 if there are none."""
    search, criteria = (*sys.argv[1:3], "name", "")[:2] if len(sys.argv) > 2 else ("name", "")
    pattern = re.compile(criteria)
    is_wanted = (lambda text: bool(pattern.search(text))) if search == "name" else (lambda text: text == criteria)
    found = [process for process in processes() if is_wanted(process[search])]
    print(json.dumps(found))
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
