//! Checks that a request names this broker.
//!
//! A web page can make a browser send requests to a loopback listener through a DNS name that resolves there. Such a
//! request has the page's host in its header, and is refused (SECURITY WEB-02).

use std::net::IpAddr;

use axum::http::uri::Authority;

use crate::config::HostName;

/// The refusal of a request with an unknown `Host`.
pub(crate) const UNKNOWN_HOST: &str =
    "this host is not known here; use an IP address or `localhost`, or add the name to `broker.host_names`\n";

/// Whether the header `Host` names this broker.
pub(crate) fn is_host_known(host: &[u8], host_names: &[HostName]) -> bool {
    // An IPv6 address without brackets, as nats-top sends it, is accepted too.
    let is_bare = str::from_utf8(host).is_ok_and(|host| host.parse::<IpAddr>().is_ok());
    is_bare || Authority::try_from(host).is_ok_and(|host| is_own(&host, host_names))
}

/// Whether an authority names this broker. IP addresses are safe because DNS does not resolve them; ports may be
/// mapped, so they are ignored.
pub(crate) fn is_own(authority: &Authority, host_names: &[HostName]) -> bool {
    if authority.as_str().contains('@') {
        return false;
    }
    let host = authority.host();
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    bare.parse::<IpAddr>().is_ok()
        || host.eq_ignore_ascii_case("localhost")
        || host_names.iter().any(|name| name.as_str().eq_ignore_ascii_case(host))
}
