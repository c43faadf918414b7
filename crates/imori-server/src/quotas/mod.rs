//! Usage that operators can limit per user and vhost: connections, stored bytes and publish rates. The limits
//! themselves are objects of `access/`.

mod turn_rates;
mod rate;
mod seats;
mod stored_bytes;

pub(crate) use rate::Rate;
pub(crate) use seats::{Full, Seats};
pub(crate) use stored_bytes::StoredBytes;
pub(crate) use turn_rates::{Rates, TurnRates};
