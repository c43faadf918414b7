//! Runs the real core and protocol crates on virtual cells, the seed choosing the interleaving.
