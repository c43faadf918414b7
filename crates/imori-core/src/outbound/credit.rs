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
        /// Deliveries that the session may still get.
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

    /// Counts a delivery that was settled.
    pub fn settled(&mut self) {
        if let Credit::Window { used, .. } = self {
            *used = used.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credit_is_spent_and_comes_back_by_its_kind() {
        // SECURITY LIM-16: any number from outside.
        for (credit, allowed, after_settling) in [
            (Credit::Unlimited, 5, true),
            (Credit::window(0), 0, false),
            (Credit::window(3), 3, true),
            (Credit::window(u32::MAX), 5, true),
            (Credit::Window { size: u32::MAX, used: u32::MAX }, 0, true),
            (Credit::Window { size: 1, used: 2 }, 0, false),
            (Credit::Granted { left: 0 }, 0, false),
            (Credit::Granted { left: 2 }, 2, false),
            (Credit::Granted { left: u32::MAX }, 5, true),
        ] {
            let mut left = credit;
            let mut spent = 0;
            while spent < 5 && left.has_any() {
                left.spend();
                spent += 1;
            }
            assert_eq!(spent, allowed, "{credit:?}");
            left.settled();
            assert_eq!(left.has_any(), after_settling, "{credit:?}");
        }
        let mut empty = Credit::Granted { left: 0 };
        empty.spend();
        let mut unused = Credit::window(1);
        unused.settled();
        assert_eq!((empty, unused), (Credit::Granted { left: 0 }, Credit::window(1)));
    }
}
