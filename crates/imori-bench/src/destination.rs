//! How a broker wants its queues and topics named on a STOMP connection.

use clap::ValueEnum;
use serde::Serialize;

/// A broker's way of naming what is sent to and subscribed to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Style {
    /// Prefixes: `/queue/name`, `/topic/name`.
    #[default]
    Rabbitmq,
    /// Bare addresses, the kind in a header of its own: `destination-type:ANYCAST`.
    Artemis,
}

/// A name ready for the wire: the value of `destination` and the header lines that belong to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Destination {
    /// The value of the `destination` header.
    pub(crate) name: String,
    /// Header lines for a SEND, each with its line end.
    pub(crate) send_headers: &'static str,
    /// Header lines for a SUBSCRIBE, each with its line end.
    pub(crate) subscribe_headers: &'static str,
}

impl Destination {
    /// A queue; a name with a leading slash is taken as it stands.
    pub(crate) fn queue(style: Style, name: &str) -> Destination {
        match style {
            Style::Rabbitmq => Destination::plain(prefixed("/queue/", name)),
            Style::Artemis => Destination {
                name: name.to_owned(),
                send_headers: "destination-type:ANYCAST\n",
                subscribe_headers: "subscription-type:ANYCAST\n",
            },
        }
    }

    /// A topic; a name with a leading slash is taken as it stands.
    pub(crate) fn topic(style: Style, name: &str) -> Destination {
        match style {
            Style::Rabbitmq => Destination::plain(prefixed("/topic/", name)),
            Style::Artemis => Destination {
                name: name.to_owned(),
                send_headers: "destination-type:MULTICAST\n",
                subscribe_headers: "subscription-type:MULTICAST\n",
            },
        }
    }

    fn plain(name: String) -> Destination {
        Destination { name, send_headers: "", subscribe_headers: "" }
    }
}

fn prefixed(prefix: &str, name: &str) -> String {
    match name.starts_with('/') {
        true => name.to_owned(),
        false => format!("{prefix}{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leading_slash_is_taken_as_it_stands() {
        for (name, expected) in [("a", "/queue/a"), ("/amq/queue/a", "/amq/queue/a")] {
            assert_eq!(Destination::queue(Style::Rabbitmq, name).name, expected);
        }
    }

    #[test]
    fn artemis_is_told_the_kind_in_a_header() {
        assert_eq!(Destination::queue(Style::Artemis, "a").send_headers, "destination-type:ANYCAST\n");
        assert_eq!(
            Destination::topic(Style::Artemis, "a").subscribe_headers,
            "subscription-type:MULTICAST\n"
        );
    }
}
