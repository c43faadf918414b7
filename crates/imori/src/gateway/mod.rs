//! `imori gateway`: the routes of the HTTP gateway, checked and shown.

mod command;
mod import;
mod routes;

pub(crate) use command::GatewayCommand;
pub(crate) use routes::routes;
