//! The states of a connection that a delivery has to mind and that nearly no connection is in.

/// A set of states of a connection.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectionFeatures(u8);

impl ConnectionFeatures {
    /// The connection takes no more deliveries.
    pub(crate) const ENDED: ConnectionFeatures = ConnectionFeatures(1);
    /// Its encoder has no form for some messages.
    pub(crate) const CHOOSY: ConnectionFeatures = ConnectionFeatures(1 << 1);
    /// Its client may answer what it receives, which is noted.
    pub(crate) const ANSWERS: ConnectionFeatures = ConnectionFeatures(1 << 2);

    /// Tells whether one of these holds.
    #[inline]
    pub(crate) fn any(self, of: ConnectionFeatures) -> bool {
        self.0 & of.0 != 0
    }

    /// Notes whether these hold.
    pub(crate) fn set(&mut self, features: ConnectionFeatures, holds: bool) {
        self.0 = if holds { self.0 | features.0 } else { self.0 & !features.0 };
    }
}
