//! The pages of the reference that have a table from the code.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use imori_admin::for_tests::{Endpoint, Login, api_endpoints, v1_endpoints};
use imori_core::arguments::QUEUE_ARGUMENTS;
use imori_core::authorize::Action;
use imori_core::policy::QueueKind;

const BEGIN: &str = "<!-- The table is written by a test; do not edit it. -->\n\n";
const END: &str = "\n<!-- The end of the table. -->";

/// Checks that a page has this table, or writes it with `IMORI_BLESS`. `test` is a part of the test's name.
fn check(page: &str, table: &str, test: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(page);
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (written, after) = rest.split_once(END).unwrap();
    if env::var_os("IMORI_BLESS").is_some() {
        fs::write(path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
        return;
    }
    assert!(
        written == table,
        "the page is stale; run `IMORI_BLESS=1 cargo test -p imori-admin --test it {test}`"
    );
}

#[test]
fn the_page_on_rights_has_the_table_of_endpoints() {
    let mut table =
        String::from("| method | path | tag | right | largest body | audited |\n|---|---|---|---|---|---|\n");
    for endpoint in api_endpoints().into_iter().chain(v1_endpoints()) {
        let Endpoint { method, path, access, .. } = &endpoint;
        let right = access.right;
        let login = match access.login {
            Login::NeededFromElsewhere => "; from this machine none",
            Login::Needed | Login::NotNeeded => "",
        };
        let tag = match access.action {
            _ if access.login == Login::NotNeeded => "none",
            Action::Monitor => "`monitoring`",
            Action::SetPolicy => "`policymaker`",
            Action::Administer => "`administrator`",
            _ => "`management`",
        };
        let body = access.body_bytes_max >> 20;
        let audited = if access.is_change { "yes" } else { "refusals" };
        writeln!(table, "| {method} | `{path}` | {tag}{login} | {right} | {body} MiB | {audited} |").unwrap();
    }
    check("rights.md", &table, "table_of_endpoints");
}

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
    check("queue-arguments.md", &table, "table_of_queue_arguments");
}
