//! Whether a request names this broker.
//!
//! A page of another site can make a browser ask a listener on loopback, under a name that was made to lead
//! there. Such a request names that site as its host, and is refused (SECURITY WEB-02).

use std::net::IpAddr;

use axum::http::uri::Authority;

use crate::config::HostName;

/// The answer to a request whose `Host` is not one of this broker's names.
pub(crate) const UNKNOWN_HOST: &str =
    "this host is not known here; use an IP address or `localhost`, or add the name to `broker.host_names`\n";

/// Whether the header `Host` names this broker.
pub(crate) fn is_host_known(host: &[u8], host_names: &[HostName]) -> bool {
    // An IPv6 address without its brackets, as nats-top writes it, is still an address.
    let is_bare = str::from_utf8(host).is_ok_and(|host| host.parse::<IpAddr>().is_ok());
    is_bare || Authority::try_from(host).is_ok_and(|host| is_own(&host, host_names))
}

/// An address is no name that somebody could let lead elsewhere. Ports do not matter: they may be mapped.
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
