//! `imori gateway`: the routes of the HTTP gateway, checked, shown and served alone.

mod command;
mod import;
mod run;
mod routes;

pub(crate) use command::GatewayCommand;
pub(crate) use routes::routes;
pub(crate) use run::{RunGateway, TemporaryFolder};
