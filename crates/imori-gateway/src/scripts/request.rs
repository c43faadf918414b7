//! The request, the response's headers, variables and the connection, in ngx_mruby's classes.

use bytes::Bytes;
use http::{HeaderMap, Method, Version, header::CONTENT_TYPE};
use imori_ruby::{Call, Error, Library, Reply, Value};

use super::context::{
    argument_error, awaiting, bytes_at, context_of, header_name, header_to_ruby, headers_to_ruby, integer_at,
    optional, optional_text_at, run_of, set_header, text_at, within_line,
};
use crate::request_context::{Pem, Phase, RequestContext, Tls, Upstream, VARIABLES_MAX, protocol};

pub(super) fn declare(library: &mut Library) {
    for class in
        ["Request", "Headers_in", "Headers_out", "Var", "Connection", "Server", "Filter", "Upstream", "SSL"]
    {
        library.class(&format!("Nginx::{class}"), "Object");
    }
    declare_request(library);
    for (class, is_request) in [("Nginx::Headers_in", true), ("Nginx::Headers_out", false)] {
        library
            .method(class, "[]", move |call| {
                let name = header_name(call.argument(0)?)?;
                with_headers(call, is_request, |headers| Ok(header_to_ruby(headers, &name)))
            })
            .method(class, "[]=", move |call| {
                let (name, value) = (call.argument(0)?, call.argument(1)?);
                with_headers(call, is_request, |headers| set_header(headers, name, value))?;
                Ok(value.clone())
            })
            .method(class, "delete", move |call| {
                let name = header_name(call.argument(0)?)?;
                with_headers(call, is_request, |headers| {
                    let before = header_to_ruby(headers, &name);
                    headers.remove(&name);
                    Ok(before)
                })
            })
            .method(class, "all", move |call| {
                with_headers(call, is_request, |headers| Ok(headers_to_ruby(headers)))
            });
    }
    library
        .method("Nginx::Var", "method_missing", |call| {
            let name = text_at(call, 0)?;
            match name.strip_suffix('=') {
                Some(name) => set_variable(call, name, 1),
                None if call.arguments.len() == 1 => Ok(optional(context_of(call)?.variable(&name))),
                None => Err(argument_error(format!("variable `{name}` takes no arguments"))),
            }
        })
        .method("Nginx::Var", "set", |call| set_variable(call, &text_at(call, 0)?, 1))
        .method("Nginx::Var", "[]", |call| Ok(optional(context_of(call)?.variable(&text_at(call, 0)?))))
        .method("Nginx::Var", "exist?", |call| Ok(context_of(call)?.has_variable(&text_at(call, 0)?).into()));
    for (name, variable) in [("remote_ip", "remote_addr"), ("local_ip", "server_addr")] {
        library.method("Nginx::Connection", name, move |call| {
            Ok(optional(context_of(call)?.variable(variable)))
        });
    }
    for (name, variable) in [("remote_port", "remote_port"), ("local_port", "server_port")] {
        library.method("Nginx::Connection", name, move |call| {
            Ok(optional(context_of(call)?.variable(variable)))
        });
    }
    for (name, variable) in
        [("document_root", "document_root"), ("realpath_root", "realpath_root"), ("path", "realpath_root")]
    {
        library.method("Nginx::Server", name, move |call| Ok(optional(context_of(call)?.variable(variable))));
    }
    library
        .method("Nginx::Filter", "body", |call| Ok(Value::string(&*filter_of(call)?.filtered.borrow())))
        .method("Nginx::Filter", "body=", set_filtered)
        .method("Nginx::Filter", "output", set_filtered)
        .singleton_method("Nginx::Upstream", "__server", |call| {
            let upstreams = context_of(call)?.upstreams.borrow();
            Ok(optional(upstreams.get(&text_at(call, 0)?).and_then(|upstream| upstream.server.as_ref())))
        })
        .singleton_method("Nginx::Upstream", "__set_server", set_upstream_server)
        .singleton_method("Nginx::Upstream", "__keepalive", |call| {
            let upstreams = context_of(call)?.upstreams.borrow();
            let keepalive = upstreams.get(&text_at(call, 0)?).and_then(|upstream| upstream.keepalive);
            Ok(keepalive.map_or(Value::Nil, Value::Integer))
        })
        .singleton_method("Nginx::Upstream", "__set_keepalive", |call| {
            let (name, number) = (line_at(call, 0)?, integer_at(call, 1)?);
            with_upstream(call, name, |upstream| upstream.keepalive = Some(number))
        });
    declare_ssl(library);
    library.prelude("<imori>/request.rb", include_str!("../ruby/request.rb"));
}

