//! Directives of nginx that routes have no key for: which of them change nothing, and what replaces the others.

/// What to tell about a directive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The gateway behaves so anyway, or the directive is about nginx's own process.
    Needless(&'static str),
    /// It is left out; this says how to replace it.
    Lost(&'static str),
    /// It is left out and restricted access, so that the routes in its block refuse every request; this says how to
    /// replace it.
    Restricts(Restriction, &'static str),
}

/// A kind of access restriction. In nginx, one in an inner block replaces those of the same kind around the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Restriction {
    /// `if` and scripts that run before nginx chooses what answers.
    Rewrite,
    /// `limit_except`.
    Methods,
    /// `auth_basic`.
    Password,
    /// Other modules that ask who a client is.
    Login,
    /// `auth_request`.
    Request,
    /// `allow` and `deny`.
    Address,
    /// `satisfy any`.
    Satisfy,
    /// `valid_referers`.
    Referer,
    /// `secure_link`.
    Signature,
    /// `ssl_verify_client`.
    Certificate,
    /// Scripts of the access phase.
    Access,
    /// Scripts that answer.
    Content,
}

use Restriction::{
    Access, Address, Certificate, Login, Methods, Password, Referer, Request, Rewrite, Satisfy, Signature,
};
use Verdict::{Lost, Needless, Restricts};

const PROCESS: &str = "processes and threads are the broker's";
const BUFFERS: &str = "the gateway sizes its buffers itself";
const TIMES: &str = "the gateway ends slow clients by limits of its own";
const TLS: &str =
    "certificates and versions of TLS are settings of the broker: set `tls.certificate` and `tls.key`";
const CACHE: &str = "the gateway keeps no responses; cache in a script with `Cache`";
const OTHER_UPSTREAM: &str = "the gateway speaks HTTP to upstream servers; put one before this service";
const ACCESS_BY_ADDRESS: &str =
    "write `mruby_access_handler_code` that looks at `Nginx::Connection.new.remote_ip`";
const PASSWORDS: &str = "callers log in as users of the broker; set `login = \"required\"` in the route";
const RATES: &str = "limit requests at once with `in_flight` in the route's `limits`";
const OTHER_SCRIPTS: &str = "scripts are Ruby; translate it into an `mruby_*_code` directive";

/// Names, and what to tell about them. A name that ends with `*` stands for all that begin so.
const TABLE: &[(&str, Verdict)] = &[
    ("worker_*", Needless(PROCESS)),
    ("events", Needless(PROCESS)),
    ("use", Needless(PROCESS)),
    ("multi_accept", Needless(PROCESS)),
    ("accept_mutex*", Needless(PROCESS)),
    ("user", Needless(PROCESS)),
    ("pid", Needless(PROCESS)),
    ("lock_file", Needless(PROCESS)),
    ("daemon", Needless(PROCESS)),
    ("master_process", Needless(PROCESS)),
    ("pcre_jit", Needless(PROCESS)),
    ("thread_pool", Needless(PROCESS)),
    ("timer_resolution", Needless(PROCESS)),
    ("error_log", Needless("errors are in the broker's log")),
    ("sendfile*", Needless(BUFFERS)),
    ("tcp_nopush", Needless(BUFFERS)),
    ("tcp_nodelay", Needless(BUFFERS)),
    ("aio*", Needless(BUFFERS)),
    ("directio*", Needless(BUFFERS)),
    ("output_buffers", Needless(BUFFERS)),
    ("postpone_output", Needless(BUFFERS)),
    ("open_file_cache*", Needless(BUFFERS)),
    ("client_body_buffer_size", Needless(BUFFERS)),
    ("client_body_temp_path", Needless(BUFFERS)),
    ("client_body_in_single_buffer", Needless(BUFFERS)),
    ("client_header_buffer_size", Needless(BUFFERS)),
    ("large_client_header_buffers", Needless(BUFFERS)),
    ("connection_pool_size", Needless(BUFFERS)),
    ("request_pool_size", Needless(BUFFERS)),
    ("subrequest_output_buffer_size", Needless(BUFFERS)),
    ("types_hash_*", Needless(BUFFERS)),
    ("variables_hash_*", Needless(BUFFERS)),
    ("server_names_hash_*", Needless(BUFFERS)),
    ("map_hash_*", Needless(BUFFERS)),
    ("proxy_headers_hash_*", Needless(BUFFERS)),
    ("proxy_buffer_size", Needless(BUFFERS)),
    ("proxy_buffers", Needless(BUFFERS)),
    ("proxy_busy_buffers_size", Needless(BUFFERS)),
    ("proxy_buffering", Needless("bodies pass through as they come")),
    ("proxy_request_buffering", Needless("bodies pass through as they come")),
    ("proxy_temp_*", Needless(BUFFERS)),
    ("proxy_max_temp_file_size", Needless(BUFFERS)),
    ("proxy_http_version", Needless("connections to upstream servers are kept")),
    ("proxy_socket_keepalive", Needless("connections to upstream servers are kept")),
    ("proxy_connect_timeout", Needless("`timeout_ms` of the proxy covers the connection too")),
    ("proxy_send_timeout", Needless("`timeout_ms` of the proxy covers the request too")),
    ("resolver*", Needless("names are looked up by the system")),
    ("keepalive_*", Needless(TIMES)),
    ("client_header_timeout", Needless(TIMES)),
    ("client_body_timeout", Needless(TIMES)),
    ("send_timeout", Needless(TIMES)),
    ("lingering_*", Needless(TIMES)),
    ("reset_timedout_connection", Needless(TIMES)),
    ("http2*", Needless("HTTP/2 is always offered")),
    ("ignore_invalid_headers", Needless("a malformed header is refused with 400")),
    ("underscores_in_headers", Needless("names of headers may have underscores")),
    ("merge_slashes", Needless("the gateway cleans paths before it looks for a route")),
    ("access_log", Lost("set `access_log` in `[gateway]`; its lines are JSON")),
    ("log_format", Lost("lines of the access log are JSON; set `access_log` in `[gateway]`")),
    ("log_not_found", Needless("a missing file is in the access log")),
    ("load_module", Lost("the gateway loads no modules")),
    ("env", Lost("scripts see no environment; name a secret in `[scripts.secrets]` as `{ env = \"NAME\" }`")),
    ("stream", Lost("the gateway passes on no bare TCP; let clients connect to the broker's own listeners")),
    ("mail", Lost("the gateway passes on no mail")),
    (
        "rewrite",
        Lost("make it a route with `regex` and `return`, or call `Nginx.redirect` in a rewrite script"),
    ),
    (
        "if",
        Lost("decide in an `mruby_rewrite_handler_code`, or make routes with `hosts`, `methods` or `regex`"),
    ),
    ("break", Lost("without `rewrite` there is nothing to end")),
    ("try_files", Lost("make a route of `files` for the folder, and another one for the rest")),
    ("error_page", Lost("set status and body where the error arises, in a script or a `return`")),
    ("recursive_error_pages", Lost("set status and body where the error arises, in a script or a `return`")),
    ("limit_except", Restricts(Methods, "make a route with `methods` for those that are allowed")),
    ("auth_basic", Restricts(Password, PASSWORDS)),
    ("auth_basic_user_file", Lost(PASSWORDS)),
    ("auth_request", Restricts(Request, "call it with `Nginx::Async::HTTP.sub_request` in an access script")),
    ("auth_request_set", Lost("call it with `Nginx::Async::HTTP.sub_request` in an access script")),
    ("auth_*", Restricts(Login, PASSWORDS)),
    ("allow", Restricts(Address, ACCESS_BY_ADDRESS)),
    ("deny", Restricts(Address, ACCESS_BY_ADDRESS)),
    ("satisfy", Restricts(Satisfy, "write the condition into one access script")),
    ("valid_referers", Restricts(Referer, "look at the header `Referer` in an access script")),
    ("ssl_verify_client", Restricts(Certificate, "set `tls.client_certificates`, and `login` in the route")),
    ("set_real_ip_from", Lost("look at the header in a script; the connection's address stays the peer's")),
    ("real_ip_*", Lost("look at the header in a script; the connection's address stays the peer's")),
    ("limit_req*", Lost(RATES)),
    ("limit_conn*", Lost(RATES)),
    ("limit_rate*", Lost(RATES)),
    ("map", Lost("compute the variable with `mruby_set_code`")),
    ("geo*", Lost("compute the variable with `mruby_set_code`")),
    ("split_clients", Lost("compute the variable with `mruby_set_code`")),
    ("gzip*", Lost("the gateway does not compress; let upstream servers do it")),
    ("gunzip*", Lost("the gateway does not compress; let upstream servers do it")),
    ("expires", Lost("set `Cache-Control` in a header filter")),
    ("charset*", Lost("set `content_type` with its charset in a header filter")),
    ("sub_filter*", Lost("change the body in `mruby_output_body_filter_code`")),
    ("addition_*", Lost("change the body in `mruby_output_body_filter_code`")),
    ("image_filter*", Lost("the gateway changes no images")),
    ("autoindex*", Lost("the gateway lists no folders")),
    ("dav_*", Lost("the gateway writes no files")),
    ("proxy_cache*", Lost(CACHE)),
    ("proxy_no_cache", Lost(CACHE)),
    ("proxy_store*", Lost(CACHE)),
    ("proxy_ssl_*", Lost("upstream servers are verified; name their CA as `ca` in `[route.proxy]`")),
    ("proxy_redirect", Lost("change `Location` in a header filter")),
    ("proxy_cookie_*", Lost("change `Set-Cookie` in a header filter")),
    ("proxy_hide_header", Lost("delete the header in a header filter")),
    ("proxy_pass_header", Lost("all headers but those of the connection pass")),
    ("proxy_pass_request_*", Lost("headers and body pass; take headers away in a rewrite script")),
    ("proxy_intercept_errors", Lost("without `error_page`, responses pass as they are")),
    ("proxy_method", Lost("call the server with `Nginx::Async::HTTP.sub_request` and its `method`")),
    ("proxy_set_body", Lost("call the server with `Nginx::Async::HTTP.sub_request` and its `body`")),
    ("proxy_next_upstream*", Lost("a proxy has one upstream server")),
    ("proxy_bind", Lost("the system chooses the address of connections to upstream servers")),
    ("proxy_ignore_*", Lost("there is no counterpart; remove it")),
    ("fastcgi_*", Lost(OTHER_UPSTREAM)),
    ("uwsgi_*", Lost(OTHER_UPSTREAM)),
    ("scgi_*", Lost(OTHER_UPSTREAM)),
    ("grpc_*", Lost(OTHER_UPSTREAM)),
    ("memcached_*", Lost(OTHER_UPSTREAM)),
    ("ssl", Lost("name the address in `listeners.http_tls` instead of `listeners.http`")),
    ("ssl_*", Lost(TLS)),
    ("js_*", Lost(OTHER_SCRIPTS)),
    ("perl*", Lost(OTHER_SCRIPTS)),
    ("lua_*", Lost(OTHER_SCRIPTS)),
    ("echo*", Lost("make it a route with `return` and its `body`")),
    ("stub_status", Lost("the broker's monitor has the metrics")),
    ("add_trailer", Lost("responses have no trailers")),
    ("empty_gif", Lost("make it a route of `files`")),
    ("secure_link*", Restricts(Signature, "compare the signature in an access script with `Digest`")),
];

/// Directives that are needless with this one value.
const VALUES: &[(&str, &str, &str)] = &[
    ("server_tokens", "off", "no version is sent"),
    ("autoindex", "off", "no folder is listed"),
    ("gzip", "off", "nothing is compressed"),
    ("ssl", "off", "the listener is plain"),
    ("expires", "off", "no such header is added"),
    ("charset", "off", "no such header is changed"),
    ("auth_basic", "off", "a route without `login` asks for none"),
    ("allow", "all", "a route takes all addresses"),
    ("auth_request", "off", "no other request decides"),
    ("ssl_verify_client", "off", "no certificate is asked for"),
    ("satisfy", "all", "all scripts have to agree"),
    ("proxy_redirect", "off", "`Location` passes as it is"),
    ("proxy_cache", "off", "nothing is cached"),
    ("proxy_intercept_errors", "off", "responses pass as they are"),
    ("proxy_pass_request_headers", "on", "headers pass"),
    ("proxy_pass_request_body", "on", "the body passes"),
    ("etag", "on", "files have validators"),
    ("if_modified_since", "exact", "files have validators"),
    ("access_log", "off", "without `access_log` in `[gateway]` there is none"),
    ("log_subrequest", "off", "sub-requests are not in the access log"),
    ("proxy_next_upstream", "off", "a proxy has one upstream server"),
    ("lua_code_cache", "on", "there is no Lua"),
];

/// The restriction that a value of a directive takes back, as `auth_basic off` does in a block within another one.
pub(super) fn taken_back(name: &str, first: &str) -> Option<Restriction> {
    match (name, first) {
        ("auth_basic", "off") => Some(Password),
        ("auth_request", "off") => Some(Request),
        ("allow", "all") => Some(Address),
        ("satisfy", "all") => Some(Satisfy),
        ("ssl_verify_client", "off") => Some(Certificate),
        _ => None,
    }
}

/// What to tell about a directive that no other part of the import reads.
pub(super) fn verdict(name: &str, first: &str) -> Option<Verdict> {
    if let Some((_, _, reason)) = VALUES.iter().find(|(known, value, _)| *known == name && *value == first) {
        return Some(Needless(reason));
    }
    if name.contains("_by_lua") {
        let restriction = [("rewrite", Rewrite), ("access", Access)].into_iter();
        let restriction = restriction.filter(|(phase, _)| name.contains(phase)).map(|(_, kind)| kind).next();
        return Some(restriction.map_or(Lost(OTHER_SCRIPTS), |kind| Restricts(kind, OTHER_SCRIPTS)));
    }
    let is_meant =
        |known: &str| known.strip_suffix('*').map_or(known == name, |start| name.starts_with(start));
    TABLE.iter().find(|(known, _)| is_meant(known)).map(|(_, verdict)| *verdict)
}

#[cfg(test)]
mod tests {
    use super::{TABLE, VALUES, Verdict, verdict};

    #[test]
    fn values_and_beginnings_are_known() {
        for (name, first, is_needless) in [
            ("worker_processes", "4", Some(true)),
            ("gzip", "on", Some(false)),
            ("gzip", "off", Some(true)),
            ("auth_basic", "x", Some(false)),
            ("auth_basic", "off", Some(true)),
            ("access_by_lua_block", "", Some(false)),
            ("gzip_types", "a/b", Some(false)),
            ("content_by_lua_block", "", Some(false)),
            ("ssl_certificate", "x", Some(false)),
            ("access_log", "off", Some(true)),
            ("unheard_of", "", None),
        ] {
            let found = verdict(name, first).map(|found| matches!(found, Verdict::Needless(_)));
            assert_eq!(found, is_needless, "{name} {first}");
        }
    }

    #[test]
    fn no_row_hides_a_later_one() {
        for (at, (name, _)) in TABLE.iter().enumerate() {
            let hidden = TABLE[..at].iter().find(|(earlier, _)| {
                earlier.strip_suffix('*').map_or(*earlier == *name, |start| name.starts_with(start))
            });
            assert_eq!(hidden, None, "{name}");
        }
        assert!(
            VALUES
                .iter()
                .all(|(name, value, reason)| !name.is_empty() && !value.is_empty() && !reason.is_empty())
        );
    }
}
