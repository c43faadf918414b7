"""A sensor that no file describes rightly."""
