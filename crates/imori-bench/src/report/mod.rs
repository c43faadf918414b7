//! Reports of a run: text and a live view for people, an HTML page to publish, files for programs.

pub(crate) mod compare;
pub(crate) mod write;
pub(crate) mod html;
mod several;
mod one;
mod measure;
pub(crate) mod spread;
pub(crate) mod csv;
pub(crate) mod runs;
pub(crate) mod packed;
pub(crate) mod fit;
pub(crate) mod live;
mod text;
mod drift;
#[cfg(test)]
pub(crate) mod sample;
