//! `Nginx` itself: the response's body and status, redirects, the log, and the constants.

use http::{HeaderValue, StatusCode, header::LOCATION};
use imori_ruby::{Call, Error, Library, Value};

use super::{
    context::{argument_error, bytes_at, context_of, header_value, integer_at, run_of, text_at},
    services::{LOG_LINE_BYTES_MAX, LOG_LINES_MAX, LogLevel},
};
use crate::request_context::{Decision, NGINX_VERSION, RESPONSE_BYTES_MAX};

/// The version of ngx_mruby whose API scripts have.
const MODULE_VERSION: &str = "2.6.0";

const OK: i64 = 0;
const ERROR: i64 = -1;
const AGAIN: i64 = -2;
const BUSY: i64 = -3;
const DONE: i64 = -4;
const DECLINED: i64 = -5;
const ABORT: i64 = -6;

/// nginx's status that closes the connection without an answer.
const CLOSE: i64 = 444;

const CONSTANTS: &[(&str, i64)] = &[
    ("OK", OK),
    ("ERROR", ERROR),
    ("AGAIN", AGAIN),
    ("BUSY", BUSY),
    ("DONE", DONE),
    ("DECLINED", DECLINED),
    ("ABORT", ABORT),
    ("HTTP_CONTINUE", 100),
    ("HTTP_SWITCHING_PROTOCOLS", 101),
    ("HTTP_PROCESSING", 102),
    ("HTTP_OK", 200),
    ("HTTP_CREATED", 201),
    ("HTTP_ACCEPTED", 202),
    ("HTTP_NO_CONTENT", 204),
    ("HTTP_PARTIAL_CONTENT", 206),
    ("HTTP_SPECIAL_RESPONSE", 300),
    ("HTTP_MOVED_PERMANENTLY", 301),
    ("HTTP_MOVED_TEMPORARILY", 302),
    ("HTTP_SEE_OTHER", 303),
    ("HTTP_NOT_MODIFIED", 304),
    ("HTTP_TEMPORARY_REDIRECT", 307),
    ("HTTP_PERMANENT_REDIRECT", 308),
    ("HTTP_BAD_REQUEST", 400),
    ("HTTP_UNAUTHORIZED", 401),
    ("HTTP_FORBIDDEN", 403),
    ("HTTP_NOT_FOUND", 404),
    ("HTTP_NOT_ALLOWED", 405),
    ("HTTP_REQUEST_TIME_OUT", 408),
    ("HTTP_CONFLICT", 409),
    ("HTTP_LENGTH_REQUIRED", 411),
    ("HTTP_PRECONDITION_FAILED", 412),
    ("HTTP_REQUEST_ENTITY_TOO_LARGE", 413),
    ("HTTP_REQUEST_URI_TOO_LARGE", 414),
    ("HTTP_UNSUPPORTED_MEDIA_TYPE", 415),
    ("HTTP_RANGE_NOT_SATISFIABLE", 416),
    ("HTTP_TOO_MANY_REQUESTS", 429),
    ("HTTP_CLOSE", CLOSE),
    ("HTTP_NGINX_CODES", 494),
    ("HTTP_REQUEST_HEADER_TOO_LARGE", 494),
    ("HTTPS_CERT_ERROR", 495),
    ("HTTPS_NO_CERT", 496),
    ("HTTP_TO_HTTPS", 497),
    ("HTTP_CLIENT_CLOSED_REQUEST", 499),
    ("HTTP_INTERNAL_SERVER_ERROR", 500),
    ("HTTP_NOT_IMPLEMENTED", 501),
    ("HTTP_BAD_GATEWAY", 502),
    ("HTTP_SERVICE_UNAVAILABLE", 503),
    ("HTTP_GATEWAY_TIME_OUT", 504),
    ("HTTP_INSUFFICIENT_STORAGE", 507),
    ("LOG_STDERR", 0),
    ("LOG_EMERG", 1),
    ("LOG_ALERT", 2),
    ("LOG_CRIT", 3),
    ("LOG_ERR", 4),
    ("LOG_WARN", 5),
    ("LOG_NOTICE", 6),
    ("LOG_INFO", 7),
    ("LOG_DEBUG", 8),
];

pub(super) fn declare(library: &mut Library) {
    library.class("Nginx", "Object");
    for (name, value) in CONSTANTS {
        library.constant(&format!("Nginx::{name}"), Value::Integer(*value));
    }
    library
        .constant("Nginx::TRUE", "1".into())
        .constant("Nginx::FALSE", "0".into())
        .singleton_method("Nginx", "__put", put)
        .singleton_method("Nginx", "return", decide)
        .singleton_method("Nginx", "send_header", decide)
        .singleton_method("Nginx", "status_code=", decide)
        .singleton_method("Nginx", "__redirect", redirect)
        .singleton_method("Nginx", "__log", log)
        .singleton_method("Nginx", "module_name", |_| Ok("ngx_mruby".into()))
        .singleton_method("Nginx", "module_version", |_| Ok(MODULE_VERSION.into()))
        .singleton_method("Nginx", "nginx_version", |_| Ok(NGINX_VERSION.into()))
        .singleton_method("Nginx", "server_version", |_| Ok(NGINX_VERSION.into()))
        .singleton_method("Nginx", "configure", |_| Ok("".into()))
        .prelude("<imori>/nginx.rb", include_str!("../ruby/nginx.rb"));
}

