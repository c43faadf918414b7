//! Acknowledgements that a consumer holds back, in order to give them in another order than their
//! deliveries arrived in.

/// Ticks without a delivery after which none seems to be coming; one is not enough, because it may
/// follow right after a delivery.
const QUIET: u32 = 2;

/// The tokens of unacknowledged deliveries.
#[derive(Debug)]
pub(crate) struct Held {
    tokens: Vec<Box<[u8]>>,
    /// The most tokens held back.
    window: usize,
    /// State of the random number generator.
    state: u64,
    /// Ticks since the last delivery.
    quiet: u32,
}

impl Held {
    /// Holds back at most `window` tokens, and draws from `seed`.
    pub(crate) fn new(window: usize, seed: u64) -> Held {
        let state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Held { tokens: Vec::with_capacity(window), window, state, quiet: 0 }
    }

    /// Adds a token; returns a random one to acknowledge if there are too many.
    pub(crate) fn put(&mut self, token: &[u8]) -> Option<Box<[u8]>> {
        self.quiet = 0;
        self.tokens.push(token.into());
        if self.tokens.len() > self.window { self.draw() } else { None }
    }

    /// A random token to acknowledge, if there has been no delivery for a while.
    pub(crate) fn left_over(&mut self) -> Option<Box<[u8]>> {
        if self.quiet < QUIET { None } else { self.draw() }
    }

    /// Counts a tick; the second one without a delivery makes all tokens due.
    ///
    /// Otherwise the run would hang when the broker has nothing left to deliver, or waits for these
    /// very acknowledgements.
    pub(crate) fn tick(&mut self) {
        self.quiet = self.quiet.saturating_add(1);
    }

    /// Drops all tokens, because their connection is closed.
    pub(crate) fn clear(&mut self) {
        self.tokens.clear();
    }

    fn draw(&mut self) -> Option<Box<[u8]>> {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let count = self.tokens.len() as u64;
        let at = (self.state >> 11).checked_rem(count)?;
        Some(self.tokens.swap_remove(at as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_given_once_out_of_turn_and_never_later_than_the_window_allows() {
        for window in [0, 1, 4, 64] {
            let mut held = Held::new(window, 7);
            let mut given = Vec::new();
            for number in 0..1_000_u16 {
                given.extend(held.put(&number.to_be_bytes()));
                assert_eq!(held.tokens.len(), window.min(usize::from(number) + 1));
            }
            held.tick();
            assert!(held.left_over().is_none(), "more may come");
            held.tick();
            given.extend(std::iter::from_fn(|| held.left_over()));
            let numbers: Vec<u16> =
                given.iter().map(|token| u16::from_be_bytes((**token).try_into().unwrap())).collect();
            assert_eq!(numbers.is_sorted(), window == 0, "window {window}");
            let mut sorted = numbers;
            sorted.sort_unstable();
            assert_eq!(sorted, (0..1_000).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_delivery_keeps_the_rest_back_until_nothing_comes() {
        let mut held = Held::new(4, 1);
        held.put(b"a");
        held.tick();
        held.put(b"b");
        held.tick();
        assert!(held.left_over().is_none());
        held.tick();
        assert!(held.left_over().is_some() && held.left_over().is_some() && held.left_over().is_none());
        held.put(b"c");
        held.clear();
        held.tick();
        held.tick();
        assert!(held.left_over().is_none());
    }
}
