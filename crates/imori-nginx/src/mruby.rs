//! The directives of ngx_mruby, versions 1 and 2.

use std::rc::Rc;

use super::draft::{Script, Source};
use super::syntax::{Directive, one_line};

/// The block in which a directive stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Context {
    Http,
    Server,
    Location,
}

/// Where a script runs, in the order in which a request meets them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Init,
    InitWorker,
    ExitWorker,
    SslHandshake,
    PostRead,
    ServerRewrite,
    Rewrite,
    Access,
    Content,
    HeaderFilter,
    BodyFilter,
    Log,
}

impl Phase {
    /// Its key in the routes file.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Phase::Init => "init",
            Phase::InitWorker => "init_worker",
            Phase::ExitWorker => "exit_worker",
            Phase::SslHandshake => "ssl_handshake",
            Phase::PostRead => "post_read",
            Phase::ServerRewrite => "server_rewrite",
            Phase::Rewrite => "rewrite",
            Phase::Access => "access",
            Phase::Content => "content",
            Phase::HeaderFilter => "header_filter",
            Phase::BodyFilter => "body_filter",
            Phase::Log => "log",
        }
    }

    /// Why a directive of this phase does nothing in such a block, if so.
    const fn misplaced(self, context: Context) -> Option<&'static str> {
        match (self, context) {
            (Phase::Init | Phase::InitWorker | Phase::ExitWorker, Context::Server | Context::Location) => {
                Some("it belongs in `http`; nginx refuses it here")
            }
            (Phase::SslHandshake, Context::Http | Context::Location) => {
                Some("it belongs in `server`; nginx refuses it here")
            }
            (Phase::PostRead | Phase::ServerRewrite, Context::Location) => Some(
                "it never runs here, because nginx chooses the location after this phase; use `mruby_rewrite_handler`",
            ),
            _ => None,
        }
    }
}

/// What a directive means for the routes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A script of a phase.
    Script(Phase, Script),
    /// A variable that a script computes.
    Set(String, Script),
    /// Whether the requested file is the script that answers.
    Handler(bool),
    /// Nothing has to be done, for this reason.
    Needless(&'static str),
    /// There is no translation.
    Problem(String),
}

/// The names of phases without `_code`, and the older names of some.
const PHASES: &[(&str, Phase)] = &[
    ("mruby_init", Phase::Init),
    ("mruby_init_worker", Phase::InitWorker),
    ("mruby_exit_worker", Phase::ExitWorker),
    ("mruby_ssl_handshake_handler", Phase::SslHandshake),
    ("mruby_ssl_client_hello_handler", Phase::SslHandshake),
    ("mruby_post_read_handler", Phase::PostRead),
    ("mruby_server_rewrite_handler", Phase::ServerRewrite),
    ("mruby_rewrite_handler", Phase::Rewrite),
    ("mruby_access_handler", Phase::Access),
    ("mruby_content_handler", Phase::Content),
    ("mruby_output_header_filter", Phase::HeaderFilter),
    ("mruby_header_filter", Phase::HeaderFilter),
    ("mruby_output_body_filter", Phase::BodyFilter),
    ("mruby_output_filter", Phase::BodyFilter),
    ("mruby_body_filter", Phase::BodyFilter),
    ("mruby_log_handler", Phase::Log),
];

/// Whether a name is one that `read` knows something of.
pub(super) fn is_own(name: &str) -> bool {
    name.starts_with("mruby")
}

