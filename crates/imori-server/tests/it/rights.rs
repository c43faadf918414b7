//! Rights as clients of each protocol meet them.
