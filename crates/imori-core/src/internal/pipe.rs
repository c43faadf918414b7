//! The pipe between an internal client and its connection, and the tickets that stand for its contents.

use std::fmt;

use super::command::Command;
use super::incoming::Incoming;

/// Size of a ticket in bytes: the number of its item (8) and the item's weight in bytes (4).
pub const TICKET_BYTES: usize = 12;

/// Holds an internal client's commands and the items sent to it. The runtime implements it, because the client and the
/// connection may run on different threads.
pub trait Pipe: fmt::Debug + Send + Sync + 'static {
    /// Takes the oldest command. The transport gives the connection one byte for each queued command.
    fn take_command(&self) -> Option<Command>;

    /// Keeps an item for the client until the ticket with the returned number is written or the connection ends. Called
    /// with the client's outbound half locked, so it must not lock another.
    fn keep(&self, incoming: Incoming) -> u64;
}

/// Appends the ticket of an item in the pipe.
pub(super) fn push_ticket(out: &mut Vec<u8>, number: u64, weight: usize) {
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(&u32::try_from(weight).unwrap_or(u32::MAX).to_le_bytes());
}

/// The numbers of the complete tickets in written bytes, in order.
pub fn tickets(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes
        .chunks_exact(TICKET_BYTES)
        .filter_map(|ticket| ticket.first_chunk().copied())
        .map(u64::from_le_bytes)
}

/// The summed weight of the tickets, in bytes.
pub(super) fn weight(bytes: &[u8]) -> usize {
    let weights = bytes.chunks_exact(TICKET_BYTES).filter_map(|ticket| ticket.last_chunk().copied());
    weights.map(|weight| u32::from_le_bytes(weight) as usize).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_are_read_as_they_were_written() {
        let mut out = Vec::new();
        for (number, bytes) in [(7, 0), (u64::MAX, 300), (8, usize::MAX)] {
            push_ticket(&mut out, number, bytes);
        }
        assert_eq!(tickets(&out).collect::<Vec<_>>(), [7, u64::MAX, 8]);
        assert_eq!(weight(&out), 300 + u32::MAX as usize);
        assert_eq!(weight(out.get(..2 * TICKET_BYTES).unwrap()), 300);
    }
}
