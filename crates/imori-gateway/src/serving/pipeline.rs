//! The phases of a request, in nginx's order, and the action of its route.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::LocalBoxFuture;
use http::header::{ALLOW, WWW_AUTHENTICATE};
use http::uri::Authority;
use http::{HeaderValue, Method, Response, StatusCode};
use hyper::upgrade::OnUpgrade;
use imori_core::authorize::Identity;
use imori_server::http::is_own_host;
use tokio::time::timeout;

use super::access::logged;
use super::filters;
use super::opening::open_lost;
use super::origins::{allowed_origin, preflight_answer, preflight_method, with_origin};
use super::run::{Run, closing, lost, value_of};
use super::script_services::ScriptServices;
use crate::actions;
use crate::asking::Asking;
use crate::callers::{LoginError, Sent, identity_of};
use crate::facts::{ConnectionOrigin, Facts, Target, normal_path};
use crate::limits::REDIRECTS_MAX;
use crate::request_context::{Decision, Phase, RequestContext, ScriptLimits};
use crate::respond::{Body, problem};
use crate::routes::{Action, BuiltIn, LoginRule, Route, RouteMatch, RouteQuery, ScriptId};
use crate::scripts::{Outcome, Services};
use crate::worker::Worker;

/// The response to a request, for the scripts of another one.
pub(crate) fn respond_to_script<'a>(
    worker: &'a Rc<Worker>,
    asking: Asking,
) -> LocalBoxFuture<'a, Response<Body>> {
    Box::pin(respond(worker, asking))
}

/// The response to a request.
pub(super) async fn respond(worker: &Rc<Worker>, asking: Asking) -> Response<Body> {
    let Asking { place, parts, body, mut upgrade, depth } = asking;
    let target = match Target::of(&parts) {
        Ok(target) => target,
        Err(message) => return problem(StatusCode::BAD_REQUEST, message),
    };
    let served = worker.served();
    let authority = target.authority.clone();
    let context = Rc::new(place.context(parts, target, depth > 0));
    let services = ScriptServices::new(worker, &place, &served, body, depth);
    let run = Run { worker, served: &served, context: &context, services: &services };
    let preflight = preflight_method(&context.request.borrow().method, &context.request.borrow().headers);
    let authority = authority.as_ref().map_or("", Authority::as_str);
    let first = First { place: &place, authority, preflight, is_internal: depth > 0 };
    let (route, response) = routed(&run, first, &mut upgrade).await;
    if let Some(route) = &route {
        route.responses.note(response.status(), context.started.elapsed());
    }
    match &served.configuration.access_log {
        Some(path) if depth == 0 => {
            let name = route.as_ref().map(|route| route.name.as_str());
            logged(worker, path, &context, name, response)
        }
        _ => response,
    }
}

/// What a request is when it comes.
struct First<'a> {
    place: &'a Rc<ConnectionOrigin>,
    /// The host with its port, as the client wrote it.
    authority: &'a str,
    /// The method that a page asks about.
    preflight: Option<Method>,
    is_internal: bool,
}

/// The response to a request, and the route that it is of.
async fn routed(
    run: &Run<'_>,
    first: First<'_>,
    upgrade: &mut Option<OnUpgrade>,
) -> (Option<Arc<Route>>, Response<Body>) {
    let First { place, authority, preflight, mut is_internal } = first;
    // A script asks for whatever host it likes.
    let is_from_outside = !is_internal;
    let (served, context) = (run.served, run.context);
    for (phase, script) in [
        (Phase::PostRead, served.configuration.post_read),
        (Phase::ServerRewrite, served.configuration.server_rewrite),
    ] {
        if let Some(script) = script
            && let Some(response) = decided(run, phase, script).await
        {
            return (None, response);
        }
    }
    for _ in 0..=REDIRECTS_MAX {
        let found = {
            let request = context.request.borrow();
            served.configuration.router.find(RouteQuery {
                host: &context.host,
                port: place.local.port(),
                method: preflight.as_ref().unwrap_or(&request.method),
                path: &request.path,
                is_internal,
            })
        };
        let (route, parameters) = match found {
            RouteMatch::Route(route, parameters) => (route, parameters),
            RouteMatch::OtherMethods(methods) => return (None, other_method(&methods)),
            RouteMatch::Nothing => {
                return (None, problem(StatusCode::NOT_FOUND, "no route of the gateway has this path"));
            }
        };
        if is_from_outside && is_rebound(run, place, &route, authority) {
            let message = "this host is not known here; use an IP address or `localhost`, or add the name to \
                           `broker.host_names`, or to `hosts` of the route";
            return (Some(route), problem(StatusCode::MISDIRECTED_REQUEST, message));
        }
        let origin = match allowed_origin(&route, &context.request.borrow().headers, authority) {
            Ok(origin) => origin,
            Err(response) => return (Some(route), response),
        };
        if preflight.is_some() && !route.methods.contains(&Method::OPTIONS) {
            let response = preflight_answer(&route, &context.request.borrow().headers);
            return (Some(route), with_origin(response, origin));
        }
        let facts = Facts::new(place, context, Arc::clone(&route), parameters);
        match within_limits(run, &facts, upgrade).await {
            Answered::Response(response) => {
                let response = match route.has_filters() {
                    true => filters::filter(run, &route, response).await,
                    false => response,
                };
                return (Some(route), with_origin(response, origin));
            }
            Answered::Elsewhere(path) => {
                if let Err(message) = redirect(context, &path) {
                    return (Some(route), problem(StatusCode::INTERNAL_SERVER_ERROR, message));
                }
                is_internal = true;
            }
        }
    }
    tracing::warn!(path = %context.request.borrow().raw_uri, "a request was redirected too often");
    (None, problem(StatusCode::INTERNAL_SERVER_ERROR, "the request was redirected too often"))
}

