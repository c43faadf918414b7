//! The index of a stream: its messages by sequence number and by subject, the filters that readers ask it with, and changes
//! of subjects.

mod index;
mod sequences;
mod subjects;
mod subject_map;
mod digest;
mod filter;
mod subject;

pub use digest::SubjectDigest;
pub use filter::{Filter, StreamPurge};
pub use index::Index;
pub use subject::{is_literal, is_subset, is_valid};
pub use subject_map::{SubjectMap, SubjectMapError};
