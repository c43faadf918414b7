//! `/v1/definitions/recover`: lets users log in again after the definitions were lost.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::objects::import::Import;
use crate::objects::operation_error::OperationError;
use crate::operations::take_over;
use crate::requests::answer::Answer;
use crate::requests::input::{Answered, Input};
use crate::requests::operator::Operator;
use crate::requests::problem::Problem;

/// Options of a recovery of lost definitions.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Recovery {
    /// A definitions document, as `/api/definitions` returns it, to import first. Without one, the broker continues
    /// with the definitions that are left.
    definitions: Option<Map<String, Value>>,
}

/// The result of a recovery.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct Recovered {
    /// Parts of the document that have no meaning in this broker and were left out.
    left_out: Vec<String>,
    /// The password of the user `admin`, if no user was left and `admin` was created.
    admin_password: Option<String>,
}

/// Lets users log in again after definitions were lost; until then only the local operator may.
#[cfg_attr(feature = "openapi", utoipa::path(
    post, path = "/v1/definitions/recover", tag = "broker",
    request_body = Recovery,
    responses((status = 200, body = Recovered)),
))]
pub(super) async fn recover(
    operator: Operator,
    Input(Recovery { definitions }): Input<Recovery>,
) -> Answered<Recovered> {
    let document = definitions.map(|document| Import::read(document, None)).transpose();
    let document = document.map_err(|error| Problem::from(OperationError::from(error)))?;
    // The recovery runs to its end even if the client disconnects first.
    let recovering = async move { take_over::recover(operator.broker(), &operator.identity, document).await };
    let recovered = tokio::spawn(recovering).await.unwrap_or(Err(OperationError::Ended))?;
    let admin_password = recovered.first_password.map(|password| password.reveal().to_owned());
    Ok(Answer::of(Recovered { left_out: recovered.left_out, admin_password }))
}
