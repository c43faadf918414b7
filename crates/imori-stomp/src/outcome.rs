//! The outcome of one frame.

use imori_core::confirm::Confirm;
use imori_core::id::ConnectionId;
use imori_core::inbound::Performed;

/// The contents of a receipt besides its id.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReceiptKind {
    /// No contents: the frame was performed.
    #[default]
    Plain,
    /// The level of safety of the message.
    Level,
    /// The number of delayed messages that were cancelled, and the level of safety if there were
    /// any.
    Cancelled(usize),
}

impl ReceiptKind {
    /// Whether the receipt states a level of safety.
    pub(crate) fn promises(self) -> bool {
        !matches!(self, ReceiptKind::Plain | ReceiptKind::Cancelled(0))
    }
}

/// The outcome of one frame, used to write its receipt and charge the turn's budget.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct FrameOutcome<'a> {
    /// The value of `receipt` as the client wrote it, if a receipt is still due.
    pub(crate) receipt: Option<&'a [u8]>,
    /// The confirm that the receipt waits for, besides those of earlier frames.
    pub(crate) confirm: Confirm,
    /// The contents of the receipt besides its id.
    pub(crate) receipt_kind: ReceiptKind,
    /// Commands to charge to the budget.
    pub(crate) commands: usize,
    /// Deliveries that the frame caused or may have caused.
    pub(crate) receivers: usize,
    /// A receiver that has fallen behind.
    pub(crate) slow_reader: Option<ConnectionId>,
    /// Whether the frame is done, done in part or held up.
    pub(crate) performed: Performed,
}

impl<'a> FrameOutcome<'a> {
    /// One command with a receipt that waits for no confirm.
    pub(crate) fn with_receipt(receipt: Option<&'a [u8]>) -> Self {
        Self { receipt, commands: 1, ..Self::default() }
    }

    /// A frame held up by a queue that is too long.
    #[cold]
    pub(crate) fn held() -> Self {
        Self { performed: Performed::Held, ..Self::default() }
    }
}