/// Whether a page may have led a name of its own to this machine, to act as the user of a route (SECURITY ROOM-15).
fn is_rebound(run: &Run<'_>, place: &ConnectionOrigin, route: &Route, authority: &str) -> bool {
    place.local.ip().is_loopback()
        && route.acts_for_anybody()
        && !authority.is_empty()
        && !is_own_host(&run.worker.shared.broker, authority)
}

/// What came of a route.
enum Answered {
    Response(Response<Body>),
    /// The route of this path answers.
    Elsewhere(String),
}

/// Runs a script, and gives the response if it has decided on one here; redirects are for routes alone.
async fn decided(run: &Run<'_>, phase: Phase, script: ScriptId) -> Option<Response<Body>> {
    match decide(run, phase, script).await {
        Ok(()) => None,
        Err(Answered::Response(response)) => Some(response),
        Err(Answered::Elsewhere(path)) => redirect(run.context, &path)
            .err()
            .map(|message| problem(StatusCode::INTERNAL_SERVER_ERROR, message)),
    }
}

/// Runs a script; the error is what it has decided instead of going on.
async fn decide(run: &Run<'_>, phase: Phase, script: ScriptId) -> Result<(), Answered> {
    run.script(phase, script).await.map_err(Answered::Response)?;
    match run.context.take_decision() {
        Decision::Continue => Ok(()),
        Decision::Respond => Err(Answered::Response(run.context.take_response().map(Body::full))),
        Decision::InternalRedirect(path) => Err(Answered::Elsewhere(path)),
        Decision::Close => Err(Answered::Response(closing())),
    }
}

/// Changes the request to that of another route of the gateway.
fn redirect(context: &RequestContext, path: &str) -> Result<(), &'static str> {
    let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    let path = normal_path(path)?;
    let mut request = context.request.borrow_mut();
    request.path = path;
    if let Some(query) = query {
        request.query = Some(query.to_owned());
    }
    Ok(())
}

/// Counts a request of a route that has no response yet.
struct InFlight<'a>(&'a Route);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn within_limits(run: &Run<'_>, facts: &Facts, upgrade: &mut Option<OnUpgrade>) -> Answered {
    let route = &facts.route;
    let before = route.in_flight.fetch_add(1, Ordering::Relaxed);
    let _in_flight = InFlight(route);
    if before >= route.limits.in_flight {
        let message = "the route has too many requests that wait for their responses; try again later";
        return Answered::Response(problem(StatusCode::TOO_MANY_REQUESTS, message));
    }
    let identity = match log_in(run.worker, facts).await {
        Ok(identity) => identity,
        Err(response) => return Answered::Response(response),
    };
    facts.context.request.borrow_mut().user = identity.as_ref().map(|identity| identity.user.to_string());
    let limits = &route.limits;
    let time = match &route.action {
        Action::BuiltIn(BuiltIn::Pull(pull)) => Some(limits.time + pull.wait),
        // Its bodies may take as long as they move.
        Action::BuiltIn(BuiltIn::Proxy(_)) => None,
        _ => Some(limits.time),
    };
    if route.has_scripts() {
        run.services.act_for(identity.clone(), &route.vhost, limits.body_bytes);
        facts.context.limits.set(ScriptLimits {
            slice_cpu: limits.cpu_slice,
            cpu: limits.cpu,
            wall_time: limits.time,
            awaits: limits.awaits,
            children: limits.children,
            answer_bytes: ScriptLimits::default().answer_bytes,
        });
    }
    let acting = act(run, facts, identity.as_ref(), upgrade);
    let acted = match time {
        Some(time) => timeout(time, acting).await,
        None => Ok(acting.await),
    };
    acted.unwrap_or_else(|_| {
        let message = "the request took longer than its route allows";
        Answered::Response(problem(StatusCode::GATEWAY_TIMEOUT, message))
    })
}

