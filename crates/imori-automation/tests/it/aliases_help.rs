//! The help on aliases.

use imori_automation::aliases::{Alias, HelpPage, help_strings};

use crate::json;

#[test]
fn help_is_filtered_and_paged() {
    let formats = r#"["Run {{a}}", {"display": "stop it", "representation": ["s", "stop"]}, "run all"]"#;
    let alias = Alias::new(json(formats).as_list().unwrap()).unwrap();
    for (filter, limit, offset, expected, count) in [
        ("", 0, 0, vec!["Run {{a}}", "stop it", "run all"], 3),
        ("^run", 0, 0, vec!["Run {{a}}", "run all"], 2),
        ("", 1, 0, vec!["Run {{a}}"], 3),
        ("", 1, 1, vec!["stop it"], 3),
        ("", 0, 2, vec!["run all"], 3),
        ("nothing", 0, 0, vec![], 0),
    ] {
        let page = HelpPage { filter, limit, offset };
        let (shown, found) = help_strings([((), &alias)].into_iter(), page).unwrap();
        let shown: Vec<&str> = shown.iter().map(|help| help.display).collect();
        assert_eq!((shown, found), (expected, count), "{filter} {limit} {offset}");
    }
    assert!(help_strings([((), &alias)].into_iter(), HelpPage { filter: "(", limit: 0, offset: 0 }).is_err());
}
