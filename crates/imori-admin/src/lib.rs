//! Administration and monitoring of a broker over HTTP: two admin APIs, metrics, and the monitor.

mod services;
mod admin;
mod v1;
mod console;
mod requests;
mod live;
mod archives;
mod operations;
mod objects;
mod monitor;
mod metrics;
mod health;
mod http;
mod lock;
mod milliseconds;
mod limits;

pub use services::services;

/// What the tests of this crate reach beside its public items.
#[doc(hidden)]
pub mod for_tests {
    pub use crate::admin::routes::endpoints as api_endpoints;
    pub use crate::console::feed::topics;
    pub use crate::console::files::{FILES, File};
    pub use crate::console::pages::{HEADERS as PAGE_HEADERS, accepts_gzip, answer as console_page};
    pub use crate::health::{Ailment, judge};
    pub use crate::http::{Endpoint, Login, Right, gathered};
    pub use crate::limits::{
        FEED_CHUNK_ROWS_MAX, FEED_REMOVED_MAX, GROWING_SECONDS, HISTORY_MINUTES_MAX, HISTORY_SECONDS_MAX,
        HTTP_ROWS_AT_ONCE, MONITOR_ROWS_MAX, SESSION_IDLE_MAX, SESSION_LIFE_MAX, SESSIONS_MAX,
        USER_SESSIONS_MAX,
    };
    pub use crate::live::live_state::{Topic, Topics};
    pub use crate::live::rows::{Chunk, Position, Rows};
    pub use crate::objects::operation_error::OperationError;
    pub use crate::operations::users::Deed;
    pub use crate::requests::answer::Answer;
    pub use crate::requests::input::{Page, PageQuery, page};
    pub use crate::requests::list::{Columns, ListQuery, list};
    pub use crate::requests::problem::Problem;
    pub use crate::requests::sessions::{SessionCookie, SessionKey, Sessions, has_cookie, session_keys};
    #[cfg(feature = "openapi")]
    pub use crate::v1::document::description;
    pub use crate::v1::endpoints as v1_endpoints;
    pub use crate::v1::events::Kinds;

    /// The list of connections.
    pub mod connection_rows {
        pub use crate::live::connection_rows::{
            COLUMNS, ConnectionNumbers, ConnectionReading, Names as ConnectionNames, write,
        };
    }

    /// The list of queues.
    pub mod queue_rows {
        pub use crate::live::queue_rows::{COLUMNS, QueueNumbers, QueueReading, number, shown_age, write};
    }

    /// Samples of the broker.
    pub mod samples {
        pub use crate::live::counts::{Counts, Traffic};
        pub use crate::live::history::{History, Window, Windows};
        pub use crate::live::pass::{PassState, between};
        pub use crate::live::quantiles::Buckets;
        pub use crate::live::sample::{Sample, Series};
        pub use crate::live::sampler::{Noted, StallsSeen};
    }

    /// Metrics.
    pub mod metrics {
        pub use crate::metrics::exposition::Exposition;
        pub use crate::metrics::process::{Usage, memory_bytes, parse_memory, parse_ticks, usage};
        pub use crate::metrics::queues::{Ranked, busiest};
        pub use crate::metrics::rates::Samples;
        pub use crate::metrics::streams::{ConsumerNumbers, StreamNumbers, keep_slowest};
    }

    /// The monitor.
    pub mod monitor {
        pub use crate::monitor::connz::{ConnzQuery, SubscriptionsShown};
        pub use crate::monitor::healthz::{Healthz, HealthzQuery};
        pub use crate::monitor::jsz::JszQuery;
        pub use crate::monitor::listing::ListedSource;
        pub use crate::monitor::monitor_state::{Path, Requests, Shown};
        pub use crate::monitor::query::{Page, Parameters, wrong};
        pub use crate::monitor::rows::Row;
        pub use crate::monitor::subsz::SubszQuery;
        pub use crate::monitor::wording::{timestamp, uptime};
    }
}
