//! Load generator and checker: a client for any broker.
//!
//! The tool drives a broker by URL, checks every reply and every delivery, and measures what they
//! cost the broker. It never links the server, so a bug of the broker cannot hide itself in the
//! tool that judges it. A program may add protocols of its own through [`driver`]; `imori-versus` builds its
//! comparisons from the public modules.

mod command;
mod scenario;
pub mod load;
pub mod protocol;
pub mod report;
pub mod page;
pub mod watch;
pub mod probe;
pub mod record;
pub mod options;
pub mod clock;
pub mod interrupt;
pub mod progress;
mod stamp;
mod wire;
mod trust;
pub mod url;
pub mod amount;
pub mod limits;

/// The interface through which a program adds a protocol of its own.
pub mod driver {
    pub use crate::limits::FRAME_BYTES_MAX;
    pub use crate::protocol::credit::Credit;
    pub use crate::protocol::driver::{
        CallTerms, ConfirmMode, Confirmed, Delivery, Destination, Driver, Heard, Manner, Queue, Reader,
        Replies, Terms, check_no_broker, text,
    };
    pub use crate::protocol::session::{PeerProtocol, bring};
    pub use crate::protocol::template::{
        CORRELATION_BYTES, Caller, Correlation, MessageTemplate, NUMBER_BYTES, RequestTemplate, put_hex,
    };
    pub use crate::url::PeerScheme;
}

pub use amount::Amount;
pub use command::{BenchArgs, Scenario, Task};
pub use options::{
    AckMode, AckOrder, Arrival, BrokerOptions, Depth, FanOutOptions, FlowOptions, IdleOptions, KeepOptions,
    Level, LoadOptions, Objective, Outputs, PubsubOptions, QueueArgument, QueueOptions, QueuePhase, Rate,
    ReplyKind, RpcOptions, Slo, SoakOptions, Style,
};
pub use page::axis::{Axis, Scale, Unit};
pub use page::plot::{Plot, Point, Series, SeriesKind};
pub use record::latency::{Latency, LatencyKind};
pub use record::ledger::Ledger;
pub use record::levels::Levels;
pub use record::machine::Machine;
pub use record::report::{Broker, Client, NamedCount, OpenLoop, Outcome, Report};
pub use record::series::{BrokerSecond, HEAT_BOUNDS_US, HostSecond, Period, Second, Stall, Stalls, Verdict};
pub use report::compare::{CompareOptions, Share, compare};
pub use report::csv::{seconds_csv, stalls_csv};
pub use report::html::{Link, html_of, html_of_many};
pub use report::live::Live;
pub use report::runs::{Run, Runs};
pub use trust::Trust;
pub use url::{Scheme, Url};
pub use wire::Wire;
