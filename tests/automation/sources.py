"""Where the Python files of the engine are."""

from pathlib import Path

SOURCES = Path(__file__).parents[2] / "crates/imori-engine/python"
