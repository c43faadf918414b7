//! The checks of a run: at rest, at the end, and on every disk image that a crash would leave.

mod shadow;
mod checker;
mod sessions;
mod crash_image;

pub(crate) use checker::{check_end, check_rest, expected_charge};
pub(crate) use crash_image::{check_image, recover_image};
pub(crate) use sessions::check_apart;
pub(crate) use shadow::{check_shadow, is_quiet};
