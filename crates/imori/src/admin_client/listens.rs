//! What commands speak to: a broker's listeners, and the names that they go by.

use std::net::IpAddr;

/// What a command wants of a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listens {
    /// The admin listener.
    Admin,
    /// The automation's.
    Automation,
    /// One for messages.
    Messages,
}

impl Listens {
    /// Its name in errors.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Listens::Admin => "admin listener",
            Listens::Automation => "automation",
            Listens::Messages => "listener for messages",
        }
    }

    /// The option that has its address.
    pub(crate) const fn option(self) -> &'static str {
        match self {
            Listens::Admin => "--admin",
            Listens::Automation => "--api",
            Listens::Messages => "--url",
        }
    }

    /// The variable that has its address.
    pub(super) const fn variable(self) -> &'static str {
        match self {
            Listens::Admin => "IMORI_ADMIN",
            Listens::Automation => "IMORI_AUTOMATION",
            Listens::Messages => "IMORI_URL",
        }
    }

    /// The file in a data folder in which a broker writes its addresses, one a line.
    pub(crate) const fn file(self) -> &'static str {
        match self {
            Listens::Admin => "admin.url",
            Listens::Automation => "automation.url",
            Listens::Messages => "messages.url",
        }
    }

    /// The address with default settings.
    pub(super) const fn default(self) -> &'static str {
        match self {
            Listens::Admin => "http://127.0.0.1:15672",
            Listens::Automation => "http://127.0.0.1:9101",
            Listens::Messages => "stomp://guest:guest@127.0.0.1:61613/",
        }
    }
}

/// Whether `place`, a host with or without a port, is this machine.
pub fn is_this_machine(place: &str) -> bool {
    let host = match place.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => place.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}
