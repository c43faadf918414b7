//! Error texts of the store: each says what is wrong and how to fix it.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use imori_store::folder::FolderError;
use imori_store::folder::identity::IdentityError;
use imori_store::folder::run_mark::LastEnd;
use imori_store::journal::{AppendError, OpenError};
use imori_store::recovery::{RecoverError, Report};
use imori_store::segment::{PageError, PageRef, SegmentOpenError, SegmentReport};

/// The text of an error, and that of its source.
type Told = (String, Option<String>);

fn told(error: &dyn Error) -> Told {
    (error.to_string(), error.source().map(ToString::to_string))
}

fn disk() -> io::Error {
    io::Error::other("it is gone")
}

fn foreign() -> RecoverError {
    RecoverError::Foreign { name: "journal-1".to_string() }
}

#[test]
fn an_error_says_what_to_do_and_keeps_what_the_disk_said() {
    let (path, name) = (PathBuf::from("data"), || "segment-1".to_string());
    let cause = Some("it is gone");
    let rows: Vec<(Box<dyn Error>, &str, Option<&str>)> = vec![
        (
            Box::new(RecoverError::from(disk())),
            "the journal cannot be read: it is gone; check the disk",
            cause,
        ),
        (Box::new(foreign()), "`journal-1` belongs to another store; take it out of the folder", None),
        (
            Box::new(RecoverError::Version { name: "journal-1".to_string(), version: 9 }),
            "`journal-1` has version `9`; open it with the release that wrote it",
            None,
        ),
        (
            Box::new(RecoverError::Damaged(Box::<Report>::default())),
            "the journal is damaged; restore the whole folder from a copy, or set `journal.on_damage` to `quarantine`",
            None,
        ),
        (
            Box::new(OpenError::from(disk())),
            "the journal cannot be written: it is gone; check the disk",
            cause,
        ),
        (
            Box::new(OpenError::from(foreign())),
            "`journal-1` belongs to another store",
            Some("`journal-1` belongs to another store; take it out of the folder"),
        ),
        (Box::new(OpenError::FilesTooSmall), "use files as large as they were", None),
        (
            Box::new(SegmentOpenError::from(disk())),
            "the segments cannot be opened: it is gone; check the disk",
            cause,
        ),
        (
            Box::new(SegmentOpenError::Foreign { name: name() }),
            "`segment-1` belongs to another store; take it out of the folder",
            None,
        ),
        (
            Box::new(SegmentOpenError::Version { name: name(), version: 9 }),
            "`segment-1` has version `9`; open it with the release that wrote it",
            None,
        ),
        (
            Box::new(SegmentOpenError::Damaged(Box::<SegmentReport>::default())),
            "segments are damaged or missing; restore the whole folder from a copy, or set `journal.on_damage` to",
            None,
        ),
        (Box::new(PageError::Disk(disk())), "a page cannot be read: it is gone; check the disk", cause),
        (Box::new(PageError::Gone(PageRef::new(7, 3))), "page `3` of segment `7` is gone", None),
        (Box::new(AppendError::Nothing), "no record is given; append at least one", None),
        (
            Box::new(AppendError::TooLarge { bytes: 9, bytes_max: 8 }),
            "records of `9` bytes do not fit into a journal file; send at most 8 bytes",
            None,
        ),
        (Box::new(AppendError::Poisoned), "the disk failed; restart to recover what is on it", None),
        (
            Box::new(FolderError::Disk { path: path.clone(), error: disk() }),
            "`data` cannot be used: it is gone; check the folder and its disk",
            cause,
        ),
        (
            Box::new(FolderError::Identity { path: path.clone(), error: IdentityError::Damaged }),
            "data folder `data`: `store`, which says which store this is, does not verify; restore this file",
            None,
        ),
        (
            Box::new(FolderError::Missing { path: path.clone(), names: vec!["segments"] }),
            "data folder `data` has lost its folder `segments/`, with all that stood there; restore",
            None,
        ),
        (
            Box::new(FolderError::Held { path, process: None }),
            "another process has the data folder `data`; stop it, or use another folder",
            None,
        ),
        (
            Box::new(IdentityError::from(disk())),
            "`store` cannot be read or made: it is gone; check the disk",
            cause,
        ),
    ];
    for (error, text, behind) in rows {
        let (told, source) = told(error.as_ref());
        assert!(told.contains(text), "{told}");
        let is_kept = source.as_deref().map(|source| behind.is_some_and(|behind| source.contains(behind)));
        assert_eq!(is_kept, behind.map(|_| true), "{told}: {source:?}");
    }
}

#[test]
fn each_end_of_a_process_has_its_words() {
    let ends = [LastEnd::First, LastEnd::Clean, LastEnd::Killed, LastEnd::DiskFailed, LastEnd::PowerLost];
    let mut words: Vec<String> = ends.iter().map(ToString::to_string).collect();
    assert!(words.iter().all(|words| words.len() > 3), "{words:?}");
    words.dedup();
    assert_eq!(words.len(), ends.len(), "{words:?}");
}
