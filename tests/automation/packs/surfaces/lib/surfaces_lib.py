"""Code that actions and sensors of the pack share."""

ANSWER = 42
