//! Limits of the import.

/// Blocks in blocks. nginx itself needs five: `http`, `server`, two of `location`, `if`.
pub(super) const NESTING_MAX: usize = 32;

/// The longest file. Real ones have some 100 KiB; each line may be repeated in every route below it.
pub(super) const FILE_BYTES_MAX: usize = 1024 * 1024;

/// The longest text of routes: what a server gives to all of its locations is written in each of them, so that a small
/// file could become a large one.
pub(super) const ROUTES_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The longest value of a variable after the values of others have been put into it; each may double the last.
pub(super) const TEMPLATE_BYTES_MAX: usize = 16 * 1024;

/// Variables of a location with those of its server. Real ones have a dozen; each is looked for in all others.
pub(super) const VARIABLES_MAX: usize = 256;

/// Blocks of servers and locations in a file. Real ones have some hundred; each is compared with those beside it.
pub(super) const PLACES_MAX: usize = 2_000;

/// The largest program of a regular expression. Real ones need some 10 KiB.
pub(super) const REGEX_BYTES_MAX: usize = 1024 * 1024;
