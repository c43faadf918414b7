//! Finds the route of a request.
//!
//! The order is nginx's: exact paths, prefixes with `before_regex`, regular expressions in the order of the file, and
//! the longest prefix.

use std::collections::HashMap;
use std::sync::Arc;

use http::Method;
use regex::Regex;

use super::route::{Matcher, Route};

/// The parameter that has what follows the prefix of a route.
pub(super) const PREFIX_REST: &str = "rest";

/// The routes by what they match.
#[derive(Debug)]
pub struct Router {
    /// Routes by the pattern of their path, in the order of the file.
    paths: matchit::Router<Vec<Arc<Route>>>,
    /// The longest first, and routes of the same prefix in the order of the file.
    first_prefixes: Vec<(String, Arc<Route>)>,
    regexes: Vec<(Regex, Arc<Route>)>,
    prefixes: Vec<(String, Arc<Route>)>,
}

/// Names and values.
type Parameters = Vec<(String, String)>;

/// What a router says of a request.
#[derive(Debug)]
pub enum RouteMatch {
    /// A route, and the parameters of its path.
    Route(Arc<Route>, Parameters),
    /// Routes of this path take only these methods.
    OtherMethods(Vec<Method>),
    /// No route has this path.
    Nothing,
}

/// What decides about a route.
#[derive(Debug, Clone, Copy)]
pub struct RouteQuery<'a> {
    /// The host without its port, in lower case.
    pub host: &'a str,
    /// The port of the listener.
    pub port: u16,
    /// The method.
    pub method: &'a Method,
    /// The path, decoded and without dot segments.
    pub path: &'a str,
    /// Whether the gateway itself asks, so that internal routes count.
    pub is_internal: bool,
}

impl Router {
    /// A router, and for each route that cannot be told apart from another its position and why.
    pub(crate) fn new(routes: &[Arc<Route>]) -> (Router, Vec<(usize, String)>) {
        let mut conflicts = Vec::new();
        let mut patterns: Vec<(String, usize, Vec<Arc<Route>>)> = Vec::new();
        let mut known: HashMap<String, usize> = HashMap::new();
        let mut router = Router {
            paths: matchit::Router::new(),
            first_prefixes: Vec::new(),
            regexes: Vec::new(),
            prefixes: Vec::new(),
        };
        for (index, route) in routes.iter().enumerate() {
            let own = Arc::clone(route);
            match &route.matcher {
                Matcher::Path(path) => match known.get(path).and_then(|at| patterns.get_mut(*at)) {
                    Some((_, _, routes)) => routes.push(own),
                    None => {
                        known.insert(path.clone(), patterns.len());
                        patterns.push((path.clone(), index, vec![own]));
                    }
                },
                Matcher::Prefix { prefix, before_regex: true } => {
                    router.first_prefixes.push((prefix.clone(), own));
                }
                Matcher::Prefix { prefix, before_regex: false } => {
                    router.prefixes.push((prefix.clone(), own));
                }
                Matcher::Regex(regex) => router.regexes.push((regex.clone(), own)),
            }
        }
        for (path, index, routes) in patterns {
            if let Err(error) = router.paths.insert(path, routes) {
                conflicts.push((index, format!("{error}; give both the same names of parameters")));
            }
        }
        for prefixes in [&mut router.first_prefixes, &mut router.prefixes] {
            prefixes.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        }
        (router, conflicts)
    }

    /// The route of a request.
    pub fn find(&self, asked: RouteQuery<'_>) -> RouteMatch {
        let mut others = Vec::new();
        if let Ok(found) = self.paths.at(asked.path)
            && let Some(route) = first(found.value, asked, &mut others)
        {
            let parameters = found.params.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
            return RouteMatch::Route(route, parameters.collect());
        }
        if let Some((route, rest)) = below(&self.first_prefixes, asked, &mut others) {
            return RouteMatch::Route(route, rest);
        }
        for (regex, route) in &self.regexes {
            let Some(groups) = regex.captures(asked.path) else { continue };
            let Some(route) = first(std::slice::from_ref(route), asked, &mut others) else { continue };
            let named = regex.capture_names().enumerate().filter_map(|(index, name)| {
                let value = groups.get(index)?.as_str().to_owned();
                Some([Some((index.to_string(), value.clone())), name.map(|name| (name.to_owned(), value))])
            });
            return RouteMatch::Route(route, named.flatten().flatten().collect());
        }
        match below(&self.prefixes, asked, &mut others) {
            Some((route, rest)) => RouteMatch::Route(route, rest),
            None if others.is_empty() => RouteMatch::Nothing,
            None => RouteMatch::OtherMethods(others),
        }
    }
}

/// The first route that takes the request; the methods of those that would take another one are added to `others`.
fn first(routes: &[Arc<Route>], asked: RouteQuery<'_>, others: &mut Vec<Method>) -> Option<Arc<Route>> {
    let is_of_host = |host: &Arc<str>| {
        **host == *asked.host
            || host.strip_prefix('*').is_some_and(|end| end.starts_with('.') && asked.host.ends_with(end))
    };
    for route in routes {
        let is_of_place = (route.hosts.is_empty() || route.hosts.iter().any(is_of_host))
            && (route.ports.is_empty() || route.ports.contains(&asked.port))
            && (asked.is_internal || !route.is_internal);
        if !is_of_place {
            continue;
        }
        let takes = |method: &Method| route.methods.is_empty() || route.methods.contains(method);
        if takes(asked.method) || (asked.method == Method::HEAD && takes(&Method::GET)) {
            return Some(Arc::clone(route));
        }
        others.extend(
            route.methods.iter().filter(|method| !others.contains(method)).cloned().collect::<Vec<_>>(),
        );
    }
    None
}

/// The route of the first prefix that takes the request, and what follows the prefix.
fn below(
    prefixes: &[(String, Arc<Route>)],
    asked: RouteQuery<'_>,
    others: &mut Vec<Method>,
) -> Option<(Arc<Route>, Parameters)> {
    let found = prefixes
        .iter()
        .filter_map(|(prefix, route)| Some((asked.path.strip_prefix(prefix.as_str())?, route)));
    found.into_iter().find_map(|(rest, route)| {
        let route = first(std::slice::from_ref(route), asked, others)?;
        Some((route, vec![(String::from(PREFIX_REST), rest.to_owned())]))
    })
}
