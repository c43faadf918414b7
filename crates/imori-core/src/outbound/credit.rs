//! How many deliveries a reader may have.

/// A reader's allowance of deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credit {
    /// As many as there is room for: nothing is settled by the reader.
    Unlimited,
    /// So many unsettled at once; settling one gives one back (`prefetch-count`, `basic.qos`).
    Window {
        /// The allowance.
        size: u32,
        /// How much of it is out.
        used: u32,
    },
    /// So many more; only a grant gives more (AMQP 1.0 link credit).
    Granted {
        /// What is left.
        left: u32,
    },
}

impl Credit {
    /// A window of which nothing is used.
    pub fn window(size: u32) -> Credit {
        Credit::Window { size, used: 0 }
    }

    /// Tells whether one more delivery is allowed.
    pub fn has_any(&self) -> bool {
        match *self {
            Credit::Unlimited => true,
            Credit::Window { size, used } => used < size,
            Credit::Granted { left } => left > 0,
        }
    }

    /// Uses up one.
    pub fn spend(&mut self) {
        match self {
            Credit::Unlimited => {}
            Credit::Window { used, .. } => *used += 1,
            Credit::Granted { left } => *left = left.saturating_sub(1),
        }
    }

    /// One delivery was settled.
    pub fn settled(&mut self) {
        if let Credit::Window { used, .. } = self {
            *used = used.saturating_sub(1);
        }
    }
}
