//! Scopes in RabbitMQ's syntax: `write:vhost/name`, `read:vhost/exchange/routing.key`, `tag:monitoring`. A `*`
//! matches any characters; the parts are percent-encoded.

use imori_core::authorize::{Grants, Tag, Tags, TopicGrant};
use imori_core::id::VhostId;
use imori_core::message::TOPIC_EXCHANGE;
use imori_core::name::Name;
use percent_encoding::percent_decode_str;

/// A token's scopes, before they are compiled to rights.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    /// Roles on the admin listener.
    pub(super) tags: Tags,
    resources: Vec<Scope>,
}

/// A scope other than a tag.
#[derive(Debug)]
struct Scope {
    permission: Permission,
    vhost: Wildcards,
    name: Wildcards,
    /// `None` for every routing key.
    key: Option<Wildcards>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Permission {
    Configure,
    Write,
    Read,
}

/// Literal texts, with any characters between them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wildcards(Vec<String>);

impl Wildcards {
    fn read(text: &str) -> Option<Wildcards> {
        let decode = |part: &str| percent_decode_str(part).decode_utf8().ok().map(String::from);
        text.split('*').map(decode).collect::<Option<_>>().map(Wildcards)
    }

    fn all() -> Wildcards {
        Wildcards(vec![String::new(), String::new()])
    }

    fn is_all(&self) -> bool {
        self.0.len() > 1 && self.0.iter().all(String::is_empty)
    }

    fn literal(&self) -> Option<&str> {
        match &*self.0 {
            [only] => Some(only),
            _ => None,
        }
    }

    fn matches(&self, text: &str) -> bool {
        let Some((first, others)) = self.0.split_first() else { return false };
        let Some(rest) = text.strip_prefix(first.as_str()) else { return false };
        let Some((last, between)) = others.split_last() else { return rest.is_empty() };
        let Some(rest) = rest.strip_suffix(last.as_str()) else { return false };
        let step = |rest: &mut &str, part: &String| {
            let at = rest.find(part.as_str())?;
            *rest = rest.get(at + part.len()..)?;
            Some(())
        };
        let mut rest = rest;
        between.iter().all(|part| step(&mut rest, part).is_some())
    }

    /// Converts it to a part of a regular expression.
    fn expression(&self) -> String {
        self.0.iter().map(|part| regex_syntax::escape(part)).collect::<Vec<_>>().join(".*")
    }
}

/// An expression that matches exactly what one of the parts matches.
fn any_of<'a>(parts: impl Iterator<Item = &'a Wildcards>) -> String {
    let mut parts: Vec<&Wildcards> = parts.collect();
    if parts.iter().any(|part| part.is_all()) {
        return String::from(".*");
    }
    parts.dedup();
    match parts.is_empty() {
        // Matches nothing, as no name is empty.
        true => String::from("^$"),
        false => {
            let parts: Vec<_> = parts.into_iter().map(Wildcards::expression).collect();
            format!("^(?:{})$", parts.join("|"))
        }
    }
}

impl Scopes {
    /// Parses scopes. Ignores scopes without the prefix and unknown ones.
    pub(super) fn read<'a>(scopes: impl IntoIterator<Item = &'a str>, prefix: &str) -> Scopes {
        let mut read = Scopes::default();
        for scope in scopes {
            let Some((permission, object)) =
                scope.strip_prefix(prefix).and_then(|scope| scope.split_once(':'))
            else {
                continue;
            };
            let permission = match permission {
                "configure" => Permission::Configure,
                "write" => Permission::Write,
                "read" => Permission::Read,
                "tag" => {
                    read.tags = Tag::named(object).map_or(read.tags, |tag| read.tags.with(tag));
                    continue;
                }
                _ => continue,
            };
            read.resources.extend(Scope::read(permission, object));
        }
        read
    }

    /// The grants in a vhost; `None` if the token gives no access to it.
    pub(super) fn grants(&self, vhost: &str) -> Option<Grants> {
        let here: Vec<&Scope> = self.resources.iter().filter(|scope| scope.vhost.matches(vhost)).collect();
        if here.is_empty() {
            return None;
        }
        let names = |permission| {
            any_of(here.iter().filter(|scope| scope.permission == permission).map(|scope| &scope.name))
        };
        let mut limited: Vec<&str> = here
            .iter()
            .filter(|scope| scope.key.is_some())
            .filter_map(|scope| scope.name.literal())
            .collect();
        limited.sort_unstable();
        limited.dedup();
        let keys = |permission, exchange: &str| {
            let all = Wildcards::all();
            let of_exchange =
                here.iter().filter(|scope| scope.permission == permission && scope.name.matches(exchange));
            any_of(of_exchange.map(|scope| scope.key.as_ref().unwrap_or(&all)))
        };
        let topic = |exchange: &str| TopicGrant {
            exchange: Name::from(exchange),
            write: keys(Permission::Write, exchange),
            read: keys(Permission::Read, exchange),
        };
        Some(Grants {
            configure: names(Permission::Configure),
            write: names(Permission::Write),
            read: names(Permission::Read),
            topics: limited.into_iter().map(topic).collect(),
            subjects: None,
        })
    }

    /// The grants in each vhost to which the token gives access.
    pub(super) fn in_vhosts<'a>(
        &self,
        vhosts: impl Iterator<Item = (VhostId, &'a str)>,
    ) -> Vec<(VhostId, Name, Grants)> {
        vhosts.filter_map(|(id, name)| Some((id, Name::from(name), self.grants(name)?))).collect()
    }
}

