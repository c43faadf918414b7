//! The API of tokens, API keys and roles.

pub(crate) mod rbac;
pub(crate) mod api_keys;
pub(crate) mod tokens;
