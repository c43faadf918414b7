//! The broker ends at any moment, and what follows from that.
//!
//! `restart` goes on from the disk as the server does; `image` looks at what a crash would leave, by reading of
//! its own, and holds it against what clients know.

mod restart;
mod image;

pub(crate) use image::check_image;
pub(crate) use restart::restore;
