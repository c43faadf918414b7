"""Objects of the API."""
