//! What is told of a run: text for people; files for programs.

mod text;
