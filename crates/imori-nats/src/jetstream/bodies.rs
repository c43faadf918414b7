//! The bodies of requests to the JetStream API, but for those that configure a stream or a
//! consumer.

use imori_streams::consumer_config::is_group_name;
use imori_streams::error::ApiError;
use imori_streams::json::{UnknownNames, decode, parse};
use imori_streams::stream_config::StreamConfig;
use imori_streams::subject::is_valid_literal;
use imori_streams::time::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::jetstream::status::Status;
use crate::jetstream::stream_info::StreamState;

/// Reads a body that a request may leave out; bytes that are not an object count as none.
///
/// # Errors
///
/// Returns 10025 for an object that is not such a body.
pub fn optional<T: DeserializeOwned + Default>(body: &[u8]) -> Result<T, ApiError> {
    match body.trim_ascii_start().first() {
        Some(b'{' | b'[') => Ok(decode(body, UnknownNames::Refused)?),
        _ => Ok(T::default()),
    }
}

/// Reads a body that a request must have.
///
/// # Errors
///
/// Returns 10003 for an empty body or object, and 10025 for one that is not such a body.
pub fn required<T: DeserializeOwned + Default>(body: &[u8]) -> Result<T, ApiError> {
    if is_empty(body) {
        return Err(ApiError::BAD_REQUEST);
    }
    Ok(decode(body, UnknownNames::Refused)?)
}

/// Checks a body that a request must not have.
///
/// # Errors
///
/// Returns 10038 for a body that is neither empty nor an empty object.
pub fn none(body: &[u8]) -> Result<(), ApiError> {
    if is_empty(body) { Ok(()) } else { Err(ApiError::NOT_EMPTY_REQUEST) }
}

/// Whether a request has no body.
pub fn is_empty(body: &[u8]) -> bool {
    body.is_empty()
        || parse(body).is_ok_and(|value| value.is_some_and(|value| value == serde_json::json!({})))
}

/// The body of STREAM.INFO.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct StreamInfoRequest {
    /// The index of the first subject.
    pub offset: i64,
    /// The answer lists the sequences without a message.
    pub deleted_details: bool,
    /// The answer lists the subjects that match; none if this is empty.
    pub subjects_filter: String,
}

/// The body of STREAM.NAMES and STREAM.LIST.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct StreamsRequest {
    /// The index of the first stream.
    pub offset: i64,
    /// Filter of the subjects that a listed stream must have; empty for all streams.
    pub subject: String,
}

/// The body of CONSUMER.NAMES and CONSUMER.LIST.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ConsumersRequest {
    /// The index of the first consumer.
    pub offset: i64,
}

/// The body of STREAM.PURGE.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PurgeRequest {
    /// The first sequence to keep; 0 for none.
    pub seq: u64,
    /// Filter of the messages to delete; empty for all.
    pub filter: String,
    /// Number of newest messages to keep.
    pub keep: u64,
}

impl PurgeRequest {
    /// Reads the body.
    ///
    /// # Errors
    ///
    /// As for [`optional`], and 10003 for a request with both a sequence and a number to keep.
    pub fn decode(body: &[u8]) -> Result<Self, ApiError> {
        let request: Self = optional(body)?;
        if request.seq > 0 && request.keep > 0 { Err(ApiError::BAD_REQUEST) } else { Ok(request) }
    }
}

/// The body of STREAM.MSG.DELETE.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct MessageDeleteRequest {
    /// The sequence.
    pub seq: u64,
    /// The bytes of the message are not overwritten.
    pub no_erase: bool,
}

/// The body of STREAM.MSG.GET and DIRECT.GET.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct MessageGetRequest {
    /// The sequence, or the first one to look at.
    pub seq: u64,
    /// The last message of this subject.
    pub last_by_subj: String,
    /// The next message of these subjects.
    pub next_by_subj: String,
    /// Limit on the messages; 0 for one.
    pub batch: i64,
    /// Limit on their bytes; 0 for the server's.
    pub max_bytes: i64,
    /// The first time to look at.
    pub start_time: Option<Timestamp>,
    /// The last message of each subject that matches.
    pub multi_last: Vec<String>,
    /// The last sequence to look at; 0 for no limit.
    pub up_to_seq: u64,
    /// The last time to look at.
    pub up_to_time: Option<Timestamp>,
    /// Omits the header block.
    pub no_hdr: bool,
}

