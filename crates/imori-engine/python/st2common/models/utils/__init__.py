"""What works on models."""
