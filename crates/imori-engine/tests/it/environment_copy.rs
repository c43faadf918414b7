//! Copies of environments.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use imori_engine::for_tests::copy_environment;

#[test]
fn scripts_of_a_copy_name_the_copy_and_all_else_is_shared() {
    let root = tempfile::tempdir().unwrap();
    let (from, to) = (root.path().join("a"), root.path().join("bb"));
    fs::create_dir_all(from.join("bin")).unwrap();
    fs::create_dir_all(from.join("lib/site-packages")).unwrap();
    let script = |path: &Path| format!("#!{}/bin/python\nprint('{}')\n", path.display(), path.display());
    fs::write(from.join("bin/st2"), script(&from)).unwrap();
    fs::set_permissions(from.join("bin/st2"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("/usr/bin/python3", from.join("bin/python")).unwrap();
    fs::write(from.join("lib/site-packages/six.py"), "six").unwrap();
    fs::write(from.join("stamp"), "of the original").unwrap();
    copy_environment(&from, &to).unwrap();
    assert_eq!(fs::read_to_string(to.join("bin/st2")).unwrap(), script(&to));
    assert_eq!(fs::metadata(to.join("bin/st2")).unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(fs::read_link(to.join("bin/python")).unwrap(), Path::new("/usr/bin/python3"));
    fs::write(to.join("stamp"), "of the copy").unwrap();
    assert_eq!(fs::read_to_string(from.join("stamp")).unwrap(), "of the original");
    let inode = |folder: &Path| fs::metadata(folder.join("lib/site-packages/six.py")).unwrap().ino();
    assert_eq!(inode(&from), inode(&to));
    assert_eq!(fs::read_to_string(from.join("bin/st2")).unwrap(), script(&from));
    assert!(copy_environment(&from, &to).is_err(), "it is there");
}
