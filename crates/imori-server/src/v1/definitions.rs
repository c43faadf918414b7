//! `/v1/definitions/recover`: users are let in again after the definitions were lost.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use imori_core::authorize::Identity;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::problem::Problem;
use super::request::{Answer, Input, Json};
use crate::operations::take_over;
use crate::requests::administered::Administered;
use crate::requests::import::Import;
use crate::requests::operation_error::OperationError;

/// How lost definitions are recovered.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Recovery {
    /// A document of definitions, as `/api/definitions` gives it, to take over first. Without one the broker goes on
    /// with the definitions that are left.
    definitions: Option<Map<String, Value>>,
}

/// Results of a recovery.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Recovered {
    /// Parts of the document that mean nothing here.
    left_out: Vec<String>,
    /// The password of the user `admin`, which was made as no user was left.
    admin_password: Option<String>,
}

/// Ends the time in which only the local operator may log in, as definitions were lost.
#[utoipa::path(
    post, path = "/v1/definitions/recover", tag = "broker",
    request_body = Recovery,
    responses((status = 200, body = Recovered)),
)]
pub(super) async fn recover(
    State(broker): State<Arc<Administered>>,
    Extension(identity): Extension<Identity>,
    Input(Recovery { definitions }): Input<Recovery>,
) -> Answer<Recovered> {
    let document = definitions.map(|document| Import::read(document, None)).transpose();
    let document = document.map_err(|error| Problem::from(OperationError::from(error)))?;
    // To its end, also where the client goes before its answer.
    let recovering = async move { take_over::recover(&broker, &identity, document).await };
    let recovered = tokio::spawn(recovering).await.unwrap_or(Err(OperationError::Ended))?;
    let admin_password = recovered.first_password.map(|password| password.reveal().to_owned());
    Ok(Json(Recovered { left_out: recovered.left_out, admin_password }))
}
