"""A Python action."""

from st2common.runners.base_action import Action


class PythonAction(Action):
    """Counts."""

    def run(self, count: int, secret: str | None = None, options: dict[str, int] | None = None) -> dict[str, int]:
        """Returns what it was given."""
        return {"count": count, "length": len(secret or ""), "depth": (options or {}).get("depth", 0)}
