//! Aliases: which form of which alias a command has.

use imori_automation::aliases::{Alias, match_command};
use imori_automation::limits::ALIAS_FORMATS_MAX;
use imori_automation::value::Value;

use crate::json;

fn alias(formats: &str) -> Alias {
    Alias::new(json(formats).as_list().unwrap()).unwrap()
}

#[test]
fn the_one_form_of_a_command_is_found() {
    let aliases = [
        alias(
            r#"["deploy {{ what }}", {"display": "ship it", "representation": ["ship {{ what }}", "send {{what}}"]}]"#,
        ),
        alias(r#"["ship {{ what }} now"]"#),
        alias(r#"[{"display": "see", "representation": ["see [A-Z]+-(?P<number>\\d+)", "bad ("]}]"#),
        alias(
            r#"[{"display": "all", "representation": ["(?:^|\\s)(?P<key>ABC-\\d+)$|x$"], "match_multiple": true}]"#,
        ),
        alias(r#"[{"display": "help only"}]"#),
    ];
    for (command, expected) in [
        ("deploy web", Ok((0, "deploy {{ what }}"))),
        ("send web", Ok((0, "send {{what}}"))),
        ("ship web now", Err("Command 'ship web now' matched more than 1 pattern")),
        ("ship web", Ok((0, "ship {{ what }}"))),
        ("see AB-12 k=v", Ok((2, "see [A-Z]+-(?P<number>\\d+)"))),
        ("k=v", Ok((4, ""))),
        ("dance", Err("Command 'dance' matched no patterns")),
        ("bad (", Err("Command 'bad (' matched no patterns")),
    ] {
        let found = match_command(&aliases.iter().enumerate(), command);
        let found = found.as_ref().map(|found| (found.key, found.form.representation.as_str()));
        let found = found.map_err(ToString::to_string);
        assert_eq!(found, expected.map_err(str::to_owned), "{command}");
    }
    assert_eq!(aliases[2].problems().count(), 1);
}

#[test]
fn formats_of_another_type_and_too_many_are_refused() {
    let number = Alias::new(&[Value::from(5)]).unwrap_err();
    assert_eq!(number.to_string(), "a format is a JSON integer; use a text or an object");
    let many = vec![Value::from("a"); ALIAS_FORMATS_MAX + 1];
    assert!(Alias::new(&many).unwrap_err().to_string().starts_with("an alias has at most"));
}
