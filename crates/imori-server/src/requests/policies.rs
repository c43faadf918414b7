//! Changes of policies, which act on what is there before their request is answered.

use std::sync::Arc;

use axum::response::Response;
use imori_core::broker::{apply_policies, set_policies};

use super::administered::Administered;
use super::answer::ended;
use super::body::change;
use super::on_cell::on_cell;
use crate::access::{AccessError, Draft};
use crate::limits::POLICY_QUEUES_A_TURN;

/// Changes policies of these vhosts, by `edit`, and lets them act. A client that goes before its answer changes nothing
/// of that.
pub(crate) async fn change_policies<R: Send + 'static>(
    broker: &Arc<Administered>,
    vhosts: Vec<String>,
    edit: impl FnOnce(&mut Draft) -> Result<R, AccessError> + Send + 'static,
) -> Result<R, Response> {
    let broker = Arc::clone(broker);
    let job = async move {
        let result = change(&broker, edit).await?;
        for vhost in vhosts {
            act(&broker, vhost).await.ok_or_else(ended)?;
        }
        Ok(result)
    };
    match tokio::spawn(job).await {
        Ok(result) => result,
        Err(_) => Err(ended()),
    }
}

/// Lets the policies of a vhost act, as they are now; `None` where the broker has come to its end.
pub(crate) async fn act(broker: &Administered, vhost: String) -> Option<()> {
    let shared = &broker.shared;
    let Some(id) = shared.table.load().vhost_named(vhost.as_bytes()) else { return Some(()) };
    // All of these jobs are of one cell, and each sees the newest policies: whichever change is last has the last word.
    let set = on_cell(shared, 0, move |cell| {
        let policies = cell.shared.access.objects().policies_of(&vhost);
        set_policies(cell, id, policies)
    });
    let queues = set.await?;
    for some in queues.chunks(POLICY_QUEUES_A_TURN) {
        let some = some.to_vec();
        on_cell(shared, 0, move |cell| apply_policies(cell, id, &some)).await?;
    }
    Some(())
}
