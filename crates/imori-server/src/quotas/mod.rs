//! Amounts that users and vhosts have and an operator can limit: connections, stored bytes, and messages that were
//! published lately. The limits themselves are among the objects of `access/`.

mod turn_rates;
mod rate;
mod seats;
mod stored_bytes;

pub(crate) use rate::Rate;
pub(crate) use seats::{Full, Seats};
pub(crate) use stored_bytes::StoredBytes;
pub(crate) use turn_rates::{Rates, TurnRates};
