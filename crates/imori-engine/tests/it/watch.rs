//! The watch of pack folders.

use std::fs;

use imori_engine::packs::watch::{PackChange, PackWatch};

#[test]
fn change_is_told_once() {
    let root = tempfile::tempdir().unwrap();
    let pack = root.path().join("packs/demo");
    let mut watch = PackWatch::new(vec![root.path().join("packs")], root.path().join("configs"));
    let mut changes = |change: &dyn Fn()| {
        change();
        let now = watch.look();
        let differs = watch.differ(&now);
        let changes = watch.changes(now);
        assert_eq!(differs, !changes.is_empty());
        let now = watch.look();
        assert_eq!(watch.changes(now), [], "told twice");
        changes
    };
    let demo = |change| vec![("demo".to_owned(), change)];
    assert_eq!(changes(&|| {}), []);
    let added = changes(&|| {
        fs::create_dir_all(pack.join("actions/workflows")).unwrap();
        fs::create_dir_all(root.path().join("configs")).unwrap();
        fs::write(pack.join("pack.yaml"), "name: demo").unwrap();
    });
    assert_eq!(added, demo(PackChange::Added));
    let changed = changes(&|| fs::write(pack.join("actions/a.yaml"), "name: a").unwrap());
    assert_eq!(changed, demo(PackChange::Changed));
    let code = changes(&|| fs::write(pack.join("actions/a.py"), "pass").unwrap());
    assert_eq!(code, demo(PackChange::CodeChanged));
    let workflow = changes(&|| fs::write(pack.join("actions/workflows/a.yaml"), "version: 1.0").unwrap());
    assert_eq!(workflow, demo(PackChange::CodeChanged));
    let configured = changes(&|| fs::write(root.path().join("configs/demo.yaml"), "a: 1").unwrap());
    assert_eq!(configured, demo(PackChange::Changed));
    assert_eq!(changes(&|| fs::remove_dir_all(&pack).unwrap()), demo(PackChange::Removed));
}