/// Reads a directive whose name begins with `mruby`.
pub(super) fn read(directive: &Directive, context: Context) -> Meaning {
    if directive.has_block() {
        return Meaning::Problem(String::from("it takes no block; write the code as a string in quotes"));
    }
    let name = directive.name.as_str();
    match name {
        "mruby_set" | "mruby_set_code" | "mruby_set_inline" => return set(directive),
        "mruby_cache" => {
            return match flag(directive) {
                Ok(_) => Meaning::Needless("scripts are compiled once, and again when their file changes"),
                Err(message) => Meaning::Problem(message),
            };
        }
        "mruby_enable_read_request_body" | "mruby_enable_read_reqeust_body" => {
            return match flag(directive) {
                Ok(_) => Meaning::Needless("the body is read when a script asks for it"),
                Err(message) => Meaning::Problem(message),
            };
        }
        "mruby_add_handler" => return flag(directive).map_or_else(Meaning::Problem, Meaning::Handler),
        "mruby_upstream_keepalive" => {
            return Meaning::Problem(String::from("it belongs in `upstream`; nginx refuses it here"));
        }
        "mruby_server_context_handler_code" | "mruby_server_context_code" => {
            return Meaning::Problem(String::from(
                "no script adds listeners; write their addresses into `listeners.http` and the names into `hosts`",
            ));
        }
        "mruby_ssl_verify_client_handler" | "mruby_ssl_verify_client_handler_code" => {
            return Meaning::Problem(String::from(
                "no script checks certificates of clients; set the broker's `tls.client_ca`, and `login` of the routes",
            ));
        }
        "mruby_access_checker" | "mruby_access_checker_code" => {
            return Meaning::Problem(String::from(
                "the name is mod_mruby's; ngx_mruby's is `mruby_access_handler`",
            ));
        }
        _ => {}
    }
    if name.starts_with("mruby_stream") {
        return Meaning::Problem(String::from(
            "the gateway passes on no bare TCP; let clients connect to the broker's own listeners",
        ));
    }
    let inline = name.strip_suffix("_code").or_else(|| name.strip_suffix("_inline"));
    let Some((_, phase)) = PHASES.iter().find(|(known, _)| *known == inline.unwrap_or(name)) else {
        let nearest = nearest(name);
        return Meaning::Problem(format!("ngx_mruby has no such directive; the nearest is `{nearest}`"));
    };
    if let Some(reason) = phase.misplaced(context) {
        return Meaning::Problem(String::from(reason));
    }
    match script(&directive.words, directive.line, inline.is_some()) {
        Ok(script) => Meaning::Script(*phase, script),
        Err(message) => Meaning::Problem(message),
    }
}

fn set(directive: &Directive) -> Meaning {
    let Some((variable, rest)) = directive.words.split_first() else {
        return Meaning::Problem(String::from("it needs a variable and a script"));
    };
    let Some(name) = variable_name(variable) else {
        return Meaning::Problem(format!("`{variable}` is no variable; its name begins with `$`"));
    };
    match script(rest, directive.line, directive.name != "mruby_set") {
        Ok(script) => Meaning::Set(String::from(name), script),
        Err(message) => Meaning::Problem(message),
    }
}

/// The name of a variable that is written `$name`.
pub(super) fn variable_name(word: &str) -> Option<&str> {
    let name = word.strip_prefix('$')?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then_some(name)
}

fn script(words: &[String], line: usize, is_inline: bool) -> Result<Script, String> {
    let source = match (words, is_inline) {
        ([code], true) => Source::Code(Rc::from(code.as_str())),
        ([path], false) => Source::File(path.clone()),
        // Without the word, ngx_mruby compiles the file for each request.
        ([path, cache], false) if cache == "cache" => Source::File(path.clone()),
        ([], true) => return Err(String::from("it needs Ruby code in quotes")),
        ([], false) => return Err(String::from("it needs the path of a Ruby file")),
        (_, true) => {
            return Err(format!(
                "it takes one string, and here are {}; put the code into one pair of quotes, and write \\' or \\\" for \
                 the same quote within",
                words.len()
            ));
        }
        ([_, other, ..], false) => {
            return Err(format!("after the file it takes only the word `cache`, not `{}`", one_line(other)));
        }
    };
    let is_empty = words.first().is_none_or(|word| word.trim().is_empty());
    if is_empty {
        return Err(String::from("it is empty; remove it"));
    }
    Ok(Script { source, line })
}

fn flag(directive: &Directive) -> Result<bool, String> {
    match directive.words.as_slice() {
        [word] if word.eq_ignore_ascii_case("on") => Ok(true),
        [word] if word.eq_ignore_ascii_case("off") => Ok(false),
        _ => Err(String::from("it takes `on` or `off`")),
    }
}

