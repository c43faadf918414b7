//! Stored secrets of users, and checks against them: password hashes, SCRAM keys, digests of tokens.

mod hasher;
mod nkey;
mod token;
mod password;
mod scram;

pub use hasher::verify;
pub(crate) use hasher::{hash, verify_promptly};
pub(crate) use nkey::is_signed;
pub use nkey::is_user_key;
pub(crate) use password::random_password;
pub use password::{Algorithm, PasswordHash};
pub use scram::ScramKeys;
pub(crate) use scram::{Scram, ScramSecret};
pub(crate) use token::digest;
pub use token::{Token, random_id};
