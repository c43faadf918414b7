//! Access tokens of another server: JSON Web Tokens (RFC 7519), as in RFC 9068.
//!
//! A token is verified by its issuer's keys, and its scopes become the rights of the connection that presents it.

mod issuer;
mod source;
mod scopes;
mod claims;
mod token;
mod key_set;
mod key;
mod jwt_error;

pub(crate) use issuer::{Issuer, looks_like_token};
pub use source::KeysError;
