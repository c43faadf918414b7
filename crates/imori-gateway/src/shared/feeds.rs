//! Streams of events that many readers share: one subscription, one text for each event, and the latest events for
//! readers that come back.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use imori_server::Subscription;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::limits::{FEED_BYTES_MAX, FEED_IDLE_MAX, FEEDS_MAX};
use crate::lock::lock;

/// What makes two readers share a stream.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FeedKey {
    /// Its vhost.
    pub vhost: String,
    /// The exchange of its address.
    pub exchange: Vec<u8>,
    /// The subject of its address.
    pub subject: Vec<u8>,
    /// Whose rights decide what it receives.
    pub user: Vec<u8>,
    /// The type of its events.
    pub event: Option<String>,
    /// How many events are kept for readers that come back.
    pub history: usize,
}

/// All streams of a gateway.
#[derive(Debug, Default)]
pub(crate) struct Feeds(Mutex<HashMap<FeedKey, Arc<Feed>>>);

impl Feeds {
    /// The stream of this key, if there is one.
    pub(crate) fn find(&self, key: &FeedKey) -> Option<Reader> {
        let feeds = lock(&self.0);
        let feed = feeds.get(key)?;
        (!feed.has_ended()).then(|| Reader::new(feed))
    }

    /// Adds a stream, unless another request was faster; returns its reader and, for a new one, the feed to run. `None`
    /// if there are too many.
    pub(crate) fn add(&self, key: &FeedKey, id: u64) -> Option<(Reader, Option<Arc<Feed>>)> {
        let mut feeds = lock(&self.0);
        if let Some(feed) = feeds.get(key).filter(|feed| !feed.has_ended()) {
            return Some((Reader::new(feed), None));
        }
        if feeds.len() >= FEEDS_MAX {
            return None;
        }
        let feed = Arc::new(Feed::new(id, key));
        feeds.insert(key.clone(), Arc::clone(&feed));
        Some((Reader::new(&feed), Some(feed)))
    }

    /// Removes a stream that has ended.
    pub(crate) fn remove(&self, key: &FeedKey, feed: &Arc<Feed>) {
        let mut feeds = lock(&self.0);
        if feeds.get(key).is_some_and(|known| Arc::ptr_eq(known, feed)) {
            feeds.remove(key);
        }
    }
}

/// A stream of events.
#[derive(Debug)]
pub struct Feed {
    /// Random, so that an event's number of another stream, or of an earlier run, is not mistaken for one of this.
    id: u64,
    event: Option<String>,
    history: usize,
    ring: Mutex<Ring>,
    /// The number of the newest event, or that the stream has ended.
    newest: watch::Sender<Newest>,
    readers: AtomicUsize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Newest {
    number: u64,
    has_ended: bool,
}

#[derive(Debug, Default)]
struct Ring {
    /// The number of the oldest event that is kept.
    first: u64,
    texts: VecDeque<Bytes>,
    bytes: usize,
}

impl Feed {
    /// Creates a stream without events.
    pub fn new(id: u64, key: &FeedKey) -> Feed {
        Feed {
            id,
            event: key.event.clone(),
            history: key.history.max(1),
            ring: Mutex::new(Ring { first: 1, ..Ring::default() }),
            newest: watch::Sender::new(Newest { number: 0, has_ended: false }),
            readers: AtomicUsize::new(0),
        }
    }

    /// Whether no more events follow.
    pub fn has_ended(&self) -> bool {
        self.newest.borrow().has_ended
    }

    /// Adds the events of a subscription until it ends, or until nobody has read for a while.
    pub(crate) async fn run(&self, mut subscription: Subscription) {
        let mut read_last = Instant::now();
        loop {
            tokio::select! {
                message = subscription.recv() => match message {
                    Ok(message) => self.push(&message.body),
                    Err(reason) => break tracing::debug!(%reason, "a stream of the gateway has ended"),
                },
                () = sleep(FEED_IDLE_MAX / 4) => {}
            }
            if self.readers.load(Ordering::Relaxed) > 0 {
                read_last = Instant::now();
            } else if read_last.elapsed() > FEED_IDLE_MAX {
                break;
            }
        }
        self.end();
    }

    /// Tells readers that there are no more events.
    pub fn end(&self) {
        self.newest.send_modify(|newest| newest.has_ended = true);
    }

