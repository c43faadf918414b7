//! The outcome of one frame.

use imori_core::confirm::Confirm;
use imori_core::id::ConnectionId;
use imori_core::inbound::Performed;

/// The contents of a receipt besides the id.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReceiptKind {
    /// Only that the frame was worked off.
    #[default]
    Plain,
    /// How safe the message is.
    Level,
    /// How many delayed messages were taken back, and how safely, if any.
    Cancelled(usize),
}

impl ReceiptKind {
    /// Tells whether it says how safe something is.
    pub(crate) fn promises(self) -> bool {
        !matches!(self, ReceiptKind::Plain | ReceiptKind::Cancelled(0))
    }
}

/// The outcome of one frame, by which its receipt is written and the turn's budget is charged.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct FrameOutcome<'a> {
    /// The receipt that is still to be given, as it came.
    pub(crate) receipt: Option<&'a [u8]>,
    /// The confirm that the receipt waits for, besides those of the frames before.
    pub(crate) confirm: Confirm,
    /// The contents of the receipt besides the id.
    pub(crate) receipt_kind: ReceiptKind,
    /// Commands that it stands for.
    pub(crate) commands: usize,
    /// Deliveries that it caused, or may have.
    pub(crate) receivers: usize,
    /// A receiver that is behind.
    pub(crate) slow_reader: Option<ConnectionId>,
    /// How much of it is done.
    pub(crate) performed: Performed,
}

impl<'a> FrameOutcome<'a> {
    /// One command, whose receipt has nothing to wait for.
    pub(crate) fn with_receipt(receipt: Option<&'a [u8]>) -> Self {
        Self { receipt, commands: 1, ..Self::default() }
    }

    /// Nothing, until a queue is shorter.
    #[cold]
    pub(crate) fn held() -> Self {
        Self { performed: Performed::Held, ..Self::default() }
    }
}
