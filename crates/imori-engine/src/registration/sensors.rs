//! Enabling and disabling sensors.

use std::sync::Arc;

use imori_automation::value::{Map, Value};

use crate::engine::Engine;
use crate::registry::RegisteredSensor;
use crate::store::{SENSORS, StoreError, Transaction};

impl Engine {
    /// Enables or disables a sensor; what its pack says of that counts no longer.
    ///
    /// # Errors
    /// The store refuses.
    pub(crate) async fn enable_sensor(
        self: &Arc<Self>,
        sensor: &RegisteredSensor,
        enabled: bool,
    ) -> Result<Arc<RegisteredSensor>, StoreError> {
        let _registering = self.registering().await;
        let reference = sensor.reference();
        let choice: Map =
            [("id", Value::from(reference.as_str())), ("enabled", enabled.into())].into_iter().collect();
        let mut transaction = Transaction::new();
        transaction.put(&SENSORS, choice);
        self.store.commit(transaction).await?;
        let mut changed = sensor.clone();
        changed.is_enabled = enabled;
        changed.document.insert("enabled", enabled);
        let changed = Arc::new(changed);
        self.change(|registry| {
            registry.sensors.insert(reference.clone(), Arc::clone(&changed));
        });
        self.triggers_changed();
        Ok(changed)
    }
}
