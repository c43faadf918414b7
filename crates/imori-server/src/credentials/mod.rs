//! Stored secrets of users, and checks against them: password hashes, SCRAM keys, digests of tokens.

mod hasher;
mod nkey;
mod token;
mod password;
mod scram;

pub(crate) use hasher::{hash, verify, verify_for_start};
pub(crate) use nkey::{is_signed, is_user_key};
pub(crate) use password::{Algorithm, PasswordHash, random_password};
pub(crate) use scram::{Scram, ScramKeys, ScramSecret};
pub(crate) use token::{Token, digest};
