//! Backups of streams as files.

use std::fs;
use std::io::{Read as _, Write as _};

use imori::for_tests::{NewBackup, open_backup};
use serde_json::json;

#[test]
fn a_backup_is_read_as_it_was_written_and_none_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let facts = json!({"config": {"name": "S"}, "state": {}});
    fs::create_dir(folder.path().join("in")).unwrap();
    for name in ["in", "new/", "file"] {
        let path = folder.path().join(name);
        let mut backup = NewBackup::create(&path, &facts).unwrap();
        backup.write_all(b"archive\nof a stream").unwrap();
        backup.keep().unwrap();
        let (read, mut archive) = open_backup(&path).unwrap();
        let mut bytes = Vec::new();
        archive.read_to_end(&mut bytes).unwrap();
        assert_eq!((read, &*bytes), (facts.clone(), &b"archive\nof a stream"[..]), "{name}");
        assert!(NewBackup::create(&path, &facts).is_err(), "{name}");
        assert!(open_backup(&path).is_ok(), "{name}");
    }
    drop(NewBackup::create(&folder.path().join("half"), &facts).unwrap());
    assert!(open_backup(&folder.path().join("half")).is_err());
}
