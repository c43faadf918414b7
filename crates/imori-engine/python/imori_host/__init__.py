"""Runs the Python actions and sensors of a pack for the automation engine."""
