//! The routes file: its text, its checks, and the routes that come of it.

pub(crate) mod load;
mod compile;
pub(crate) mod configuration;
pub(crate) mod router;
pub(crate) mod route;
mod entry;
pub(crate) mod template;
mod problem;

pub(crate) use configuration::Configuration;
pub(crate) use load::load;
pub(crate) use problem::Problem;
pub use problem::Problems;
pub(crate) use route::{
    Action, AddressTemplate, BuiltIn, Delivery, FilesAction, LoginRule, Matcher, ProxyAction, PublishAction,
    PullAction, ReturnAction, Route, RpcAction, ScriptId, ScriptSource, StreamAction, VmLimits,
    WebSocketAction,
};
pub(crate) use router::{RouteMatch, RouteQuery};
pub(crate) use template::Lookup;
