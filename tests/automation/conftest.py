"""Fixtures: an automation for a module, and automations on the same data."""

from harness.automation import automation, start

__all__ = ["automation", "start"]
