//! What keeps a client from publishing.

/// What keeps a client from publishing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum PublisherWait {
    /// A reader that is too slow.
    Reader = 1,
    /// An alarm of memory or disk.
    Alarm,
    /// A queue that has to become shorter.
    Queue,
    /// The publish rate of its user or vhost.
    Rate,
}

impl PublisherWait {
    /// All of them.
    pub const ALL: [PublisherWait; 4] =
        [PublisherWait::Reader, PublisherWait::Alarm, PublisherWait::Queue, PublisherWait::Rate];

    /// The word for it in the admin API.
    pub fn word(self) -> &'static str {
        match self {
            PublisherWait::Reader => "reader",
            PublisherWait::Alarm => "alarm",
            PublisherWait::Queue => "queue",
            PublisherWait::Rate => "rate",
        }
    }
}
