//! The configuration: each key declared once, with its documentation, unit, default and range.
//!
//! This module knows no file format and reads neither files nor the environment. Its caller sets values by section
//! and key and tracks where they came from.

mod conflict;
mod exposure;
mod sections;
mod declare;
mod spoken;
mod address;
mod audit_output;
mod file_path;
mod host;
mod log_output;
mod network;
mod origin;
mod quantity;
mod store_address;
mod web_address;
mod setting;

pub use address::{AddressError, ListenAddress, ListenerName, ProtocolName, Service};
pub use audit_output::AuditOutput;
pub use conflict::ConfigConflict;
pub(crate) use conflict::shares_port;
pub use declare::{Effect, Key, KeyChange, Section, SetError, parse};
pub use exposure::ExposedListener;
pub use file_path::FilePath;
pub use host::{HostAndPort, HostName, NotAHost};
pub use log_output::LogOutput;
pub use network::{Network, NotANetwork};
pub use origin::{NotAnOrigin, Origin};
pub use quantity::{Bytes, Millis, Seconds};
pub use sections::{
    Automation, Broker, Cells, ClientCertificates, Config, DamagePolicy, Definitions, GuestLogin, Jwt,
    Limits, Listeners, Log, LogFormat, LogLevel, Monitor, NamesShown, NatsTls, PolicySetter, Stomp, Tls,
    TlsVersion, Traces, UserFrom, WritePolicy,
};
pub use setting::{Names, Setting, Value};
pub use spoken::Spoken;
pub use store_address::{NotAStoreAddress, StoreAddress, without_password};
pub use web_address::{NotAWebAddress, WebAddress};