fn declare_request(library: &mut Library) {
    const CLASS: &str = "Nginx::Request";
    for (name, variable) in [
        ("scheme", "scheme"),
        ("hostname", "host"),
        ("authority", "http_host"),
        ("filename", "request_filename"),
        ("user", "remote_user"),
        ("document_root", "document_root"),
    ] {
        library.method(CLASS, name, move |call| Ok(optional(context_of(call)?.variable(variable))));
    }
    library
        .method(CLASS, "uri", |call| Ok(Value::string(&context_of(call)?.request.borrow().path)))
        .method(CLASS, "unparsed_uri", |call| Ok(Value::string(&context_of(call)?.request.borrow().raw_uri)))
        .method(CLASS, "args", |call| Ok(optional(context_of(call)?.request.borrow().query.as_ref())))
        .method(CLASS, "method", |call| Ok(context_of(call)?.request.borrow().method.as_str().into()))
        .method(CLASS, "protocol", |call| Ok(protocol(context_of(call)?.request.borrow().version).into()))
        .method(CLASS, "request_line", |call| Ok(context_of(call)?.request_line().as_str().into()))
        .method(CLASS, "sub_request?", |call| Ok(context_of(call)?.is_sub_request.into()))
        .method(CLASS, "content_type", |call| {
            Ok(header_to_ruby(&context_of(call)?.response.borrow().headers, &CONTENT_TYPE))
        })
        .method(CLASS, "content_type=", |call| {
            let mut response = context_of(call)?.response.borrow_mut();
            set_header(&mut response.headers, &"content-type".into(), call.argument(0)?)?;
            Ok(call.argument(0)?.clone())
        })
        .method(CLASS, "uri=", |call| {
            let path = line_at(call, 0)?;
            if !path.starts_with('/') {
                return Err(argument_error(format!(
                    "`{}` is no path; begin it with `/`",
                    path.escape_debug()
                )));
            }
            context_of(call)?.request.borrow_mut().path = path;
            Ok(Value::Nil)
        })
        .method(CLASS, "unparsed_uri=", |call| {
            context_of(call)?.request.borrow_mut().raw_uri = line_at(call, 0)?;
            Ok(Value::Nil)
        })
        .method(CLASS, "args=", |call| {
            let query = if call.argument(0)? == &Value::Nil { None } else { Some(line_at(call, 0)?) };
            context_of(call)?.request.borrow_mut().query = query;
            Ok(Value::Nil)
        })
        .method(CLASS, "request_line=", |call| {
            context_of(call)?.request.borrow_mut().line = Some(line_at(call, 0)?);
            Ok(Value::Nil)
        })
        .method(CLASS, "method=", |call| {
            context_of(call)?.request.borrow_mut().method = method_at(call, 0)?;
            Ok(Value::Nil)
        })
        .method(CLASS, "protocol=", |call| {
            let name = text_at(call, 0)?;
            let known =
                [Version::HTTP_09, Version::HTTP_10, Version::HTTP_11, Version::HTTP_2, Version::HTTP_3];
            let version = known.into_iter().find(|&version| protocol(version) == name).ok_or_else(|| {
                argument_error(format!("`{}` is no protocol; use `HTTP/1.1`", name.escape_debug()))
            })?;
            context_of(call)?.request.borrow_mut().version = version;
            Ok(Value::Nil)
        })
        .awaiting_method(CLASS, "get_body", body)
        .awaiting_method(CLASS, "body", body);
}

fn declare_ssl(library: &mut Library) {
    const CLASS: &str = "Nginx::SSL";
    library
        .method(CLASS, "servername", |call| tls_of(call, |tls| tls.server_name.as_str().into()))
        .method(CLASS, "tls_version", |call| tls_of(call, |tls| tls.version.as_str().into()))
        .method(CLASS, "local_port", |call| {
            Ok(i64::from(run_of(call)?.context.connection.local.port()).into())
        })
        .method(CLASS, "certificate=", |call| {
            let file = Pem::File(line_at(call, 0)?);
            choose(call, |tls| tls.certificate = Some(file))
        })
        .method(CLASS, "certificate_key=", |call| {
            let file = Pem::File(line_at(call, 0)?);
            choose(call, |tls| tls.key = Some(file))
        })
        .method(CLASS, "certificate_data=", |call| {
            let text = Pem::Text(bytes_at(call, 0)?);
            choose(call, |tls| tls.certificate = Some(text))
        })
        .method(CLASS, "certificate_key_data=", |call| {
            let text = Pem::Text(bytes_at(call, 0)?);
            choose(call, |tls| tls.key = Some(text))
        });
}

