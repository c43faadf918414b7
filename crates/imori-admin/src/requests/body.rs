//! Request bodies: JSON objects.

use axum::body::{Bytes, to_bytes};
use axum::extract::{FromRequest, Request};
use axum::http::header::CONTENT_TYPE;
use imori_server::access::{AccessError, Draft};
use imori_server::broker::Broker;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::answer::Answer;
use super::form::{boundary, field};
use crate::limits::ADMIN_BODY_BYTES_MAX;
use crate::objects::change::change;
use crate::objects::operation_error::OperationError;

/// The field of a form that has the document, as RabbitMQ's page names it.
const UPLOADED_FIELD: &str = "file";

/// A JSON object that was sent; empty without a body.
#[derive(Debug)]
pub(crate) struct Body(pub(crate) Map<String, Value>);

/// A JSON object that was sent as the body or as the file of a form. The guard says where forms are taken.
#[derive(Debug)]
pub(crate) struct Upload(pub(crate) Map<String, Value>);

impl<S: Send + Sync> FromRequest<S> for Body {
    type Rejection = Answer;

    async fn from_request(request: Request, _: &S) -> Result<Body, Answer> {
        Body::read(&whole(request).await?)
    }
}

impl<S: Send + Sync> FromRequest<S> for Upload {
    type Rejection = Answer;

    async fn from_request(request: Request, _: &S) -> Result<Upload, Answer> {
        let kind = request.headers().get(CONTENT_TYPE).cloned();
        let boundary = kind.as_ref().map_or(Ok(None), boundary).map_err(Answer::bad_request)?;
        let bytes = whole(request).await?;
        let document = match boundary {
            Some(boundary) => field(&bytes, boundary, UPLOADED_FIELD),
            None => Ok(&*bytes),
        };
        let document = document.map_err(|error| Answer::bad_request(&error))?;
        Body::read(document).map(|Body(fields)| Upload(fields))
    }
}

/// Reads the whole body of a request.
async fn whole(request: Request) -> Result<Bytes, Answer> {
    // The guard has already checked the length.
    let max = usize::try_from(ADMIN_BODY_BYTES_MAX).unwrap_or(usize::MAX);
    let bytes = to_bytes(request.into_body(), max).await;
    bytes.map_err(|_| Answer::bad_request("the body did not come whole"))
}

impl Body {
    fn read(bytes: &[u8]) -> Result<Body, Answer> {
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(Body(Map::new()));
        }
        match serde_json::from_slice(bytes) {
            Ok(Value::Object(fields)) => Ok(Body(fields)),
            Ok(_) => Err(Answer::bad_request("the body is not a JSON object")),
            Err(error) => Err(Answer::bad_request(&format!("the body is not JSON: {error}"))),
        }
    }

    /// A field of this type; `None` if it is absent or null.
    pub(crate) fn get<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, AccessError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => serde_json::from_value(value.clone())
                .map(Some)
                .map_err(|error| AccessError::bad(format_args!("`{name}`: {error}"))),
        }
    }

    /// A field that must be present.
    pub(crate) fn required<T: DeserializeOwned>(&self, name: &str) -> Result<T, AccessError> {
        self.get(name)?.ok_or_else(|| AccessError::bad(format_args!("`{name}` is missing")))
    }

    /// A bool, or the text `true` or `false`; `absent` if the field is missing.
    pub(crate) fn flag(&self, name: &str, absent: bool) -> Result<bool, AccessError> {
        match self.0.get(name) {
            Some(Value::String(text)) if text == "true" => Ok(true),
            Some(Value::String(text)) if text == "false" => Ok(false),
            _ => Ok(self.get(name)?.unwrap_or(absent)),
        }
    }

    /// A list of words, sent as a list or as one text separated by commas.
    pub(crate) fn words(&self, name: &str) -> Result<Option<Vec<String>>, AccessError> {
        match self.0.get(name) {
            Some(Value::String(text)) => {
                let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
                Ok(Some(words.map(str::to_owned).collect()))
            }
            _ => self.get(name),
        }
    }
}

/// Applies a change that sets an object; answers 201 if the object is new.
///
/// # Errors
/// The change is refused, or the broker has stopped.
pub(crate) async fn set(
    broker: &Broker,
    edit: impl FnOnce(&mut Draft) -> Result<bool, AccessError> + Send + 'static,
) -> Result<Answer, OperationError> {
    Ok(Answer::put(change(broker, edit).await?))
}

/// Applies a change that deletes an object.
///
/// # Errors
/// The change is refused, or the broker has stopped.
pub(crate) async fn remove(
    broker: &Broker,
    edit: impl FnOnce(&mut Draft) -> Result<(), AccessError> + Send + 'static,
) -> Result<Answer, OperationError> {
    change(broker, edit).await?;
    Ok(Answer::done())
}