    /// Adds an event with this body, and forgets the oldest ones over the limits.
    pub fn push(&self, body: &[u8]) {
        let mut ring = lock(&self.ring);
        let number = ring.first + ring.texts.len() as u64;
        let text = event_text(&format!("{:016x}-{number}", self.id), self.event.as_deref(), body);
        ring.bytes += text.len();
        ring.texts.push_back(text);
        while ring.texts.len() > self.history || (ring.bytes > FEED_BYTES_MAX && ring.texts.len() > 1) {
            let gone = ring.texts.pop_front();
            ring.bytes -= gone.map_or(0, |gone| gone.len());
            ring.first += 1;
        }
        drop(ring);
        self.newest.send_modify(|newest| newest.number = number);
    }
}

/// An event of a stream (HTML Living Standard, 9.2.5). A body that is not UTF-8 comes as base64, with the type `binary`.
pub fn event_text(id: &str, event: Option<&str>, body: &[u8]) -> Bytes {
    let mut text = Vec::with_capacity(body.len() + 64);
    if !id.is_empty() {
        text.extend_from_slice(b"id: ");
        text.extend_from_slice(id.as_bytes());
        text.push(b'\n');
    }
    let is_text = str::from_utf8(body).is_ok();
    if let Some(event) = event.or((!is_text).then_some("binary")) {
        text.extend_from_slice(b"event: ");
        text.extend(event.bytes().filter(|byte| *byte >= b' '));
        text.push(b'\n');
    }
    let encoded;
    let body = match is_text {
        true => body,
        false => {
            encoded = STANDARD.encode(body);
            encoded.as_bytes()
        }
    };
    // A line of the stream ends with LF, CR or both.
    let mut rest = body;
    loop {
        let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        let (line, after) = rest.split_at(end.unwrap_or(rest.len()));
        text.extend_from_slice(b"data: ");
        text.extend_from_slice(line);
        text.push(b'\n');
        match after {
            [] => break,
            [b'\r', b'\n', after @ ..] | [_, after @ ..] => rest = after,
        }
    }
    text.push(b'\n');
    Bytes::from(text)
}

/// One reader of a stream.
#[derive(Debug)]
pub struct Reader {
    feed: Arc<Feed>,
    newest: watch::Receiver<Newest>,
    next: u64,
}

impl Reader {
    /// Creates a reader of the events from now on.
    pub fn new(feed: &Arc<Feed>) -> Reader {
        feed.readers.fetch_add(1, Ordering::Relaxed);
        let newest = feed.newest.subscribe();
        let next = newest.borrow().number + 1;
        Reader { feed: Arc::clone(feed), newest, next }
    }

    /// Goes back to the event after the one with this id, if it is one of this stream; otherwise all that is kept
    /// follows.
    pub fn resume(&mut self, id: &str) -> bool {
        let first = lock(&self.feed.ring).first;
        let number = id.split_once('-').and_then(|(feed, number)| {
            (u64::from_str_radix(feed, 16).ok()? == self.feed.id)
                .then(|| number.parse::<u64>().ok())
                .flatten()
        });
        match number {
            Some(number) if number < self.next => {
                self.next = number + 1;
                true
            }
            _ => {
                self.next = first;
                false
            }
        }
    }

    /// The events that are there, as one text; `None` once the stream has ended. Waits for the next one.
    pub(crate) async fn read(&mut self) -> Option<Bytes> {
        loop {
            if let Some(text) = self.take() {
                return Some(text);
            }
            if self.newest.borrow_and_update().has_ended {
                return None;
            }
            if self.next > self.newest.borrow().number && self.newest.changed().await.is_err() {
                return None;
            }
        }
    }

    /// The events that are there, as one text; `None` if there are none yet.
    pub fn take(&mut self) -> Option<Bytes> {
        let ring = lock(&self.feed.ring);
        let newest = ring.first + ring.texts.len() as u64;
        if self.next >= newest {
            return None;
        }
        let missed = ring.first.saturating_sub(self.next);
        self.next = self.next.max(ring.first);
        let at = usize::try_from(self.next - ring.first).unwrap_or(usize::MAX);
        let mut texts = ring.texts.iter().skip(at).take(64);
        let first = texts.next()?;
        self.next += 1;
        let more: Vec<&Bytes> = texts.collect();
        if missed == 0 && more.is_empty() {
            return Some(first.clone());
        }
        let mut text = Vec::new();
        if missed > 0 {
            text.extend_from_slice(format!("event: missed\ndata: {missed}\n\n").as_bytes());
        }
        text.extend_from_slice(first);
        for event in more {
            text.extend_from_slice(event);
            self.next += 1;
        }
        Some(Bytes::from(text))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.feed.readers.fetch_sub(1, Ordering::Relaxed);
    }
}
