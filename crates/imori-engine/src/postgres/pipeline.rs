//! Statements that are sent together, so that a transaction costs one round trip.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, Statement};

use crate::sql::Field;

/// A statement with its values.
#[derive(Debug)]
pub(super) struct Step<'a> {
    pub(super) statement: Statement,
    pub(super) fields: Vec<Field<'a>>,
}

/// Runs the statements in this order without waiting in between; returns what each returned. After one that fails the
/// server refuses the others.
pub(super) async fn run(client: &Client, steps: &[Step<'_>]) -> Vec<Result<Vec<Row>, Error>> {
    let parameters: Vec<Vec<&(dyn ToSql + Sync)>> = steps
        .iter()
        .map(|step| step.fields.iter().map(|field| field as &(dyn ToSql + Sync)).collect())
        .collect();
    let requests = steps.iter().zip(&parameters);
    in_order(requests.map(|(step, fields)| client.query(&step.statement, fields)).collect()).await
}

/// Begins these in order, and returns their outputs in the same order. A request of the client is sent when it is begun.
async fn in_order<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut pending: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    let mut outputs: Vec<Option<F::Output>> = pending.iter().map(|_| None).collect();
    poll_fn(|context| {
        let mut is_ready = true;
        for (future, output) in pending.iter_mut().zip(&mut outputs) {
            if output.is_none() {
                match future.as_mut().poll(context) {
                    Poll::Ready(found) => *output = Some(found),
                    Poll::Pending => is_ready = false,
                }
            }
        }
        if is_ready { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    outputs.into_iter().flatten().collect()
}
