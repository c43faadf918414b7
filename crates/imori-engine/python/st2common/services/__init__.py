"""Services that actions and sensors are given."""
