//! The services that this crate attaches to a broker.

use std::path::Path;
use std::sync::Arc;

use axum::Router;
use imori_core::authorize::Identity;
use imori_server::broker::Broker;
use imori_server::{ImportDefinitions, Importing, Services};
use serde_json::{Map, Value};

use crate::admin;
use crate::live;
use crate::metrics::Metrics;
use crate::monitor::{self, MonitorState};
use crate::objects::import::Import;
use crate::operations::take_over::take_over;
use crate::requests::admin_state::AdminState;

/// The handlers of the admin listeners and of the monitor's, and the import of the definitions file. The admin
/// listeners have the handlers of the automation too, below `/automation`, for its users.
pub fn services(broker: &Broker, automation: Option<Router>) -> Services {
    let metrics = Arc::new(Metrics::of(broker));
    let state = Arc::new(AdminState::new(broker, Arc::clone(&metrics)));
    live::start(broker, &state.live);
    Services {
        automation: automation.clone().unwrap_or_default(),
        gateway: None,
        monitor: monitor::routes(Arc::new(MonitorState::new(broker, metrics))),
        admin: admin::routes(state, automation),
        definitions: Some(Box::new(Definitions(broker.clone()))),
    }
}

/// The import of the definitions file into a broker.
struct Definitions(Broker);

impl ImportDefinitions for Definitions {
    fn import(&self, file: &Path, document: Map<String, Value>) -> Importing<'_> {
        let import = Import::read(document, None).map(|import| {
            let objects = import.objects.of_file(file.display().to_string());
            (import, objects)
        });
        Box::pin(async move {
            let (import, objects) = import.map_err(|error| error.to_string())?;
            let imported = take_over(&self.0, &Identity::operator(), import, Some(objects)).await;
            imported.map(drop).map_err(|error| error.to_string())
        })
    }
}