impl MessageGetRequest {
    /// Reads the body of STREAM.MSG.GET.
    ///
    /// # Errors
    ///
    /// As for [`required`], and 10003 for a request that contradicts itself or needs a direct get.
    pub fn decode(body: &[u8]) -> Result<Self, ApiError> {
        let request: Self = required(body)?;
        let has_nothing = request.seq == 0
            && request.last_by_subj.is_empty()
            && request.next_by_subj.is_empty()
            && request.start_time.is_none();
        let is_batch = request.batch > 0 || request.max_bytes > 0;
        if has_nothing || is_batch || request.contradicts() {
            return Err(ApiError::BAD_REQUEST);
        }
        Ok(request)
    }

    /// Reads the body of DIRECT.GET.
    ///
    /// # Errors
    ///
    /// Returns the status of nats-server for a body that is empty, not JSON or contradicts itself.
    pub fn decode_direct(body: &[u8]) -> Result<Self, Status<'static>> {
        if body.is_empty() {
            return Err(Status::EmptyRequest);
        }
        let request: Self = decode(body, UnknownNames::Ignored).map_err(|_| Status::MalformedRequest)?;
        let (has_last, has_next) = (!request.last_by_subj.is_empty(), !request.next_by_subj.is_empty());
        let has_many = !request.multi_last.is_empty();
        if request.seq == 0 && !has_last && !has_next && !has_many && request.start_time.is_none() {
            return Err(Status::EmptyRequest);
        }
        let is_wrong = request.contradicts()
            || has_last && request.batch > 0
            || has_many && (has_last || has_next)
            || request.up_to_seq > 0 && request.up_to_time.is_some();
        if is_wrong { Err(Status::DirectBadRequest) } else { Ok(request) }
    }

    /// Reads the body of DIRECT.GET with a subject, which may be empty.
    ///
    /// # Errors
    ///
    /// Returns the status of nats-server for a body that is not JSON, or says which message to get.
    pub fn decode_direct_last(subject: &str, body: &[u8]) -> Result<Self, Status<'static>> {
        let mut request: Self = match body {
            b"" => Self::default(),
            _ => decode(body, UnknownNames::Ignored).map_err(|_| Status::MalformedRequest)?,
        };
        let allowed = Self { max_bytes: request.max_bytes, no_hdr: request.no_hdr, ..Self::default() };
        if request != allowed {
            return Err(Status::DirectBadRequest);
        }
        request.last_by_subj = subject.to_string();
        Ok(request)
    }

    /// Whether the request names two messages.
    fn contradicts(&self) -> bool {
        let has_last = !self.last_by_subj.is_empty();
        self.seq > 0 && (has_last || self.start_time.is_some())
            || has_last && (self.start_time.is_some() || !self.next_by_subj.is_empty())
    }
}

/// The body of STREAM.SNAPSHOT.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct SnapshotRequest {
    /// The subject to which the copy is sent.
    pub deliver_subject: String,
    /// Omits the consumers.
    pub no_consumers: bool,
    /// Bytes of a message of the copy; 0 for the server's choice.
    pub chunk_size: i64,
    /// Bytes that may be sent without an answer; 0 for the server's choice.
    pub window_size: i64,
    /// The server checks all messages before.
    #[serde(rename = "jsck")]
    pub checks_messages: bool,
}

impl SnapshotRequest {
    /// Reads the body.
    ///
    /// # Errors
    ///
    /// As for [`required`], and 10015 for a deliver subject to which nothing can be published.
    pub fn decode(body: &[u8]) -> Result<Self, ApiError> {
        let request: Self = required(body)?;
        if !is_valid_literal(&request.deliver_subject) {
            return Err(ApiError::SNAPSHOT_DELIVER_SUBJECT_INVALID);
        }
        Ok(request)
    }
}

/// The body of STREAM.RESTORE.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct RestoreRequest {
    /// The configuration of the stream.
    pub config: StreamConfig,
    /// The state that it had.
    pub state: StreamState,
}

