//! Sources of packs, and the index.

use imori_engine::packs::source::{PackIndex, PackSource};

#[test]
fn source_is_a_name_an_address_or_a_folder() {
    let git = |address: &str, version: Option<&str>| {
        Ok(PackSource::Git { address: address.to_owned(), version: version.map(str::to_owned) })
    };
    let index = |name: &str, version: Option<&str>| {
        Ok(PackSource::Index { name: name.to_owned(), version: version.map(str::to_owned) })
    };
    let rows = [
        ("github", index("github", None)),
        ("github=1.2.0", index("github", Some("1.2.0"))),
        ("owner/repo", git("https://github.com/owner/repo", None)),
        ("owner/repo=main", git("https://github.com/owner/repo", Some("main"))),
        ("https://h.example/a.git=v1", git("https://h.example/a.git", Some("v1"))),
        ("https://h.example/a=fix/b", git("https://h.example/a", Some("fix/b"))),
        ("git@h.example:a/b.git=1.0.0", git("git@h.example:a/b.git", Some("1.0.0"))),
        ("ssh://git@h.example/a", git("ssh://git@h.example/a", None)),
    ];
    for (text, expected) in rows {
        assert_eq!(PackSource::parse(text), expected, "{text}");
    }
    let wrong = [
        "",
        "-u",
        "ext::sh -c true",
        "ext::x",
        "a=--upload-pack",
        "a=b..c",
        "a=",
        "a/b/c",
        "ftp://h/a",
        "file://a",
        "/no/such/folder",
        "a b",
        "--upload-pack=x/y",
    ];
    for text in wrong {
        assert!(PackSource::parse(text).is_err(), "{text}");
    }
}

#[test]
fn first_index_counts_and_a_search_prefers_names() {
    let text = br#"{"packs": {"mail": {"name": "mail", "keywords": ["smtp"], "repo_url": "https://h/mail", "version": "1.0.0"},
        "chat": {"name": "chat", "keywords": ["mail"], "repo_url": "https://h/chat"}}}"#;
    let mut index = PackIndex::parse(text).unwrap();
    index.merge(PackIndex::parse(br#"{"packs": {"mail": {"repo_url": "https://other"}}}"#).unwrap());
    assert_eq!(index.repository("mail"), Ok(("https://h/mail".to_owned(), Some("1.0.0".to_owned()))));
    let names: Vec<_> = index.search("Mail").iter().filter_map(|pack| pack.get("name")?.as_str()).collect();
    assert_eq!(names, ["mail", "chat"]);
    assert!(index.repository("none").is_err());
    for wrong in [&b"[]"[..], b"{}", b"{\"packs\": []}", b"<html>"] {
        assert!(PackIndex::parse(wrong).is_err());
    }
}
