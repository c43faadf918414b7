//! Usage that operators can limit per user and vhost: connections, stored bytes and publish rates; and requests to the
//! API of streams, which are only counted. The limits themselves are objects of `access/`.

mod turn_rates;
mod rate;
mod seats;
mod stored_bytes;
mod stream_request_counts;

pub(crate) use rate::Rate;
pub(crate) use seats::{Full, Seats};
pub(crate) use stored_bytes::StoredBytes;
pub(crate) use stream_request_counts::StreamRequestCounts;
pub(crate) use turn_rates::{Rates, TurnRates};
