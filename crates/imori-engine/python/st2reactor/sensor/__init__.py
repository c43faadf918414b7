"""Base classes of sensors."""
