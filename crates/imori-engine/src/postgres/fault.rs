//! What a failed request of the server's client means.

use std::error::Error as _;
use std::io;

use tokio_postgres::Error;

/// Whether the connection is gone, or the server is about to end it.
pub(super) fn is_lost(error: &Error) -> bool {
    let is_io = error.source().is_some_and(|source| source.is::<io::Error>());
    // Class 08 is that of connections; 57P01 to 57P05 tell that the server stops, starts or ends this connection.
    let ends =
        error.code().is_some_and(|code| code.code().starts_with("08") || code.code().starts_with("57P0"));
    error.is_closed() || is_io || ends
}

/// The error as a sentence: what the server says, or else what the system says.
pub(super) fn reason(error: &Error) -> String {
    if let Some(refusal) = error.as_db_error() {
        return match refusal.detail() {
            Some(detail) => format!("{} ({detail})", refusal.message()),
            None => refusal.message().to_owned(),
        };
    }
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}
