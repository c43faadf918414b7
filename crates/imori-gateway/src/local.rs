//! Futures that stay on their worker's thread.

use hyper::rt::Executor;

/// Runs futures on the calling worker's thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalExecutor;

impl<F> Executor<F> for LocalExecutor
where
    F: Future + 'static,
    F::Output: 'static,
{
    fn execute(&self, future: F) {
        drop(tokio::task::spawn_local(future));
    }
}
