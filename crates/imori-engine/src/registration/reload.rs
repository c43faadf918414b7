//! Reloading packs whose files change.

use std::sync::Arc;

use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until};
use tracing::{error, info, warn};

use crate::engine::Engine;
use crate::limits::PACKS_LOOK_INTERVAL;
use crate::packs::watch::PackStates;

impl Engine {
    /// Takes the states of the packs as those that are registered. Returns the names of those that have changed.
    pub(super) fn note_pack_states(&self) -> Vec<String> {
        let mut watch = self.pack_watch();
        let now = watch.look();
        watch.changes(now).into_iter().map(|(name, _)| name).collect()
    }

    /// Registers the packs anew if their files have changed, and are no longer written. `last` is what the last call
    /// returned: the states of packs that had changed.
    async fn reload_packs(self: &Arc<Self>, last: Option<PackStates>) -> Option<PackStates> {
        let engine = Arc::clone(self);
        let look = move || {
            let watch = engine.pack_watch();
            let now = watch.look();
            watch.differ(&now).then_some(now)
        };
        let changed = spawn_blocking(look).await.ok()??;
        if last.as_ref() != Some(&changed) {
            return Some(changed);
        }
        match self.register(|_| false).await {
            Ok(registered) => {
                info!(changed = registered.changed.join(", "), "packs have changed and are registered anew");
                for (pack, problem) in registered.problems {
                    warn!(pack, %problem, "a file of a pack is not registered");
                }
            }
            Err(error) => error!(%error, "packs have changed and cannot be registered anew"),
        }
        None
    }

    /// Whether a pack is installed besides the built-in ones.
    fn has_packs(&self) -> bool {
        let built_in = self.built_in_folder();
        self.registry().packs.values().any(|pack| !pack.pack.folder.starts_with(&built_in))
    }
}

/// Registers packs anew when their files or their configurations change, until the engine stops. Without a pack it
/// waits until one is registered.
pub(crate) async fn run_reload(engine: Arc<Engine>) {
    let mut registrations = engine.trigger_changes();
    let mut due = Instant::now() + PACKS_LOOK_INTERVAL;
    let mut changed = None;
    loop {
        let has_packs = engine.has_packs();
        tokio::select! {
            () = engine.stopped() => return,
            told = registrations.changed() => match told {
                Ok(()) => continue,
                Err(_) => return,
            },
            () = sleep_until(due), if has_packs => {}
        }
        changed = engine.reload_packs(changed).await;
        due = Instant::now() + PACKS_LOOK_INTERVAL;
    }
}