/// The body of CONSUMER.PAUSE.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PauseRequest {
    /// End of the pause; the zero time resumes the consumer.
    pub pause_until: Timestamp,
}

/// The body of CONSUMER.RESET.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ResetRequest {
    /// The next sequence to deliver; 0 for the one after the last that is acknowledged.
    pub seq: u64,
}

impl ResetRequest {
    /// Reads the body.
    ///
    /// # Errors
    ///
    /// Returns 10025 for a body that is neither empty nor such an object.
    pub fn decode(body: &[u8]) -> Result<Self, ApiError> {
        Ok(decode(body, UnknownNames::Ignored)?)
    }
}

/// The body of CONSUMER.UNPIN.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct UnpinRequest {
    /// The priority group.
    pub group: String,
}

impl UnpinRequest {
    /// Reads the body.
    ///
    /// # Errors
    ///
    /// Returns 10025 for a body without a group, and 10162 for a name that no group can have.
    pub fn decode(body: &[u8]) -> Result<Self, ApiError> {
        let request: Self = decode(body, UnknownNames::Ignored)?;
        if request.group.is_empty() {
            return Err(ApiError::invalid_json("consumer group not specified"));
        }
        if !is_group_name(&request.group) {
            return Err(ApiError::CONSUMER_INVALID_GROUP_NAME);
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_may_be_needed_or_forbidden() {
        let streams = |offset, subject: &str| Ok(StreamsRequest { offset, subject: subject.to_string() });
        for (body, expected) in [
            ("", streams(0, "")),
            ("x", streams(0, "")),
            (r#" {"offset":5,"subject":"a"}"#, streams(5, "a")),
            ("[]", Err(10_025)),
            (r#"{"bogus":1}"#, Err(10_025)),
        ] {
            let read = optional::<StreamsRequest>(body.as_bytes()).map_err(|error| error.err_code);
            assert_eq!(read, expected, "{body}");
        }
        for (body, as_required, as_none) in [
            ("", Some(10_003), None),
            ("{}", Some(10_003), None),
            (" { } ", Some(10_003), None),
            (" ", None, Some(10_038)),
            (r#"{"seq":1}"#, None, Some(10_038)),
            ("x", Some(10_025), Some(10_038)),
        ] {
            let read = required::<MessageDeleteRequest>(body.as_bytes());
            assert_eq!(read.err().map(|error| error.err_code), as_required, "{body}");
            assert_eq!(none(body.as_bytes()).err().map(|error| error.err_code), as_none, "{body}");
        }
    }

    #[test]
    fn bodies_have_the_names_of_nats_server() {
        let info = br#"{"offset":1,"deleted_details":true,"subjects_filter":">"}"#;
        let expected =
            StreamInfoRequest { offset: 1, deleted_details: true, subjects_filter: ">".to_string() };
        assert_eq!(optional(info), Ok(expected));
        let snapshot =
            br#"{"deliver_subject":"d","no_consumers":true,"chunk_size":1,"window_size":2,"jsck":true}"#;
        let expected = SnapshotRequest {
            deliver_subject: "d".to_string(),
            no_consumers: true,
            chunk_size: 1,
            window_size: 2,
            checks_messages: true,
        };
        assert_eq!(SnapshotRequest::decode(snapshot), Ok(expected));
        let restore = br#"{"config":{"name":"S"},"state":{"messages":1,"first_ts":"0001-01-01T00:00:00Z"}}"#;
        let restore: RestoreRequest = required(restore).unwrap();
        assert_eq!((restore.config.name.as_str(), restore.state.messages), ("S", 1));
        let pause: PauseRequest = optional(br#"{"pause_until":"2030-01-01T00:00:00+02:00"}"#).unwrap();
        assert_eq!(pause.pause_until.to_string(), "2029-12-31T22:00:00Z");
        assert_eq!(optional(br#"{"offset":-1}"#), Ok(ConsumersRequest { offset: -1 }));
        assert_eq!(ResetRequest::decode(b""), Ok(ResetRequest { seq: 0 }));
        assert_eq!(ResetRequest::decode(br#"{"seq":3}"#), Ok(ResetRequest { seq: 3 }));
    }

    #[test]
    fn requests_that_contradict_themselves_are_refused() {
        let purge = |body: &[u8]| PurgeRequest::decode(body).map(drop);
        let unpin = |body: &[u8]| UnpinRequest::decode(body).map(drop);
        let snapshot = |body: &[u8]| SnapshotRequest::decode(body).map(drop);
        let get = |body: &[u8]| MessageGetRequest::decode(body).map(drop);
        type Decode<'a> = &'a dyn Fn(&[u8]) -> Result<(), ApiError>;
        for (decode, body, expected) in [
            (&purge as Decode<'_>, "", None),
            (&purge, r#"{"seq":1,"filter":"a"}"#, None),
            (&purge, r#"{"seq":1,"keep":1}"#, Some(10_003)),
            (&unpin, r#"{"group":"a"}"#, None),
            (&unpin, "", Some(10_025)),
            (&unpin, r#"{"group":"a b"}"#, Some(10_162)),
            (&unpin, r#"{"group":"aaaaaaaaaaaaaaaaa"}"#, Some(10_162)),
            (&snapshot, r#"{"deliver_subject":"d.*"}"#, Some(10_015)),
            (&snapshot, r#"{"chunk_size":1}"#, Some(10_015)),
            (&get, r#"{"seq":1}"#, None),
            (&get, r#"{"last_by_subj":"a"}"#, None),
            (&get, r#"{"seq":1,"next_by_subj":"a"}"#, None),
            (&get, r#"{"start_time":"2026-01-01T00:00:00Z"}"#, None),
            (&get, "", Some(10_003)),
            (&get, r#"{"no_hdr":true}"#, Some(10_003)),
            (&get, r#"{"seq":1,"batch":2}"#, Some(10_003)),
            (&get, r#"{"seq":1,"last_by_subj":"a"}"#, Some(10_003)),
            (&get, r#"{"last_by_subj":"a","next_by_subj":"b"}"#, Some(10_003)),
            (&get, r#"{"seq":-1}"#, Some(10_025)),
        ] {
            assert_eq!(decode(body.as_bytes()).err().map(|error| error.err_code), expected, "{body}");
        }
    }

    #[test]
    fn direct_gets_are_refused_with_a_status() {
        for (body, expected) in [
            (r#"{"seq":1}"#, None),
            (r#"{"seq":1,"batch":10,"max_bytes":5,"other":1}"#, None),
            (r#"{"multi_last":["a.*"],"up_to_seq":9,"batch":3}"#, None),
            (r#"{"next_by_subj":"a.>","start_time":"2026-01-01T00:00:00Z"}"#, None),
            ("", Some(Status::EmptyRequest)),
            ("{}", Some(Status::EmptyRequest)),
            ("x", Some(Status::MalformedRequest)),
            (r#"{"seq":1,"last_by_subj":"a"}"#, Some(Status::DirectBadRequest)),
            (r#"{"last_by_subj":"a","batch":1}"#, Some(Status::DirectBadRequest)),
            (r#"{"last_by_subj":"a","multi_last":["b"]}"#, Some(Status::DirectBadRequest)),
            (r#"{"next_by_subj":"a","multi_last":["b"]}"#, Some(Status::DirectBadRequest)),
            (
                r#"{"seq":1,"up_to_seq":1,"up_to_time":"2026-01-01T00:00:00Z"}"#,
                Some(Status::DirectBadRequest),
            ),
        ] {
            assert_eq!(MessageGetRequest::decode_direct(body.as_bytes()).err(), expected, "{body}");
        }
        for (body, expected) in [
            ("", None),
            (r#"{"no_hdr":true}"#, None),
            ("x", Some(Status::MalformedRequest)),
            (r#"{"seq":1}"#, Some(Status::DirectBadRequest)),
            (r#"{"last_by_subj":"b"}"#, Some(Status::DirectBadRequest)),
        ] {
            let read = MessageGetRequest::decode_direct_last("a", body.as_bytes());
            assert_eq!(read.as_ref().err(), expected.as_ref(), "{body}");
            assert!(read.is_err() || read.is_ok_and(|request| request.last_by_subj == "a"));
        }
    }
}
