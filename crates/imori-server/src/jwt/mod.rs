//! Access tokens that another server issues: JSON Web Tokens (RFC 7519), as in RFC 9068.
//!
//! A token is checked by the keys of its issuer, and its scopes are the rights of the one connection that shows it.

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