/// The name of a phase that shares the longest beginning with `name`.
fn nearest(name: &str) -> &'static str {
    let shared = |known: &str| known.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count();
    PHASES
        .iter()
        .map(|(known, _)| *known)
        .max_by_key(|known| shared(known))
        .unwrap_or("mruby_content_handler")
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::{Context, Meaning, Phase, Script, Source, read};
    use crate::syntax::parse;

    fn meaning(text: &str, context: Context) -> Meaning {
        read(&parse(text).unwrap()[0], context)
    }

    #[test]
    fn phases_have_files_and_code() {
        let file = |path: &str| Script { source: Source::File(String::from(path)), line: 1 };
        let code = |code: &str| Script { source: Source::Code(Rc::from(code)), line: 1 };
        for (text, phase, script) in [
            ("mruby_init /i.rb;", Phase::Init, file("/i.rb")),
            ("mruby_init_inline 'a';", Phase::Init, code("a")),
            ("mruby_init_worker_code 'a\nb';", Phase::InitWorker, code("a\nb")),
            ("mruby_exit_worker e.rb cache;", Phase::ExitWorker, file("e.rb")),
            ("mruby_post_read_handler_code 'p';", Phase::PostRead, code("p")),
            ("mruby_server_rewrite_handler s.rb;", Phase::ServerRewrite, file("s.rb")),
            ("mruby_rewrite_handler_code \"r '1'\";", Phase::Rewrite, code("r '1'")),
            ("mruby_access_handler a.rb cache;", Phase::Access, file("a.rb")),
            ("mruby_content_handler_code 'c';", Phase::Content, code("c")),
            ("mruby_output_filter_code 'f';", Phase::BodyFilter, code("f")),
            ("mruby_output_body_filter f.rb;", Phase::BodyFilter, file("f.rb")),
            ("mruby_header_filter_code 'h';", Phase::HeaderFilter, code("h")),
            ("mruby_output_header_filter h.rb;", Phase::HeaderFilter, file("h.rb")),
            ("mruby_log_handler_code 'l';", Phase::Log, code("l")),
        ] {
            assert_eq!(meaning(text, Context::Http), Meaning::Script(phase, script), "{text}");
        }
        let found = meaning("mruby_ssl_handshake_handler_code 's';", Context::Server);
        assert_eq!(found, Meaning::Script(Phase::SslHandshake, code("s")));
        let found = meaning("mruby_set $b p.rb cache;", Context::Location);
        assert_eq!(found, Meaning::Set(String::from("b"), file("p.rb")));
        assert_eq!(meaning("mruby_add_handler on;", Context::Location), Meaning::Handler(true));
        assert!(matches!(meaning("mruby_cache off;", Context::Server), Meaning::Needless(_)));
    }

    #[test]
    fn the_rest_is_a_problem_with_a_hint() {
        for (text, context, part) in [
            ("mruby_init 'a';", Context::Location, "belongs in `http`"),
            ("mruby_ssl_handshake_handler a.rb;", Context::Http, "belongs in `server`"),
            ("mruby_server_rewrite_handler a.rb;", Context::Location, "never runs here"),
            ("mruby_content_handler;", Context::Location, "needs the path"),
            ("mruby_content_handler_code;", Context::Location, "needs Ruby code"),
            ("mruby_content_handler_code a b;", Context::Location, "one string, and here are 2"),
            ("mruby_content_handler a.rb cached;", Context::Location, "only the word `cache`"),
            ("mruby_content_handler_code ' ';", Context::Location, "is empty"),
            ("mruby_content_handler_code { a; }", Context::Location, "takes no block"),
            ("mruby_set backend a.rb;", Context::Location, "begins with `$`"),
            ("mruby_set;", Context::Location, "needs a variable"),
            ("mruby_add_handler yes;", Context::Location, "`on` or `off`"),
            ("mruby_upstream_keepalive 16;", Context::Server, "belongs in `upstream`"),
            ("mruby_server_context_handler_code 'x';", Context::Server, "listeners.http"),
            ("mruby_stream_code 'x';", Context::Server, "bare TCP"),
            ("mruby_access_checker a.rb;", Context::Location, "`mruby_access_handler`"),
            ("mruby_contents_handler a.rb;", Context::Location, "nearest is `mruby_content_handler`"),
        ] {
            match meaning(text, context) {
                Meaning::Problem(message) => assert!(message.contains(part), "{text}: {message}"),
                other => panic!("{text}: {other:?}"),
            }
        }
    }
}
