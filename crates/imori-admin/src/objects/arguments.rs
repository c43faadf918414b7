//! Arguments in requests: converts JSON to the values that the broker's argument tables read.

use imori_core::message::Value as CoreValue;
use imori_core::name::Name;
use imori_core::route::Arguments;
use imori_server::json_value::value_of;
use serde_json::{Map, Value};

/// Returns the names and values of a declaration's arguments.
pub(crate) fn entries(arguments: &Map<String, Value>) -> impl Iterator<Item = (&[u8], CoreValue<'_>)> {
    arguments.iter().map(|(name, value)| (name.as_bytes(), value_of(value)))
}

/// Returns the arguments of a binding.
pub(crate) fn binding_arguments(arguments: &Map<String, Value>) -> Arguments {
    Arguments::new(entries(arguments).map(|(name, value)| (Name::new(name), value.into_owned())))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::path::Path;
    use std::{env, fs};

    use imori_core::arguments::QUEUE_ARGUMENTS;
    use imori_core::policy::QueueKind;

    const BEGIN: &str = "<!-- The table is written by a test; do not edit it. -->\n\n";
    const END: &str = "\n<!-- The end of the table. -->";

    #[test]
    fn the_page_has_the_table_of_queue_arguments() {
        let mut table =
            String::from("| argument | values | queues | policy key | effect |\n|---|---|---|---|---|\n");
        for argument in &QUEUE_ARGUMENTS {
            let queues = match argument.kinds {
                [] => "none",
                [QueueKind::Classic] => "classic",
                [QueueKind::Quorum] => "quorum",
                [QueueKind::Stream] => "streams",
                [_, _] => "classic, quorum",
                _ => "all",
            };
            let policy = argument.policy.as_ref().map_or(String::from("–"), |key| {
                let operator = if key.is_limit { ", also of operator policies" } else { "" };
                format!("`{}`{operator}", key.name)
            });
            let effect = match argument.kinds {
                [] => "refused; the settings of a stream that a NATS client has made",
                _ if argument.has_effect() => argument.about,
                _ => "checked, kept and compared; no effect on one node",
            };
            let (name, takes) = (argument.name, argument.takes);
            writeln!(table, "| `{name}` | {takes} | {queues} | {policy} | {effect} |").unwrap();
        }
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/queue-arguments.md");
        let page = fs::read_to_string(&path).unwrap();
        let (before, rest) = page.split_once(BEGIN).unwrap();
        let (written, after) = rest.split_once(END).unwrap();
        if env::var_os("IMORI_BLESS").is_some() {
            fs::write(path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
            return;
        }
        assert!(
            written == table,
            "the page is stale; run `IMORI_BLESS=1 cargo test -p imori-admin --lib table_of_queue_arguments`"
        );
    }
}
