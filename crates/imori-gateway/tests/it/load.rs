//! Routes files and their faults.

use std::fs;
use std::path::Path;

use imori_gateway::for_tests::{RouteMatch, RouteQuery, load};

fn faults(text: &str) -> Vec<String> {
    let read = load(text, Path::new("routes.toml"));
    read.err().map(|problems| problems.to_string()).unwrap_or_default().lines().map(str::to_owned).collect()
}

#[test]
fn all_faults_are_reported_by_line() {
    let text = "
[gateway]
vhots = '/'

[[route]]
path = '/a'

[[route]]
path = '/b/{id'
return = { status = 99 }

[[route]]
path = '/c'
publish = { queue = 'q', topic = 't' }

[[route]]
path = '/d/{x}'
publish = { topic = 'o.{y}' }

[other]

[[route]]
path = '/e'
content = { code = '1' }
handler = { code = '2' }

[[route]]
path = '/f'
content = { code = '1' }
return = { status = 200 }
";
    let found = faults(text);
    for (line, part) in [
        (3, "vhots"),
        (5, "exactly one action"),
        (8, "brace"),
        (8, "99"),
        (12, "exactly one of"),
        (16, "`{y}`"),
        (20, "there is no `other`"),
        (25, "unknown field `handler`"),
        (27, "keep one of `return`, `content`"),
    ] {
        let start = format!("routes.toml:{line}: ");
        assert!(
            found.iter().any(|fault| fault.starts_with(&start) && fault.contains(part)),
            "{line} {part}: {found:#?}"
        );
    }
}

#[test]
fn a_fault_is_one_line() {
    assert_eq!(faults("[[route]]\nname = \"a\\nb\\r\\u0085\"\npath = '/'\n").len(), 1);
}

#[test]
fn a_broken_document_is_reported_once() {
    assert_eq!(faults("[[route]\n").len(), 1);
}

#[test]
fn routes_that_cannot_be_told_apart_are_faults() {
    let text = "
[[route]]
path = '/a/{id}'
return = { status = 200 }

[[route]]
path = '/a/{name}'
return = { status = 200 }
";
    assert!(faults(text).iter().any(|fault| fault.starts_with("routes.toml:6: ")), "{:?}", faults(text));
}

#[test]
fn limits_and_users_are_inherited() {
    let text = "
gateway = { user = 'web', vhost = 'v' }
limits = { body_bytes = 10, time_ms = 5 }

[[route]]
path = '/a'
limits = { time_ms = 7 }
return = { status = 200 }

[[route]]
path = '/b'
user = 'joe'
login = 'optional'
return = { status = 200 }
";
    let read = load(text, Path::new("r")).unwrap();
    let [a, b] = read.routes.as_slice() else { panic!("two routes") };
    assert_eq!((a.limits.body_bytes, a.limits.time.as_millis()), (10, 7));
    assert_eq!((a.user.as_deref(), b.user.as_deref()), (Some("web"), Some("joe")));
    assert_eq!((a.vhost.as_str(), b.limits.time.as_millis()), ("v", 5));
}

#[test]
fn rest_of_a_path_after_a_prefix_is_a_parameter() {
    let text = "
[[route]]
prefix = '/a/'
proxy = { to = 'http://127.0.0.1:1/b/{rest}' }
";
    let read = load(text, Path::new("r")).unwrap();
    for (path, expected) in [("/a/", ""), ("/a/x/y", "x/y")] {
        let asked = RouteQuery { host: "h", port: 80, method: &http::Method::GET, path, is_internal: false };
        let RouteMatch::Route(_, parameters) = read.router.find(asked) else { panic!("{path} has a route") };
        assert_eq!(parameters, [(String::from("rest"), String::from(expected))], "{path}");
    }
}

#[test]
fn what_is_imported_from_nginx_can_be_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../imori-nginx/tests/nginx");
    let mut count = 0;
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "conf") {
            continue;
        }
        count += 1;
        let imported = imori_nginx::import(&fs::read_to_string(&path).unwrap(), "nginx.conf");
        // The scripts and folders of the examples are not on this machine.
        let is_missing =
            |line: &String| line.contains("cannot be read") || line.contains("there is no folder");
        let other: Vec<String> =
            faults(&imported.routes).into_iter().filter(|line| !is_missing(line)).collect();
        assert!(other.is_empty(), "{}: {other:#?}", path.display());
    }
    assert!(count >= 9);
}
