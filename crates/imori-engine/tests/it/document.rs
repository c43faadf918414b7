//! Documents of packs: lines of nodes, and paths inside a folder.

use imori_engine::packs::document::{parse_document, path_inside};

#[test]
fn node_knows_its_line() {
    let document = parse_document("a.yaml", "a: 1\nb:\n  c:\n    - x\n    - d: y\n").unwrap();
    assert_eq!(document.line(&["b"]), Some(2));
    assert_eq!(document.line(&["b", "c", "1", "d"]), Some(5));
    assert_eq!(document.line(&["b", "c", "1", "none"]), Some(5));
    assert_eq!(document.problem(&["b", "none"], "is wrong").to_string(), "a.yaml:2: is wrong");
}

#[test]
fn path_may_not_leave_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/etc/hostname", folder.path().join("link")).unwrap();
    for path in ["../a", "/etc/passwd", "a/../../b", "", ".", "link"] {
        assert!(path_inside(folder.path(), path).is_err(), "{path}");
    }
    assert!(path_inside(folder.path(), "lib/run.py").is_ok());
}
