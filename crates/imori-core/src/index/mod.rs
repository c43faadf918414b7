//! The index of a stream: its messages by sequence number and by subject, and the filters that readers ask it with.

mod index;
mod sequences;
mod subjects;
mod subject_map;
mod filter;

pub use filter::{Filter, StreamPurge};
pub use index::Index;
pub use subject_map::{MapSubject, SubjectMap};
