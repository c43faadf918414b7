//! Reports of a run: text and a live view for people, an HTML page to publish, files for programs.

pub mod compare;
pub mod write;
pub mod html;
mod several;
mod one;
mod measure;
pub mod spread;
pub(crate) mod csv;
pub mod runs;
pub mod packed;
pub mod fit;
pub(crate) mod live;
mod text;
mod drift;
#[cfg(test)]
pub(crate) mod sample;
