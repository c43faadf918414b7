//! Building blocks of an HTML page: tables, figures, plots, and formatted numbers.

pub(crate) mod figure;
pub(crate) mod graphs;
pub(crate) mod heat;
pub(crate) mod columns;
pub mod plot;
pub(crate) mod frame;
pub(crate) mod table;
pub mod axis;
pub(crate) mod buckets;
pub(crate) mod verdict;
pub(crate) mod markup;
pub mod quantity;
#[cfg(test)]
pub(crate) mod well_formed;
