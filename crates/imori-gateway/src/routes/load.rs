//! Reads a routes file, and reports all its faults at once.

use std::path::Path;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::compile::Compiler;
use super::configuration::Configuration;
use super::entry::{DeliverEntry, GatewayEntry, LimitsEntry, RouteEntry, ScriptsEntry};
use super::problem::{Problem, Problems, line_of};

/// The top-level keys.
const KEYS: [&str; 5] = ["gateway", "limits", "scripts", "route", "deliver"];

/// Reads the text of the routes file at this path, and the scripts that it names.
///
/// # Errors
/// All faults that were found, by file and line.
pub(crate) fn load(text: &str, path: &Path) -> Result<Configuration, Problems> {
    let (file, folder) = (path.display().to_string(), path.parent().unwrap_or(Path::new("")).to_path_buf());
    let file = file.as_str();
    let mut reading = Reading { text, file, problems: Vec::new() };
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let at = error.span().map_or(0, |span| span.start);
        reading.fault(at, error.message().to_owned());
    }
    // What was recovered of a broken document would only add faults that are none.
    if !reading.problems.is_empty() {
        return Err(Problems(reading.problems));
    }
    let mut gateway = GatewayEntry::default();
    let mut limits = LimitsEntry::default();
    let mut scripts = (0, ScriptsEntry::default());
    let (mut routes, mut deliveries) = (Vec::new(), Vec::new());
    let mut keys: Vec<_> = document.into_inner().into_iter().collect();
    keys.sort_by_key(|(key, _)| key.span().start);
    for (key, value) in keys {
        let at = key.span().start;
        match key.get_ref().as_ref() {
            "gateway" => gateway = reading.entry(value).unwrap_or_default(),
            "limits" => limits = reading.entry(value).unwrap_or_default(),
            "scripts" => scripts = (at, reading.entry(value).unwrap_or_default()),
            "route" => routes = reading.entries::<RouteEntry>("route", value),
            "deliver" => deliveries = reading.entries::<DeliverEntry>("deliver", value),
            other => reading.fault(at, format!("there is no `{other}`; the keys are {}", KEYS.join(", "))),
        }
    }
    let mut compiler = Compiler::new(file, text, folder, gateway, limits);
    let scripts_of_all = compiler.scripts(scripts.0, scripts.1);
    let routes: Vec<_> = routes.into_iter().filter_map(|(at, entry)| compiler.route(at, entry)).collect();
    let deliveries: Vec<_> =
        deliveries.into_iter().filter_map(|(at, entry)| compiler.delivery(at, entry)).collect();
    let (configuration, problems) =
        compiler.finish(routes.into_iter().map(Arc::new).collect(), deliveries, scripts_of_all, path);
    reading.problems.extend(problems);
    match reading.problems.is_empty() {
        true => Ok(configuration),
        false => {
            reading.problems.sort_by_key(|problem| problem.line);
            Err(Problems(reading.problems))
        }
    }
}

struct Reading<'a> {
    text: &'a str,
    file: &'a str,
    problems: Vec<Problem>,
}

impl Reading<'_> {
    fn fault(&mut self, at: usize, message: String) {
        let (file, line) = (self.file.to_owned(), line_of(self.text, at));
        self.problems.push(Problem { file, line, message });
    }

    fn entry<T: DeserializeOwned>(&mut self, value: Spanned<DeValue<'_>>) -> Option<T> {
        let start = value.span().start;
        match T::deserialize(ValueDeserializer::from(value)) {
            Ok(entry) => Some(entry),
            Err(error) => {
                let at = error.span().map_or(start, |span| span.start);
                self.fault(at, error.message().to_owned());
                None
            }
        }
    }

    fn entries<T: DeserializeOwned>(&mut self, name: &str, value: Spanned<DeValue<'_>>) -> Vec<(usize, T)> {
        let at = value.span().start;
        let DeValue::Array(values) = value.into_inner() else {
            self.fault(at, format!("`{name}` is a list of tables; begin each with `[[{name}]]`"));
            return Vec::new();
        };
        let spanned = values.into_iter().map(|value| (value.span().start, value));
        spanned.filter_map(|(at, value)| Some((at, self.entry(value)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::router::{Found, RouteQuery};
    use super::*;

    fn faults(text: &str) -> Vec<String> {
        let read = load(text, Path::new("routes.toml"));
        read.err()
            .map(|problems| problems.to_string())
            .unwrap_or_default()
            .lines()
            .map(str::to_owned)
            .collect()
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
            let asked =
                RouteQuery { host: "h", port: 80, method: &http::Method::GET, path, is_internal: false };
            let Found::Route(_, parameters) = read.router.find(asked) else { panic!("{path} has a route") };
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
}
