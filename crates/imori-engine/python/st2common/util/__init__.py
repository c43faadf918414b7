"""Functions that packs use."""