/// Runs the phases before the response, and then makes it.
async fn act(
    run: &Run<'_>,
    facts: &Facts,
    identity: Option<&Identity>,
    upgrade: &mut Option<OnUpgrade>,
) -> Answered {
    let route = &facts.route;
    for (variable, script) in &route.set {
        let value = match run.script(Phase::Set, *script).await {
            Ok(value) => text_of(&value),
            Err(response) => return Answered::Response(response),
        };
        facts.context.set_variable(variable, value.as_deref());
    }
    for (phase, script) in [(Phase::Rewrite, route.rewrite), (Phase::Access, route.access)] {
        if let Some(script) = script
            && let Err(answered) = decide(run, phase, script).await
        {
            return answered;
        }
    }
    let action = match &route.action {
        Action::Script(script) => {
            return content(run, *script).await.map_or_else(|answered| answered, Answered::Response);
        }
        Action::BuiltIn(action) => action,
    };
    let body = run.services.take_body();
    let mut response = actions::act(run.worker, action, facts, identity, body, upgrade.take()).await;
    // Headers that scripts have set before, unless the action sets them itself.
    let kept = std::mem::take(&mut facts.context.response.borrow_mut().headers);
    for name in kept.keys() {
        if !response.headers().contains_key(name) {
            kept.get_all(name).iter().for_each(|value| {
                response.headers_mut().append(name, value.clone());
            });
        }
    }
    Answered::Response(response)
}

/// Has a script make the response.
async fn content(run: &Run<'_>, script: ScriptId) -> Result<Response<Body>, Answered> {
    run.context.phase.set(Phase::Content);
    let Some(scripts) = run.served.scripts() else { return Err(Answered::Response(lost())) };
    let (worker, served) = (Rc::clone(run.worker), Rc::clone(run.served));
    let context = Rc::clone(run.context);
    let own_services = Rc::clone(run.services);
    let services: Rc<dyn Services> = Rc::clone(run.services) as _;
    // A script that streams goes on once its response is on its way.
    let own = Rc::clone(&context);
    let mut running = Box::pin(async move {
        let outcome = scripts.run(script, &own, &services).await;
        if matches!(outcome, Outcome::Lost) {
            open_lost(&worker, &served);
        }
        own.end_stream();
        value_of(outcome, Phase::Content, (&worker.shared, &own_services))
    });
    let chunks = tokio::select! {
        biased;
        ended = running.as_mut() => {
            ended.map_err(Answered::Response)?;
            return match context.take_stream() {
                Some(chunks) => {
                    context.end_stream();
                    Ok(filters::streamed(&context, chunks, None))
                }
                None => match context.take_decision() {
                    Decision::Continue | Decision::Respond => Ok(context.take_response().map(Body::full)),
                    Decision::InternalRedirect(path) => Err(Answered::Elsewhere(path)),
                    Decision::Close => Ok(closing()),
                },
            };
        }
        chunks = context.stream_started() => chunks,
    };
    let task = tokio::task::spawn_local(async move { drop(running.await) });
    Ok(filters::streamed(&context, chunks, Some(task)))
}

fn text_of(value: &imori_ruby::Value) -> Option<String> {
    match value {
        imori_ruby::Value::Nil => None,
        imori_ruby::Value::Integer(number) => Some(number.to_string()),
        imori_ruby::Value::Float(number) => Some(number.to_string()),
        imori_ruby::Value::Boolean(is_true) => Some(is_true.to_string()),
        other => other.text().map(str::to_owned),
    }
}

async fn log_in(worker: &Worker, facts: &Facts) -> Result<Option<Identity>, Response<Body>> {
    let route = &facts.route;
    let needs_nobody = matches!(route.action, Action::BuiltIn(_)) && !route.action.touches_messages();
    if route.login == LoginRule::None && (needs_nobody || route.user.is_none()) {
        return Ok(None);
    }
    let refuse = |detail: &str| {
        let mut response = problem(StatusCode::UNAUTHORIZED, detail);
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"imori\""));
        response
    };
    let broker = &worker.shared.broker;
    let sent = match route.login {
        LoginRule::None => Sent::Nothing,
        _ => Sent::of(broker, &facts.request().headers, &facts.place.origin),
    };
    let identity = identity_of(broker, sent, route.login, route.user.as_deref()).await;
    identity.map_err(|error| match error {
        LoginError::Missing => refuse("log in with `Authorization`, as `Basic` or `Bearer`"),
        LoginError::Wrong => refuse("the user or the password is not right"),
        LoginError::Busy => {
            problem(StatusCode::SERVICE_UNAVAILABLE, "too many logins are being checked; try again later")
        }
        LoginError::NoUser(user) => {
            tracing::warn!(route = %route.name, user, "the user of a route does not exist");
            problem(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the user of this route does not exist; see the broker's log",
            )
        }
    })
}

fn other_method(methods: &[Method]) -> Response<Body> {
    let allowed = methods.iter().map(Method::as_str).collect::<Vec<_>>().join(", ");
    let mut response =
        problem(StatusCode::METHOD_NOT_ALLOWED, &format!("this path takes only the methods {allowed}"));
    if let Ok(value) = HeaderValue::from_str(&allowed) {
        response.headers_mut().insert(ALLOW, value);
    }
    response
}
