//! The broker's verbs, one file each, in the order in which a message meets them.
//!
//! The verbs reach queues and connections through [`World`](crate::world::World), which lends them
//! one at a time under its lock: topology before queue, queue before outbound. Several queues are
//! locked together only by a commit, a relocation, and a message with an id that queues
//! de-duplicate; these lock their queues in ascending order of id.

mod publish;
mod throttle;
mod commit;
mod page;
mod cancel;
mod disconnect;
mod settle;
mod purge;
mod relocate;
mod get;
mod recheck;
mod govern;
mod consume;
mod expire;
mod streams;
mod deliver;
mod steps;

pub use crate::authorize::Actor;
pub use crate::definitions::{
    Declared, DeleteOptions, Deleted, QueueInspection, bind_exchange, bind_queue, change_stream,
    declare_exchange, declare_queue, declare_unnamed_queue, delete_exchange, delete_queue, delete_queue_if,
    find_queue, look_up_exchange, look_up_queue, unbind_exchange, unbind_queue,
};
pub use crate::pipeline::{PublishReport, announce, answer, may_publish, renew_seen, renew_some_seen};
pub use crate::queue::Got;

pub use cancel::cancel_delayed;
pub use commit::{CommitReport, commit};
pub use consume::{
    ConsumeOptions, SubscribeOptions, cancel, cancel_all, consume, end_consumer, limit_deliveries, subscribe,
    subscribe_all,
};
pub use disconnect::{delete_exclusive, disconnect, end_session, open_session, set_window, take_over};

pub use deliver::{resume_publishers, wake_consumers};
pub use expire::{queue_restored, queue_woken};
pub use get::{GetOptions, TakeReport, get, peek, take};
pub use govern::{apply_policies, set_policies};
pub use page::{page_failed, page_read, page_unreadable, page_written, pages_copied};
pub use publish::{
    Repetition, notify, publish, publish_again, publish_each, publish_to_queue, publish_with_copies,
};
pub use purge::purge;
pub use recheck::{Revoked, recheck_readers};
pub use relocate::{Waiting, relocate};
pub use settle::{SettleReport, annotate, grant, grant_frames, settle, visit_annotations};
pub use steps::{Annotations, MergeAnnotations, Step};
pub use streams::{
    answer_flow_control, answer_late, begin_restore, confirm_stream, confirm_stream_of_all, declare_stream,
    delete_stream, delete_stream_consumer, delete_stream_message, end_restore, peek_stream, purge_stream,
    put_stream_consumer, request_from_stream, reset_stream_consumer, restore_messages, send_late_answer,
    settle_stream, stream_progressed, unpin_stream_consumer, with_stream,
};
pub use throttle::{must_wait_to_commit, must_wait_to_publish};
