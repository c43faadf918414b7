//! `/v1/gateway`: the HTTP gateway, its routes, and the latest faults of its scripts.

use imori_server::{GatewayFigures, RouteFigures, ScriptFault};
use serde::Serialize;

use crate::milliseconds::since_epoch;
use crate::requests::answer::Answer;
use crate::requests::operator::Operator;

/// The HTTP gateway.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct Gateway {
    /// The file of its routes; absent if the broker has no gateway.
    file: Option<String>,
    /// When the routes in force were read, in milliseconds since the UNIX epoch.
    read_at: Option<u64>,
    /// The faults of the file as it is now, each with its file and line. The routes in force are those from before.
    problems: Vec<String>,
    /// Number of open connections.
    connections: usize,
    routes: Vec<GatewayRoute>,
    /// The latest first.
    script_faults: Vec<GatewayFault>,
}

/// A route of the gateway.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
struct GatewayRoute {
    name: String,
    /// Empty for all.
    methods: Vec<String>,
    /// Empty for all.
    hosts: Vec<String>,
    /// A path, a prefix that ends in `\u{2026}`, or a regular expression after `~`.
    pattern: String,
    /// The key of the action in the routes file, such as `publish`.
    action: &'static str,
    /// The user who acts; absent for the caller.
    user: Option<String>,
    scripts: bool,
    /// Number of requests that wait for their response.
    in_flight: usize,
    /// Number of responses by the first digit of their status, from 1 to 5.
    responses: Vec<u64>,
    /// Time from requests to the heads of their responses, in microseconds, in all.
    time_us: u64,
}

/// A fault of a script.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
struct GatewayFault {
    /// The phase of the script, such as `content`.
    phase: &'static str,
    /// `file:line` or `file:line:in method`; empty if none is known.
    place: String,
    message: String,
    /// How often it came.
    count: u64,
    /// When it came last, in milliseconds since the UNIX epoch.
    last: u64,
}

impl From<RouteFigures> for GatewayRoute {
    fn from(route: RouteFigures) -> GatewayRoute {
        let [_, responses @ ..] = route.responses;
        GatewayRoute {
            name: route.name,
            methods: route.methods,
            hosts: route.hosts,
            pattern: route.pattern,
            action: route.action,
            user: route.user,
            scripts: route.has_scripts,
            in_flight: route.in_flight,
            responses: responses.to_vec(),
            time_us: u64::try_from(route.time.as_micros()).unwrap_or(u64::MAX),
        }
    }
}

impl From<ScriptFault> for GatewayFault {
    fn from(fault: ScriptFault) -> GatewayFault {
        let ScriptFault { phase, place, message, count, last } = fault;
        GatewayFault { phase, place, message, count, last: since_epoch(last) }
    }
}

/// Shows the HTTP gateway.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/gateway", tag = "broker",
    responses((status = 200, body = Gateway)),
))]
pub(super) async fn show(operator: Operator) -> Answer<Gateway> {
    let GatewayFigures { connections, routes, file, problems, script_faults } =
        operator.broker().gateway_figures();
    let (file, read_at) = file.unzip();
    Answer::of(Gateway {
        file,
        read_at: read_at.map(since_epoch),
        problems,
        connections,
        routes: routes.into_iter().map(GatewayRoute::from).collect(),
        script_faults: script_faults.into_iter().map(GatewayFault::from).collect(),
    })
}
