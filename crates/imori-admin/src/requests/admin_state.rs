//! The state that the handlers of the admin listener share.

use std::sync::Arc;
use std::thread::available_parallelism;

use imori_core::time::Time;
use imori_server::broker::Broker;

use super::sessions::Sessions;
use crate::archives::Restores;
use crate::live::Live;
use crate::metrics::{Metrics, node_name};

/// A broker and the facts about it that the admin listener shows.
pub struct AdminState {
    pub(crate) broker: Broker,
    /// The broker's name, in the form of a RabbitMQ node name.
    pub(crate) node: String,
    pub(crate) cores: usize,
    pub(crate) started: Time,
    pub(crate) metrics: Arc<Metrics>,
    /// The streams that are being restored.
    pub(crate) restores: Restores,
    /// The broker as the feed and the history show it.
    pub(crate) live: Arc<Live>,
    /// The sessions of the web console.
    pub(crate) sessions: Sessions,
}

impl AdminState {
    pub(crate) fn new(broker: &Broker, metrics: Arc<Metrics>) -> AdminState {
        AdminState {
            broker: broker.clone(),
            node: node_name(broker),
            cores: available_parallelism().map_or(1, usize::from),
            started: broker.now(),
            metrics,
            restores: Restores::default(),
            live: Live::new(),
            sessions: Sessions::default(),
        }
    }
}
