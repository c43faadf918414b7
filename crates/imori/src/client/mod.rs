//! Small blocking clients behind commands such as `imori pub`, one file per protocol.
//!
//! They never reconnect.

mod stomp;
pub(crate) mod nats;
mod amqp;
pub(crate) mod amqp_message;
mod amqp10;
pub(crate) mod amqp10_message;
pub(crate) mod address;
mod session;
pub(crate) mod conversation;
mod transport;
pub(crate) mod error;

pub(crate) use conversation::{Ack, Client, Header, Message, Received, Subscription};
pub(crate) use error::ClientError;

use imori_bench::{Scheme, Url};

/// Connects and logs in, with the client for the URL's scheme.
pub(crate) fn connect(url: &Url) -> Result<Box<dyn Client>, ClientError> {
    Ok(match url.scheme {
        Scheme::Stomp => Box::new(stomp::Stomp::connect(url)?),
        Scheme::Nats => Box::new(nats::Nats::connect(url)?),
        Scheme::Amqp => Box::new(amqp::Amqp::connect(url)?),
        Scheme::Amqp10 => Box::new(amqp10::Amqp10::connect(url)?),
        Scheme::Peer(_) => {
            return Err(ClientError::Unspeakable(format!(
                "`{url}` is no broker; use `stomp://`, `nats://`, `amqp://` or `amqp10://`"
            )));
        }
    })
}
