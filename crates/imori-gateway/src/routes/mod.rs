//! The routes file: its text, its checks, and the routes that come of it.

mod load;
mod compile;
mod configuration;
mod router;
mod route;
mod entry;
mod template;
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
pub(crate) use router::{Found, RouteQuery};
pub(crate) use template::Lookup;
