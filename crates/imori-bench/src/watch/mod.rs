//! The watch that runs beside the load: measures the cost of broker and client, and finds the
//! causes of stalls.

pub mod watching;
pub(crate) mod stalls;
pub(crate) mod verdict;
pub(crate) mod findings;
pub(crate) mod period;
pub(crate) mod suspect;
pub(crate) mod evidence;
pub(crate) mod sampler;
pub(crate) mod process_watch;
pub(crate) mod sample;
pub mod facts;
pub(crate) mod place;
pub mod port;
pub(crate) mod cost;