impl Scope {
    /// Parses `vhost/name` or `vhost/name/key`. A key limits a single exchange: for a name with wildcards that is
    /// `amq.topic`, if the name matches it.
    fn read(permission: Permission, object: &str) -> Option<Scope> {
        let mut parts = object.splitn(3, '/').map(Wildcards::read);
        let (vhost, name) = (parts.next()??, parts.next()??);
        let key = match parts.next() {
            Some(key) => Some(key?).filter(|key| !key.is_all()),
            None => None,
        };
        let topic = str::from_utf8(TOPIC_EXCHANGE).ok()?;
        let name = match key.is_some() && name.literal().is_none() {
            true if name.matches(topic) => Wildcards(vec![String::from(topic)]),
            true => return None,
            false => name,
        };
        Some(Scope { permission, vhost, name, key })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(scopes: &[&str], vhost: &str) -> Option<Grants> {
        Scopes::read(scopes.iter().copied(), "").grants(vhost)
    }

    /// SECURITY AUTH-10: scopes grant no more than they say.
    #[test]
    fn scopes_are_grants_of_their_vhosts() {
        let scopes = ["write:%2F/q%2Ea*", "read:*/q.b", "configure:dev/*", "read:dev/x"];
        let root = grants(&scopes, "/").unwrap();
        assert_eq!((root.configure.as_str(), root.write.as_str()), ("^$", r"^(?:q\.a.*)$"));
        assert_eq!(root.read, r"^(?:q\.b)$");
        let dev = grants(&scopes, "dev").unwrap();
        assert_eq!((dev.configure.as_str(), dev.write.as_str()), (".*", "^$"));
        assert_eq!(dev.read, r"^(?:q\.b|x)$");
        assert_eq!(grants(&["write:dev/x"], "dev2"), None);
        for nothing in
            ["write", "write:", "write:dev", "own:dev/x", "write:dev/%ff", "", "prefix.write:dev/x"]
        {
            assert_eq!(grants(&[nothing], "dev"), None, "{nothing:?}");
        }
        let prefixed = Scopes::read(["imori.write:dev/x", "write:dev/y", "imori.tag:monitoring"], "imori.");
        assert_eq!(prefixed.grants("dev").unwrap().write, "^(?:x)$");
        assert_eq!(prefixed.tags, Tags::NONE.with(Tag::Monitoring));
    }

    #[test]
    fn a_routing_key_limits_one_exchange() {
        let topics = |scopes: &[&str]| grants(scopes, "/").unwrap().topics;
        let grant = |exchange: &str, write: &str, read: &str| TopicGrant {
            exchange: Name::from(exchange),
            write: write.to_owned(),
            read: read.to_owned(),
        };
        let of_orders = topics(&["write:*/orders/eu.*", "write:*/orders/us.*", "read:*/orders/*"]);
        assert_eq!(of_orders, [grant("orders", r"^(?:eu\..*|us\..*)$", ".*")]);
        assert_eq!(topics(&["write:*/*", "write:*/orders/eu.*"]), [grant("orders", ".*", "^$")]);
        let wide = grants(&["write:*/*/eu.*"], "/").unwrap();
        assert_eq!(wide.write, r"^(?:amq\.topic)$");
        assert_eq!(wide.topics, [grant("amq.topic", r"^(?:eu\..*)$", "^$")]);
        assert_eq!(grants(&["write:*/x*/eu.*"], "/"), None, "many exchanges cannot be limited by one key");
    }

    #[test]
    fn wildcards_stand_for_any_characters() {
        for (pattern, text, expected) in [
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*a", "a", false),
            ("*b*", "abc", true),
            ("*b*b*", "abc", false),
            ("abc", "abcd", false),
            ("", "", true),
            ("*", "", true),
        ] {
            assert_eq!(Wildcards::read(pattern).unwrap().matches(text), expected, "{pattern} {text}");
        }
    }
}
