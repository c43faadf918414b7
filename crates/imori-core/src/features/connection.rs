//! Rare states of a connection that affect deliveries.

/// A set of states of a connection.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectionFeatures(u8);

impl ConnectionFeatures {
    /// The connection takes no more deliveries.
    pub(crate) const ENDED: ConnectionFeatures = ConnectionFeatures(1);
    /// The encoder cannot represent some messages.
    pub(crate) const CHOOSY: ConnectionFeatures = ConnectionFeatures(1 << 1);
    /// The client may answer what it receives, which must be noted.
    pub(crate) const ANSWERS: ConnectionFeatures = ConnectionFeatures(1 << 2);

    /// Whether any of these states holds.
    #[inline]
    pub(crate) fn any(self, of: ConnectionFeatures) -> bool {
        self.0 & of.0 != 0
    }

    /// Sets or clears these states.
    pub(crate) fn set(&mut self, features: ConnectionFeatures, holds: bool) {
        self.0 = if holds { self.0 | features.0 } else { self.0 & !features.0 };
    }
}