/// The body of the request, which is read from the client when a script first asks for it.
fn body(call: &Call<'_>) -> Result<Reply, Error> {
    let context = context_of(call)?;
    if let Some(body) = &context.request.borrow().body {
        return Ok(Reply::Value(Value::string(body)));
    }
    let run = run_of(call)?.clone();
    awaiting(async move {
        let body = run.services.read_body(&run.context).await;
        let body = body.map_err(|reason| Error::new("Imori::RequestError", reason))?;
        run.context.request.borrow_mut().body = Some(Bytes::clone(&body));
        Ok(Value::string(&body))
    })
}

/// The headers of the request or of the response.
fn with_headers<T>(
    call: &Call<'_>,
    is_request: bool,
    work: impl FnOnce(&mut HeaderMap) -> Result<T, Error>,
) -> Result<T, Error> {
    let context = context_of(call)?;
    if is_request {
        work(&mut context.request.borrow_mut().headers)
    } else {
        work(&mut context.response.borrow_mut().headers)
    }
}

fn set_variable(call: &Call<'_>, name: &str, index: usize) -> Result<Value, Error> {
    let context = context_of(call)?;
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    if name.is_empty() || !name.chars().all(is_name) {
        let name = name.escape_debug();
        return Err(argument_error(format!(
            "`{name}` is no name of a variable; use letters, digits and `_`"
        )));
    }
    let value = optional_text_at(call, index)?;
    within_line(name.len() + value.as_ref().map_or(0, String::len))?;
    if !context.set_variable(name, value.as_deref()) {
        return Err(argument_error(format!("a request has {VARIABLES_MAX} variables at most")));
    }
    Ok(call.arguments.get(index).cloned().unwrap_or(Value::Nil))
}

/// The context in the phase of body filters.
fn filter_of<'a>(call: &'a Call<'_>) -> Result<&'a RequestContext, Error> {
    let context = context_of(call)?;
    if context.phase.get() == Phase::BodyFilter {
        Ok(context)
    } else {
        Err(Error::new("RuntimeError", "Nginx::Filter is for scripts of `body_filter`; use Nginx.rputs here"))
    }
}

fn set_filtered(call: &Call<'_>) -> Result<Value, Error> {
    let body = bytes_at(call, 0)?;
    filter_of(call)?.filtered.replace(Bytes::from(body));
    Ok(call.argument(0)?.clone())
}

fn set_upstream_server(call: &Call<'_>) -> Result<Value, Error> {
    let (name, server) = (line_at(call, 0)?, line_at(call, 1)?);
    if server.parse::<http::uri::Authority>().is_err() {
        let server = server.escape_debug();
        return Err(argument_error(format!("`{server}` is no server; use `host:port`")));
    }
    with_upstream(call, name, |upstream| upstream.server = Some(server))
}

fn with_upstream(call: &Call<'_>, name: String, work: impl FnOnce(&mut Upstream)) -> Result<Value, Error> {
    let mut upstreams = context_of(call)?.upstreams.borrow_mut();
    if upstreams.len() >= VARIABLES_MAX && !upstreams.contains_key(&name) {
        return Err(argument_error(format!("a request has {VARIABLES_MAX} upstreams at most")));
    }
    work(upstreams.entry(name).or_default());
    Ok(Value::Nil)
}

fn tls_of(call: &Call<'_>, read: impl FnOnce(&Tls) -> Value) -> Result<Value, Error> {
    Ok(read(&run_of(call)?.context.tls.borrow()))
}

/// Changes what the handshake uses.
fn choose(call: &Call<'_>, change: impl FnOnce(&mut Tls)) -> Result<Value, Error> {
    let context = &run_of(call)?.context;
    if context.phase.get() != Phase::SslHandshake {
        return Err(Error::new("RuntimeError", "a certificate is chosen in the script of `ssl_handshake`"));
    }
    change(&mut context.tls.borrow_mut());
    Ok(Value::Nil)
}

/// A method of HTTP.
pub(super) fn method_at(call: &Call<'_>, index: usize) -> Result<Method, Error> {
    let name = text_at(call, index)?;
    Method::from_bytes(name.as_bytes())
        .map_err(|_| argument_error(format!("`{}` is no method of HTTP", name.escape_debug())))
}

/// Text that stands in one line of a message.
pub(super) fn line_at(call: &Call<'_>, index: usize) -> Result<String, Error> {
    let line = text_at(call, index)?;
    within_line(line.len())?;
    if line.contains(['\r', '\n', '\0']) {
        return Err(argument_error(format!("argument {} has a line break; leave it out", index + 1)));
    }
    Ok(line)
}
