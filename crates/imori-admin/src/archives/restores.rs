//! Restores of streams whose archives come in the bodies of several requests.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use imori_core::authorize::{Action, Identity, Object, authorize};
use imori_core::id::VhostId;
use imori_server::StreamRestore;
use imori_streams::DeclaredStream;
use tokio::time::{Instant, sleep};

use crate::limits::{RESTORE_QUIET_MAX, RESTORES_MAX};
use crate::objects::operation_error::OperationError;
use crate::operations::take_over::stream_configs;
use crate::operations::vhost_operator::VhostOperator;

/// A piece of an archive.
pub(crate) struct Piece {
    /// The configuration of the stream, with the first piece.
    pub(crate) configuration: Option<Vec<u8>>,
    /// The number of bytes before this piece.
    pub(crate) offset: u64,
    pub(crate) bytes: Vec<u8>,
    /// It is the last one.
    pub(crate) is_last: bool,
}

/// The restores that wait for their next piece.
#[derive(Default)]
pub(crate) struct Restores(Arc<Mutex<HashMap<Key, Running>>>);

/// The vhost and the name of the stream.
type Key = (VhostId, String);

struct Running {
    restore: StreamRestore,
    identity: Identity,
    /// Bytes that were taken.
    offset: u64,
    /// When the last piece was taken.
    at: Instant,
}

impl Restores {
    /// Takes a piece of the archive of the stream `name`; the first one begins the restore.
    ///
    /// # Errors
    /// [`OperationError`]; then the restore is given up.
    pub(crate) async fn take(
        &self,
        operator: &VhostOperator,
        name: &str,
        piece: Piece,
    ) -> Result<(), OperationError> {
        let key = (operator.vhost, name.to_owned());
        let mut running = match &piece.configuration {
            Some(configuration) => self.begin(operator, name, configuration).await?,
            None => self.running(&key, &operator.identity)?,
        };
        if piece.offset != running.offset {
            running.restore.give_up().await;
            return Err(OperationError::Conflict(format!(
                "the piece begins at {} and not at {}; restore the stream again",
                piece.offset, running.offset
            )));
        }
        if let Err(error) = running.restore.write(&piece.bytes).await {
            running.restore.give_up().await;
            return Err(error.into());
        }
        if piece.is_last {
            return Ok(running.restore.finish().await?);
        }
        running.offset += piece.bytes.len() as u64;
        running.at = Instant::now();
        self.with(|restores| restores.insert(key, running));
        Ok(())
    }

    async fn begin(
        &self,
        operator: &VhostOperator,
        name: &str,
        configuration: &[u8],
    ) -> Result<Running, OperationError> {
        // A user without the right does not learn whether the stream exists.
        let may_create =
            authorize(&operator.identity, Action::Create, operator.vhost, Object::Queue(name.as_bytes()));
        may_create.map_err(|refusal| OperationError::NotPermitted(refusal.to_string()))?;
        if self.with(|restores| restores.len()) >= RESTORES_MAX {
            let text = "too many streams are being restored; try again later";
            return Err(OperationError::Unavailable(String::from(text)));
        }
        let (others, _) = stream_configs(&operator.broker, operator.vhost).await;
        if others.iter().any(|other| other.name == name) {
            let text = format!("there is a stream `{}`; delete it first", name.escape_debug());
            return Err(OperationError::Conflict(text));
        }
        let declared = DeclaredStream::read(name, configuration, &others);
        let declared = declared.map_err(|error| OperationError::Bad(error.to_string()))?;
        let client = operator.client().await?;
        let restore = StreamRestore::begin(&operator.broker, client, operator.vhost, declared).await?;
        let (key, restores) = ((operator.vhost, name.to_owned()), Arc::downgrade(&self.0));
        tokio::spawn(async move {
            // Ends with the restore, or gives it up once no piece comes.
            loop {
                sleep(RESTORE_QUIET_MAX).await;
                let Some(restores) = restores.upgrade() else { return };
                let mut restores = restores.lock().unwrap_or_else(PoisonError::into_inner);
                match restores.get(&key) {
                    Some(running) if running.at.elapsed() < RESTORE_QUIET_MAX => {}
                    Some(_) => drop(restores.remove(&key)),
                    None => return,
                }
            }
        });
        Ok(Running { restore, identity: operator.identity.clone(), offset: 0, at: Instant::now() })
    }

    fn running(&self, key: &Key, identity: &Identity) -> Result<Running, OperationError> {
        let found = self.with(|restores| {
            let is_own = restores.get(key).is_some_and(|running| running.identity.user == identity.user);
            if is_own { restores.remove(key) } else { None }
        });
        found.ok_or_else(|| {
            let text = "no restore of this stream waits for a piece; begin with `configuration`";
            OperationError::Conflict(String::from(text))
        })
    }

    fn with<R>(&self, change: impl FnOnce(&mut HashMap<Key, Running>) -> R) -> R {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
