//! The HTTP gateway: routes turn requests into messages, and scripts in Ruby do what a route cannot say.

#![allow(clippy::result_large_err, reason = "the other side is mostly a response too, and as large")]

mod gateway;
mod files_watch;
mod workers;
mod serving;
mod actions;
mod deliver;
mod worker;
mod asking;
mod callers;
mod upstream;
mod chosen_certificates;
mod request_body;
mod facts;
mod shared;
mod respond;
mod local;
mod scripts;
mod request_context;
mod outgoing;
mod timer;
mod hop_by_hop;
mod routes;
mod lock;
mod limits;

pub use gateway::{Gateway, GatewayError, Routes};
pub use routes::Problems;

/// What the tests of this crate reach beside its public items.
#[doc(hidden)]
pub mod for_tests {
    pub use crate::actions::proxy::Encoded;
    pub use crate::facts::{Target, normal_path};
    pub use crate::limits::{FAULT_TEXT_BYTES_MAX, SCRIPT_FAULTS_MAX};
    pub use crate::outgoing::fetch::{Answer, FetchError, FetchOptions, Fetcher, Outgoing};
    pub use crate::outgoing::hosts::{HostError, HostList, is_private};
    pub use crate::request_context::request_context::{
        Connection, Decision, Pem, Phase, Request, RequestContext, ScriptLimits, VARIABLES_MAX,
    };
    pub use crate::routes::load::load;
    pub use crate::routes::route::{ScriptId, ScriptSource, VmLimits};
    pub use crate::routes::router::{RouteMatch, RouteQuery};
    pub use crate::routes::template::{Lookup, Template};
    pub use crate::scripts::regexp::translate;
    pub use crate::scripts::requests::{absolute, headers_of_lines, lines_of};
    pub use crate::scripts::services::{LogLevel, Secrets, Services, Subrequest, Tools};
    pub use crate::scripts::shared::{Key, SharedState};
    pub use crate::scripts::{Outcome, Scripts};
    pub use crate::shared::feeds::{Feed, FeedKey, Reader, event_text};
    pub use crate::shared::script_faults::ScriptFaults;
    pub use crate::timer::Timer;
}
