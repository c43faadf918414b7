"""Says which modules of StackStorm's packages are here when one is imported that is not."""

from __future__ import annotations

import os
import sys
from typing import Any

FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PACKAGES = ("st2actions", "st2common", "st2reactor", "st2tests")


def modules(package: str) -> list[str]:
    """The modules of a package that are provided."""
    found = []
    for folder, _, files in os.walk(os.path.join(FOLDER, package)):
        name = os.path.relpath(folder, FOLDER).replace(os.sep, ".")
        found += [f"{name}.{file[:-3]}" for file in files if file.endswith(".py")]
    return sorted(name for name in found if not name.endswith(".__init__"))


class Explanation:
    """A finder that knows no module, asked last."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Raises `ModuleNotFoundError` for a module of StackStorm's packages."""
        package = name.partition(".")[0]
        if package in PACKAGES and package != name:
            raise ModuleNotFoundError(
                f"`{name}` is not provided by Imori; provided are {', '.join(modules(package))}",
                name=name,
            )


def explain_missing_modules() -> None:
    """Makes imports of modules that are not here say what is."""
    if not any(isinstance(finder, Explanation) for finder in sys.meta_path):
        finders: list[Any] = sys.meta_path
        finders.append(Explanation())
