//! Messages of AMQP 1.0 in frames of any size.

mod frames;
