use std::fs::Permissions;
use std::process::{Command, Stdio};

use super::*;

/// A path for a folder of this test; nothing exists there.
fn place(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("imori-folder-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    path
}

fn opened(path: &Path) -> StoreFolder {
    StoreFolder::open(path, OnDamage::Quarantine).expect("the folder is there for us")
}

#[test]
fn a_folder_is_made_for_its_owner_alone_and_keeps_its_number() {
    let above = place("made");
    let path = above.join("a").join("b");
    let folder = opened(&path);
    assert_eq!((folder.last_end(), folder.is_open_to_others()), (LastEnd::First, false));
    for made in [&above, &path, &path.join(JOURNAL), &path.join(SEGMENTS)] {
        let mode = fs::metadata(made).expect("it is made").permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{}", made.display());
    }
    let store = folder.store();
    drop(folder);
    assert_eq!(opened(&path).store(), store);
    assert_ne!(opened(&place("other")).store(), store);
    let _ = fs::remove_dir_all(above);
}

#[test]
fn the_last_end_is_told() {
    for (name, end, expected) in [
        (
            "clean",
            (|folder| folder.end_clean().expect("the disk is well")) as fn(&StoreFolder),
            LastEnd::Clean,
        ),
        ("killed", |_| (), LastEnd::Killed),
        ("failed", |folder| folder.disk_failed().expect("it takes the mark"), LastEnd::DiskFailed),
        (
            "failed-and-ended",
            |folder| {
                folder.disk_failed().expect("it takes the mark");
                assert!(matches!(folder.end_clean(), Err(FolderError::DiskFailed)));
            },
            LastEnd::DiskFailed,
        ),
        (
            "unmarked",
            |folder| fs::remove_file(folder.path().join("run")).expect("it is there"),
            LastEnd::PowerLost,
        ),
    ] {
        let path = place(name);
        end(&opened(&path));
        let looked = FolderInspection::open(&path).expect("nobody has it");
        assert_eq!(looked.last_end, expected, "{name}");
        drop(looked);
        assert_eq!(opened(&path).last_end(), expected, "{name}");
        let _ = fs::remove_dir_all(path);
    }
}

#[test]
fn a_folder_that_others_may_enter_is_told() {
    let path = place("shown");
    drop(opened(&path));
    fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("it is ours");
    assert!(opened(&path).is_open_to_others());
    let _ = fs::remove_dir_all(path);
}

/// The environment variable that makes a process hold this folder until its input ends.
const HOLDS: &str = "IMORI_STORE_HOLDS";

#[test]
fn who_has_the_folder_is_told_and_a_kill_gives_it_back() {
    let path = place("held");
    let store = opened(&path).store();
    let mut holder = Command::new(std::env::current_exe().expect("this is one"))
        .args(["--exact", "folder::folder::tests::holds_a_folder", "--nocapture"])
        .env(HOLDS, &path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let said = io::BufRead::lines(io::BufReader::new(holder.stdout.take().expect("it is piped")));
    let is_held = said.map_while(Result::ok).any(|line| line.contains("held"));
    assert!(is_held);
    for refused in [StoreFolder::open(&path, OnDamage::Quarantine).err(), FolderInspection::open(&path).err()]
    {
        let told = refused.expect("another process has it").to_string();
        let expected = format!("process `{}` has the data folder `{}`; stop it", holder.id(), path.display());
        assert!(told.starts_with(&expected), "{told}");
    }
    holder.kill().expect("it runs");
    holder.wait().expect("it ends");
    let folder = opened(&path);
    assert_eq!((folder.store(), folder.last_end()), (store, LastEnd::Killed));
    let _ = fs::remove_dir_all(path);
}

/// The process that is killed by the test above.
#[test]
fn holds_a_folder() {
    let Some(path) = std::env::var_os(HOLDS) else { return };
    let _folder = opened(Path::new(&path));
    io::Write::write_all(&mut io::stdout(), b"held\n").expect("somebody reads");
    let _ = io::stdin().read(&mut [0]);
}

#[test]
fn a_folder_that_cannot_be_a_store_is_refused_in_words() {
    for (name, hurt, expected) in [
        (
            "no-identity",
            (|path| fs::remove_file(path.join("store")).expect("it is there")) as fn(&Path),
            "has `run` and no file `store`; restore that file",
        ),
        (
            "damaged-identity",
            |path| fs::write(path.join("store"), b"something else").expect("it is ours"),
            "does not verify; restore this file",
        ),
        (
            "a-file",
            |path| {
                fs::remove_dir_all(path).expect("it is ours");
                fs::write(path, b"").expect("it is ours");
            },
            "cannot be used",
        ),
    ] {
        let path = place(name);
        drop(opened(&path));
        hurt(&path);
        let told = StoreFolder::open(&path, OnDamage::Quarantine).expect_err("it is refused").to_string();
        assert!(told.contains(expected), "{name}: {told}");
        let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
    }
}

#[test]
fn a_folder_of_a_store_that_is_gone_is_told_and_made_anew_only_to_go_on_without_it() {
    for gone in [&[JOURNAL][..], &[SEGMENTS], &[JOURNAL, SEGMENTS]] {
        let path = place("gone");
        assert!(opened(&path).missing().is_empty(), "a new store has lost nothing");
        gone.iter().for_each(|name| fs::remove_dir_all(path.join(name)).expect("it is there"));

        let refused = StoreFolder::open(&path, OnDamage::Refuse).expect_err("it is refused").to_string();
        let names = gone.iter().map(|name| format!("has lost its folder `{name}/`, ")).collect::<String>();
        assert!(refused.contains(&names) && refused.contains("`journal.on_damage`"), "{refused}");
        assert_eq!(FolderInspection::open(&path).expect("nobody has it").missing, gone);
        assert!(gone.iter().all(|name| !path.join(name).exists()), "it was made anew");

        assert_eq!(opened(&path).missing(), gone);
        assert!(StoreFolder::open(&path, OnDamage::Refuse).expect("it is whole").missing().is_empty());
        let _ = fs::remove_dir_all(path);
    }
}

#[test]
fn a_first_start_that_was_cut_off_is_a_first_one_again() {
    let path = place("cut-off");
    fs::create_dir_all(path.join(JOURNAL)).expect("there is none");
    let folder = opened(&path);
    assert_eq!((folder.last_end(), folder.missing()), (LastEnd::First, &[][..]));
    let _ = fs::remove_dir_all(path);
}

#[test]
fn looking_changes_nothing_and_needs_a_store() {
    let path = place("looked");
    assert!(matches!(FolderInspection::open(&path), Err(FolderError::Absent { .. })));
    fs::create_dir(&path).expect("there is none");
    assert!(matches!(FolderInspection::open(&path), Err(FolderError::Absent { .. })));
    assert_eq!(fs::read_dir(&path).expect("it is there").count(), 0);
    let _ = fs::remove_dir_all(path);
}

#[test]
fn a_file_that_cannot_be_read_is_not_taken_for_one_that_is_not_there() {
    for (name, expected) in [("lock", "lock` cannot be used"), ("store", "`store` cannot be read or made")] {
        let path = place(&format!("unreadable-{name}"));
        drop(opened(&path));
        fs::remove_file(path.join(name)).expect("it is there");
        // It links to itself.
        std::os::unix::fs::symlink(name, path.join(name)).expect("the folder is ours");
        let told = FolderInspection::open(&path).expect_err("it is refused").to_string();
        assert!(told.contains(expected), "{name}: {told}");
        let _ = fs::remove_dir_all(path);
    }
}

#[test]
fn boot_ids_are_read() {
    let some = Some(BootId(*b"\x6b\x0f\x1d\x0c\x5f\x0e\x4f\x3a\x9d\x3b\x0d\x7a\x5c\x2f\x1e\x11"));
    for (text, expected) in [
        ("6b0f1d0c-5f0e-4f3a-9d3b-0d7a5c2f1e11\n", some),
        ("00000000-0000-0000-0000-000000000000\n", None),
        ("6b0f1d0c", None),
        ("", None),
        ("6b0f1d0c-5f0e-4f3a-9d3b-0d7a5c2f1e1x", None),
        ("é", None),
    ] {
        assert_eq!(boot_id(text), expected, "{text}");
    }
    assert!(boot().is_some(), "this system has one");
}
