//! Values with nginx's variables, as templates of the gateway.

use std::collections::BTreeSet;

use super::limits::TEMPLATE_BYTES_MAX;

/// The names that a value may use.
#[derive(Debug, Clone, Default)]
pub(super) struct Names<'a> {
    /// Variables that some `set`, `mruby_set`, `map` or the like of the file defines.
    pub(super) defined: Option<&'a BTreeSet<String>>,
    /// Named groups of the location's regular expression.
    pub(super) groups: Vec<String>,
    /// How many groups the location's regular expression has.
    pub(super) group_count: usize,
}

/// nginx's variables that the gateway has.
const OFFERED: &[&str] = &[
    "args",
    "body_bytes_sent",
    "bytes_sent",
    "connection",
    "connection_requests",
    "connection_time",
    "content_length",
    "content_type",
    "document_root",
    "document_uri",
    "host",
    "hostname",
    "http2",
    "https",
    "is_args",
    "msec",
    "nginx_version",
    "pid",
    "pipe",
    "proxy_add_x_forwarded_for",
    "query_string",
    "realpath_root",
    "remote_addr",
    "remote_port",
    "remote_user",
    "request",
    "request_body",
    "request_completion",
    "request_filename",
    "request_id",
    "request_length",
    "request_method",
    "request_time",
    "request_uri",
    "scheme",
    "server_addr",
    "server_name",
    "server_port",
    "server_protocol",
    "ssl_cipher",
    "ssl_protocol",
    "ssl_server_name",
    "status",
    "time_iso8601",
    "time_local",
    "uri",
];

/// Beginnings of the names of variables that the gateway has.
const OFFERED_PREFIXES: &[&str] = &["arg_", "cookie_", "http_", "sent_http_"];

/// Translates a value: `$name` and `${name}` become `{$name}`, groups of the location's regular expression `{name}`, and
/// braces are doubled. A variable of `known` is replaced by its template: nginx sets variables in the order of the file,
/// the gateway in none. The error says which variable is not there.
pub(super) fn template(value: &str, names: &Names<'_>, known: &[(String, String)]) -> Result<String, String> {
    let mut template = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.find(['$', '{', '}']) {
        let (plain, found) = rest.split_at(at);
        template.push_str(plain);
        if let Some(after) = found.strip_prefix('{') {
            template.push_str("{{");
            rest = after;
            continue;
        }
        if let Some(after) = found.strip_prefix('}') {
            template.push_str("}}");
            rest = after;
            continue;
        }
        let after = found.get(1..).unwrap_or_default();
        let (name, after) = match after.strip_prefix('{') {
            Some(inner) => {
                inner.split_once('}').ok_or_else(|| format!("`{value}` has a `${{` without its `}}`"))?
            }
            None => after.split_at(after.find(|char: char| !is_name(char)).unwrap_or(after.len())),
        };
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(format!(
                "`{value}` has a `$` without the name of a variable; a plain `$` is not possible in nginx"
            ));
        }
        // A number is one digit in nginx: `$10` is the first group and a zero.
        let is_number = name.starts_with(|char: char| char.is_ascii_digit());
        let (name, kept) = if is_number { name.split_at(1) } else { (name, "") };
        match known.iter().find(|(other, _)| other == name) {
            Some((_, template_of_it)) => template.push_str(template_of_it),
            None => template.push_str(&reference(name, is_number, names)?),
        }
        if template.len() > TEMPLATE_BYTES_MAX {
            return Err(format!(
                "with the values of its variables it is longer than {TEMPLATE_BYTES_MAX} bytes"
            ));
        }
        template.push_str(kept);
        rest = after;
    }
    template.push_str(rest);
    Ok(template)
}

fn reference(name: &str, is_number: bool, names: &Names<'_>) -> Result<String, String> {
    if is_number {
        let number: usize = name.parse().unwrap_or_default();
        return match number > 0 && number <= names.group_count {
            true => Ok(format!("{{{name}}}")),
            false => Err(format!("`${name}` is no group of the location's regular expression")),
        };
    }
    if names.groups.iter().any(|group| group == name) {
        return Ok(format!("{{{name}}}"));
    }
    let is_defined = names.defined.is_some_and(|defined| defined.contains(name));
    let is_offered =
        OFFERED.contains(&name) || OFFERED_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    match is_defined || is_offered {
        true => Ok(format!("{{${name}}}")),
        false => Err(format!(
            "the gateway has no variable `${name}`; compute it in a script with `mruby_set_code`"
        )),
    }
}

fn is_name(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '_'
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Names, template};

    #[test]
    fn variables_become_names_of_templates() {
        let defined = BTreeSet::from([String::from("backend")]);
        let names = Names { defined: Some(&defined), groups: vec![String::from("id")], group_count: 2 };
        let known = [(String::from("base"), String::from("/srv/{$host}"))];
        for (value, expected) in [
            ("", ""),
            ("$base/x", "/srv/{$host}/x"),
            ("plain", "plain"),
            ("http://$backend", "http://{$backend}"),
            ("${host}x", "{$host}x"),
            ("$host:$server_port", "{$host}:{$server_port}"),
            ("/u/$id?$args", "/u/{id}?{$args}"),
            ("$10", "{1}0"),
            ("{\"a\": 1}", "{{\"a\": 1}}"),
            ("$http_x_trace", "{$http_x_trace}"),
        ] {
            assert_eq!(template(value, &names, &known).as_deref(), Ok(expected), "{value}");
        }
        for (value, part) in [
            ("$", "without the name"),
            ("cost: $ 5", "without the name"),
            ("${a b}", "without the name"),
            ("${host", "without its `}`"),
            ("$3", "no group"),
            ("$0", "no group"),
            ("$ssl_client_cert", "no variable `$ssl_client_cert`"),
        ] {
            let error = template(value, &names, &known).unwrap_err();
            assert!(error.contains(part), "{value}: {error}");
        }
    }
}
