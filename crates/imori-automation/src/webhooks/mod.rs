//! Webhooks: the proof that a request comes from its sender, the answer to challenges, and the payload of the trigger.

mod webhook;
mod settings;
mod challenge;
mod signature;
mod scheme;
mod secret;
mod body;
pub(crate) mod form;
mod headers;

pub use body::BodyError;
pub use challenge::{Answer, Challenge};
pub use headers::Headers;
pub use scheme::{Encoding, HmacScheme, Refusal, Scheme, Signed};
pub use secret::{Algorithm, Secret};
pub use settings::{DeliveryKey, SECRET_SETTINGS, SettingsError, WebhookSettings};
pub use signature::{Proof, Verified};
pub use webhook::{Accepted, WebhookError, WebhookEvent};
