//! The state of one request, and nginx's names for what it knows.

mod variables;
pub(crate) mod request_context;

pub(crate) use request_context::{
    Connection, Decision, LINE_BYTES_MAX, Pem, Phase, RESPONSE_BYTES_MAX, Request, RequestContext,
    ScriptLimits, Tls, Upstream, VARIABLES_MAX,
};
pub(crate) use variables::{NGINX_VERSION, protocol};
