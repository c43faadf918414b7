//! Sessions of the web console, and the cookies that stand for them.

use std::ops::Range;
use std::slice;
use std::time::{Duration, Instant};

use axum::http::header::COOKIE;
use axum::http::{HeaderMap, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use imori_admin::for_tests::{
    SESSION_IDLE_MAX, SESSION_LIFE_MAX, SESSIONS_MAX, SessionCookie, SessionKey, Sessions, USER_SESSIONS_MAX,
    has_cookie, session_keys,
};

/// The name of the cookie.
const NAME: &str = "imori_session";

fn key(number: u16) -> SessionKey {
    let secret: [u8; 32] = std::array::from_fn(|at| number.to_le_bytes()[at % 2]);
    SessionKey::of(&URL_SAFE_NO_PAD.encode(secret)).unwrap()
}

fn is_alive(sessions: &Sessions<bool>, key: SessionKey, now: Instant) -> bool {
    sessions.using(key, true, now, |is_valid| is_valid.then_some(())).is_some()
}

fn begin(sessions: &Sessions<bool>, number: u16, user: &str, now: Instant) {
    sessions.begin(key(number), (user.to_owned(), true), false, now);
}

#[test]
fn a_session_ends_after_its_time_or_unused() {
    let (sessions, start) = (Sessions::default(), Instant::now());
    let almost = SESSION_IDLE_MAX - Duration::from_secs(1);
    begin(&sessions, 1, "adam", start);
    begin(&sessions, 2, "adam", start);
    let mut now = start;
    while now + almost < start + SESSION_LIFE_MAX {
        now += almost;
        assert!(is_alive(&sessions, key(1), now));
    }
    assert!(!is_alive(&sessions, key(1), start + SESSION_LIFE_MAX), "it is too old");
    assert!(!is_alive(&sessions, key(2), start + SESSION_IDLE_MAX), "it was not used");
    assert!(!is_alive(&sessions, key(2), start), "it is gone");
}

#[test]
fn a_session_ends_with_its_login_or_by_request() {
    let (sessions, now) = (Sessions::default(), Instant::now());
    sessions.begin(key(1), (String::from("adam"), false), false, now);
    begin(&sessions, 2, "adam", now);
    assert!(!is_alive(&sessions, key(1), now));
    assert!(is_alive(&sessions, key(2), now));
    sessions.end(key(2));
    assert!(!is_alive(&sessions, key(2), now) && !is_alive(&sessions, key(3), now));
}

#[test]
fn a_session_of_this_machine_is_valid_here_only() {
    let (sessions, now) = (Sessions::default(), Instant::now());
    sessions.begin(key(1), (String::from("operator"), true), true, now);
    let identify = |_: &bool| Some(());
    assert_eq!(sessions.using(key(1), false, now, identify), None);
    assert_eq!(sessions.using(key(1), true, now, identify), Some(()));
}

#[test]
fn the_least_recently_used_session_gives_way() {
    let (sessions, start) = (Sessions::default(), Instant::now());
    let at = |millis: usize| start + Duration::from_millis(millis as u64);
    for number in 0..SESSIONS_MAX {
        begin(&sessions, number as u16, &format!("user {number}"), at(number));
    }
    assert!(is_alive(&sessions, key(0), at(SESSIONS_MAX)));
    begin(&sessions, 5000, "adam", at(SESSIONS_MAX));
    assert!(is_alive(&sessions, key(0), at(SESSIONS_MAX)) && is_alive(&sessions, key(2), at(SESSIONS_MAX)));
    assert!(!is_alive(&sessions, key(1), at(SESSIONS_MAX)));
    for number in 0..USER_SESSIONS_MAX {
        begin(&sessions, 6000 + number as u16, "eve", at(SESSIONS_MAX + 1));
    }
    let alive = |numbers: &[Range<u16>]| {
        let numbers = numbers.iter().cloned().flatten();
        numbers.filter(|number| is_alive(&sessions, key(*number), at(SESSIONS_MAX + 1))).count()
    };
    let others = || alive(&[0..SESSIONS_MAX as u16, 5000..5001]);
    let before = others();
    begin(&sessions, 7000, "eve", at(SESSIONS_MAX + 2));
    assert_eq!(before, SESSIONS_MAX - USER_SESSIONS_MAX);
    assert_eq!(before, others(), "a user's sessions displace that user's own");
    assert!(is_alive(&sessions, key(7000), at(SESSIONS_MAX + 2)));
    assert_eq!(alive(slice::from_ref(&(6000..7001))), USER_SESSIONS_MAX);
}

#[test]
fn cookies_are_read_or_ignored() {
    let made = SessionCookie::new(false).unwrap();
    let text = made.header.to_str().unwrap().to_owned();
    assert!(text.ends_with("; HttpOnly; SameSite=Strict; Path=/"), "{text}");
    assert!(SessionCookie::new(true).unwrap().header.to_str().unwrap().ends_with("; Secure"));
    let pair = text.split(';').next().unwrap();
    let value = pair.split_once('=').unwrap().1;
    for (lines, keys, is_cookie) in [
        (vec![pair.to_owned()], 1, true),
        (vec![format!("a=b; {pair}; c")], 1, true),
        (vec![format!("{NAME}=garbage; {pair}")], 1, true),
        (vec![String::from("a=b"), pair.to_owned()], 1, true),
        (vec![format!("{NAME}=\"{value}\"")], 1, true),
        (vec![format!("{NAME}={value}x")], 0, true),
        (vec![format!("{NAME}=")], 0, true),
        (vec![format!("x{NAME}={value}")], 0, false),
        (vec![String::from(NAME)], 0, false),
        (vec![], 0, false),
    ] {
        let mut headers = HeaderMap::new();
        for line in &lines {
            headers.append(COOKIE, HeaderValue::from_str(line).unwrap());
        }
        let found: Vec<_> = session_keys(&headers).collect();
        assert_eq!((found.len(), has_cookie(&headers)), (keys, is_cookie), "{lines:?}");
        assert!(found.iter().all(|key| *key == made.key));
    }
}
