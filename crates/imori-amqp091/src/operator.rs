//! Declarations and bindings of operators, who have no connection: checked, and refused in the words that clients are
//! told.

use std::sync::Arc;

use imori_core::broker::Actor;
use imori_core::confirm::Confirm;
use imori_core::name::Name;
use imori_core::world::World;

use crate::client::Client;
use crate::codec::methods::{exchange, queue};
use crate::commands;
use crate::protocol_error::ProtocolError;
use crate::settings::Settings;

/// An operator in a vhost.
#[derive(Debug)]
pub struct Operator(Client);

impl Operator {
    /// An operator who acts as `actor`, in the vhost of this name.
    pub fn new(settings: Arc<Settings>, actor: &Actor<'_>, vhost_name: Name) -> Operator {
        let mut client = Client::new(settings, actor.connection);
        (client.identity, client.vhost, client.vhost_name) =
            (actor.identity.clone(), actor.vhost, vhost_name);
        Operator(client)
    }

    /// Declares a queue under a name of its own. Gives the confirm after which no crash undoes that.
    ///
    /// # Errors
    /// The reply text of the exception that a client would get.
    pub fn declare_queue<W: World>(
        &self,
        world: &W,
        declare: &queue::Declare<'_>,
    ) -> Result<Confirm, String> {
        told(commands::queue::declare_named(&self.0, world, declare))
    }

    /// Declares an exchange. Gives the confirm after which no crash undoes that.
    ///
    /// # Errors
    /// As of [`Operator::declare_queue`].
    pub fn declare_exchange<W: World>(
        &self,
        world: &W,
        declare: &exchange::Declare<'_>,
    ) -> Result<Confirm, String> {
        told(commands::exchange::make(&self.0, world, declare))
    }

    /// Deletes an exchange; one that is not there is no error. Gives the confirm after which no crash undoes that.
    ///
    /// # Errors
    /// As of [`Operator::declare_queue`].
    pub fn delete_exchange<W: World>(
        &self,
        world: &W,
        delete: &exchange::Delete<'_>,
    ) -> Result<Confirm, String> {
        told(commands::exchange::remove(&self.0, world, delete))
    }

    /// Binds a queue, or with `is_bound` false takes the binding out. Gives the confirm after which no crash undoes that.
    ///
    /// # Errors
    /// As of [`Operator::declare_queue`].
    pub fn bind_queue<W: World>(
        &self,
        world: &W,
        bind: &queue::Bind<'_>,
        is_bound: bool,
    ) -> Result<Confirm, String> {
        told(commands::queue::set_binding(&self.0, world, bind, is_bound))
    }

    /// Binds an exchange to another, or with `is_bound` false takes the binding out. Gives the confirm after which no
    /// crash undoes that.
    ///
    /// # Errors
    /// As of [`Operator::declare_queue`].
    pub fn bind_exchange<W: World>(
        &self,
        world: &W,
        bind: &exchange::Bind<'_>,
        is_bound: bool,
    ) -> Result<Confirm, String> {
        told(commands::exchange::set_binding(&self.0, world, bind, is_bound))
    }
}

fn told(outcome: Result<Confirm, ProtocolError>) -> Result<Confirm, String> {
    outcome.map_err(|error| error.text())
}
