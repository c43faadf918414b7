"""Shared by the tests of the stall detector: known causes, and the score."""
