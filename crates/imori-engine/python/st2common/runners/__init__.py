"""Base classes of actions."""
