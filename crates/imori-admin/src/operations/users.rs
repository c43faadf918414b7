//! Users' NATS keys and tokens.

use imori_server::access::{AccessError, User};
use imori_server::broker::Broker;
use imori_server::credentials::{Token, is_user_key};

use crate::objects::change::change;
use crate::objects::operation_error::OperationError;

/// Checks that these are public keys of NATS users.
///
/// # Errors
/// Names the first key that is not.
pub(crate) fn check_nkeys(nkeys: &[String]) -> Result<(), AccessError> {
    match nkeys.iter().find(|key| !is_user_key(key)) {
        None => Ok(()),
        Some(wrong) => Err(AccessError::bad(format_args!(
            "`{}` is no public key of a NATS user; one begins with `U`",
            wrong.escape_debug()
        ))),
    }
}

/// Creates a token for a user. The broker keeps only a digest, so the text cannot be shown again.
///
/// # Errors
/// There is no such user, or [`OperationError`].
pub(crate) async fn make_token(broker: &Broker, name: String) -> Result<String, OperationError> {
    let made = change(broker, move |draft| {
        let token = Token::make().ok_or(AccessError::NoRandomness)?;
        let mut user = draft.user(&name)?;
        user.tokens.push(token.digest());
        draft.put_user(&name, user).map(|_| token)
    });
    Ok(made.await?.reveal().to_string())
}

/// Deletes all tokens of a user.
///
/// # Errors
/// There is no such user, or [`OperationError`].
pub(crate) async fn delete_tokens(broker: &Broker, name: String) -> Result<(), OperationError> {
    let edit = move |draft: &mut imori_server::access::Draft| {
        let user = draft.user(&name)?;
        draft.put_user(&name, User { tokens: Vec::new(), ..user }).map(drop)
    };
    change(broker, edit).await
}
