//! Whole files, from `tests/nginx`: each `.conf` with the routes that it becomes, and with its problems if it has any.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use toml::Table;

use super::syntax::parse;
use super::{Imported, import};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/nginx")
}

/// The names of all configurations, without `.conf`.
fn cases() -> Vec<String> {
    let files = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let configurations = files.filter(|path| path.extension().is_some_and(|extension| extension == "conf"));
    let mut names: Vec<String> =
        configurations.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

fn imported(name: &str) -> Imported {
    let file = format!("{name}.conf");
    import(&fs::read_to_string(folder().join(&file)).unwrap(), &file)
}

fn problems(imported: &Imported) -> String {
    imported.problems.iter().map(|problem| format!("{}: {problem}\n", problem.line)).collect()
}

// SECURITY ROOM-13, by `restrictions.conf`
#[test]
fn configurations_become_their_routes() {
    assert!(cases().len() >= 9, "{:?}", cases());
    for name in cases() {
        let imported = imported(&name);
        let read = |extension: &str| {
            fs::read_to_string(folder().join(format!("{name}.{extension}"))).unwrap_or_default()
        };
        assert_eq!(imported.routes, read("toml"), "tests/nginx/{name}.toml");
        assert_eq!(problems(&imported), read("txt"), "tests/nginx/{name}.txt");
    }
}

/// All strings of a table, at whatever depth.
fn strings(value: &toml::Value, found: &mut Vec<String>) {
    match value {
        toml::Value::String(text) => found.push(text.clone()),
        toml::Value::Array(values) => values.iter().for_each(|value| strings(value, found)),
        toml::Value::Table(table) => table.values().for_each(|value| strings(value, found)),
        _ => {}
    }
}

#[test]
fn ruby_comes_through_unchanged() {
    for name in ["async_api", "async_gateway"] {
        let imported = imported(name);
        assert_eq!(imported.problems, [], "{name}");
        let mut found = Vec::new();
        strings(&toml::Value::Table(imported.routes.parse::<Table>().unwrap()), &mut found);
        let text = fs::read_to_string(folder().join(format!("{name}.conf"))).unwrap();
        let mut waiting = parse(&text).unwrap();
        let mut count = 0;
        while let Some(directive) = waiting.pop() {
            if directive.name.ends_with("_code") {
                count += 1;
                assert!(found.contains(&directive.words[0]), "{name}, line {}", directive.line);
            }
            waiting.extend(directive.block().iter().cloned());
        }
        assert!(count > 0, "{name} has scripts");
    }
}

#[test]
fn a_broken_file_becomes_nothing_but_its_problem() {
    let imported = import("http {\n  server {\n", "broken.conf");
    assert_eq!((imported.routes.as_str(), imported.listeners.len()), ("", 0));
    assert_eq!(
        problems(&imported),
        "2: the block that opens here has no closing `}`; the file ends on line 3\n"
    );
    let long = import(&"a".repeat(super::limits::FILE_BYTES_MAX + 1), "long.conf");
    assert!(problems(&long).contains("more than 1048576 bytes"));
}

#[test]
fn a_small_file_does_not_become_an_endless_one() {
    let begin = Instant::now();
    let script = format!("mruby_rewrite_handler_code '{}';", "x\n".repeat(100_000));
    let many_locations: String =
        (0..1_900).map(|number| format!("location /{number} {{ internal; }}")).collect();
    let imported = import(&format!("server {{ {script} {many_locations} }}"), "large.conf");
    assert!(problems(&imported).contains("the routes become too long"), "{}", imported.problems.len());
    let servers = "server { location / { return 200; } }\n".repeat(1_001);
    assert_eq!(
        problems(&import(&servers, "servers.conf")),
        "1001: the file has more than 2000 servers and locations; import parts of it\n"
    );
    let doubling: String =
        (1..200).map(|number| format!("set $v{number} \"$v{0}$v{0}\";", number - 1)).collect();
    let imported =
        import(&format!("server {{ set $v0 x; {doubling} location / {{ return 200; }} }}"), "double.conf");
    assert!(problems(&imported).contains("longer than 16384 bytes"));
    let nested: String = (0..30).map(|depth| format!("location /{} {{", "a".repeat(depth))).collect();
    import(&format!("server {{ {nested} {} }}", "}".repeat(30)), "nested.conf");
    let sets: String = (0..25_000).map(|number| format!("set $v{number} \"$v{number}\";")).collect();
    import(&format!("server {{ {sets} location / {{ return 200; }} }}"), "sets.conf");
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
}

/// Holds for every text: nothing panics, problems have lines of the file, and routes are TOML.
fn check(text: &str) {
    let imported = import(text, "any.conf");
    let lines = text.matches('\n').count() + 1;
    for problem in &imported.problems {
        assert!((1..=lines).contains(&problem.line), "{problem:?} of {lines} lines in {text:?}");
        assert!(!problem.message.is_empty() && !problem.message.contains('\n'), "{problem:?}");
    }
    let parsed = imported.routes.parse::<Table>();
    assert!(parsed.is_ok(), "{parsed:?}\n{}\nof {text:?}", imported.routes);
    assert!(!imported.routes.is_empty() || !imported.problems.is_empty());
}

/// Words that configurations are made of, so that some of the texts go far.
const WORDS: &[&str] = &[
    "http",
    "server",
    "location",
    "upstream",
    "types",
    "{",
    "{",
    "}",
    "}",
    ";",
    ";",
    ";",
    "\n",
    " ",
    "\"",
    "'",
    "\\",
    "listen",
    "80",
    "[::]:1",
    "ssl",
    "default_server",
    "server_name",
    "a.example",
    "*.b",
    "_",
    "~^x",
    "=",
    "^~",
    "~",
    "~*",
    "/",
    "/a",
    "/a/",
    "^/(?<n>x)$",
    "\\.rb$",
    "@x",
    "root",
    "alias",
    "index",
    "proxy_pass",
    "http://u/x",
    "https://$host",
    "proxy_set_header",
    "Host",
    "$host",
    "${uri}",
    "$1",
    "$v",
    "proxy_read_timeout",
    "1m30s",
    "set",
    "return",
    "200",
    "301",
    "444",
    "internal",
    "client_max_body_size",
    "8m",
    "0",
    "default_type",
    "text/x",
    "html",
    "add_header",
    "always",
    "include",
    "mime.types",
    "mruby_init_code",
    "mruby_rewrite_handler_code",
    "'a\nb'",
    "mruby_content_handler",
    "x.rb",
    "cache",
    "mruby_set_code",
    "mruby_set",
    "mruby_add_handler",
    "on",
    "mruby_output_body_filter",
    "mruby_ssl_handshake_handler_code",
    "mruby_post_read_handler",
    "mruby_cache",
    "mruby_upstream_keepalive",
    "init_by_lua_block",
    "if",
    "gzip",
    "#",
    "'''\n'",
    "\r\n",
    "\u{0}",
    "é",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_text_panics(text in "\\PC*|(?s:.){0,200}") {
        check(&text);
    }

    #[test]
    fn no_configuration_panics(words in proptest::collection::vec(proptest::sample::select(WORDS), 0..60)) {
        check(&words.join(" "));
    }

    #[test]
    fn no_location_panics(words in proptest::collection::vec(proptest::sample::select(WORDS), 0..30)) {
        let words: Vec<&str> = words.into_iter().filter(|word| !matches!(*word, "\"" | "'" | "\\" | "#")).collect();
        check(&format!("server {{ location /a/ {{ {} ; }} location ~ b {{ internal; }} }}", words.join(" ")));
        check(&format!("http {{ {} ; server {{ location / {{ return 200; }} }} }}", words.join(" ")));
    }
}
