//! Load and truth: a client of any broker.