/// Appends to the body of the response.
fn put(call: &Call<'_>) -> Result<Value, Error> {
    let context = context_of(call)?;
    if context.phase.get().is_after_content() {
        return Err(Error::new(
            "RuntimeError",
            "the response is on its way; change it by Nginx::Filter#body=",
        ));
    }
    let mut response = context.response.borrow_mut();
    for index in 0..call.arguments.len() {
        let bytes = bytes_at(call, index)?;
        if response.body.len() + bytes.len() > RESPONSE_BYTES_MAX {
            return Err(Error::new(
                "Imori::LimitError",
                format!("a response has {} MiB at most", RESPONSE_BYTES_MAX >> 20),
            ));
        }
        response.body.extend_from_slice(&bytes);
    }
    Ok(Value::Nil)
}

/// Sets the status, or tells nginx's flow how to go on.
fn decide(call: &Call<'_>) -> Result<Value, Error> {
    let context = context_of(call)?;
    let status = integer_at(call, 0)?;
    let flow = match status {
        OK | AGAIN | DECLINED => Some(Decision::Continue),
        DONE => Some(Decision::Respond),
        CLOSE => Some(Decision::Close),
        _ => None,
    };
    if let Some(decision) = flow {
        context.decide(decision);
        return Ok(Value::Nil);
    }
    let status = match status {
        ERROR | ABORT => StatusCode::INTERNAL_SERVER_ERROR,
        BUSY => StatusCode::SERVICE_UNAVAILABLE,
        _ => u16::try_from(status)
            .ok()
            .and_then(|status| StatusCode::from_u16(status).ok())
            .filter(|status| (200..600).contains(&status.as_u16()))
            .ok_or_else(|| argument_error(format!("`{status}` is no status; use one from 200 to 599")))?,
    };
    context.response.borrow_mut().status = Some(status);
    context.decide(Decision::Respond);
    Ok(Value::Nil)
}

/// Redirects the client to a URL, or the request to another route.
fn redirect(call: &Call<'_>) -> Result<Value, Error> {
    let context = context_of(call)?;
    let target = text_at(call, 0)?;
    if target.is_empty() {
        return Ok(Value::Nil);
    }
    let target = match target.strip_prefix("$scheme") {
        Some(rest) => format!("{}{rest}", context.scheme()),
        None => target,
    };
    if target.starts_with("http://") || target.starts_with("https://") {
        let status = match integer_at(call, 1)? {
            status @ 300..=399 => StatusCode::from_u16(status as u16).unwrap_or(StatusCode::FOUND),
            other => {
                return Err(argument_error(format!(
                    "`{other}` is no redirect; use a status from 300 to 399"
                )));
            }
        };
        let value: HeaderValue = header_value(&LOCATION, &Value::String(target.into_bytes()))?;
        let mut response = context.response.borrow_mut();
        response.status = Some(status);
        response.headers.insert(LOCATION, value);
        context.decide(Decision::Respond);
    } else if target.starts_with(['/', '@']) && !target.contains(['\r', '\n', '\0']) {
        context.decide(Decision::InternalRedirect(target));
    } else {
        let target = target.escape_debug();
        return Err(argument_error(format!(
            "`{target}` is neither a URL nor a path; begin it with `http://`, `https://` or `/`"
        )));
    }
    Ok(Value::Nil)
}

/// Writes a line into the log.
fn log(call: &Call<'_>) -> Result<Value, Error> {
    let run = run_of(call)?;
    let level = match integer_at(call, 0)? {
        0..=4 => LogLevel::Error,
        5 => LogLevel::Warn,
        6 | 7 => LogLevel::Info,
        8 => LogLevel::Debug,
        other => return Err(argument_error(format!("`{other}` is no level; use one of Nginx::LOG_…"))),
    };
    let lines = run.context.log_lines.get();
    run.context.log_lines.set(lines.saturating_add(1));
    if lines >= LOG_LINES_MAX {
        return Ok(Value::Nil);
    }
    let bytes = bytes_at(call, 1)?;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(LOG_LINE_BYTES_MAX)]);
    let line = run.tools().secrets.redact(&text);
    // A line of the log is one line, whatever a request has in it.
    let line: String = line.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    run.services.log(&run.context, level, &line);
    Ok(Value::Nil)
}
