//! The state of one request, and nginx's names for what it knows.

mod variables;
pub(crate) mod exchange;

pub(crate) use exchange::{
    Connection, Decision, Exchange, LINE_BYTES_MAX, Pem, Phase, RESPONSE_BYTES_MAX, Request, ScriptLimits,
    Tls, Upstream, VARIABLES_MAX,
};
pub(crate) use variables::{NGINX_VERSION, protocol};
