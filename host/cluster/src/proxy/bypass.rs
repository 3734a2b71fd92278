//! `NO_PROXY`: the servers to reach without a proxy, by the rules of Go's `net/http`.

use std::net::IpAddr;

use http::Uri;
use ipnet::IpNet;

/// True if the server is reached without a proxy. This machine always is.
pub(super) fn bypasses(list: &str, server: &Uri) -> bool {
    let Some(host) = server.host() else { return true };
    let host = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .to_ascii_lowercase();
    let host = host.trim_end_matches('.');
    let usual = if server.scheme_str() == Some("http") {
        80
    } else {
        443
    };
    let port = server.port_u16().unwrap_or(usual);
    let address: Option<IpAddr> = host.parse().ok();
    if host == "localhost" || address.is_some_and(|address| address.is_loopback()) {
        return true;
    }
    let mut entries = list.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    entries.any(|entry| entry == "*" || matches(&entry.to_ascii_lowercase(), host, address, port))
}

/// Matches a network, an address or a domain, the last two optionally with a port.
fn matches(entry: &str, host: &str, address: Option<IpAddr>, port: u16) -> bool {
    if let Ok(network) = entry.parse::<IpNet>() {
        return address.is_some_and(|address| network.contains(&address));
    }
    if let Ok(single) = entry.parse::<IpAddr>() {
        return address == Some(single);
    }
    let (name, its_port) = match entry.rsplit_once(':') {
        Some((name, text)) => match text.parse::<u16>() {
            Ok(number) => (name, Some(number)),
            Err(_) => return false,
        },
        None => (entry, None),
    };
    if its_port.is_some_and(|its_port| its_port != port) {
        return false;
    }
    let name = name.trim_start_matches('[').trim_end_matches(']');
    if let Ok(single) = name.parse::<IpAddr>() {
        return address == Some(single);
    }
    // `*.example.com` is `.example.com`: its subdomains. `example.com` also matches itself.
    let name = name.strip_prefix('*').unwrap_or(name);
    match name.strip_prefix('.') {
        Some(domain) => is_below(host, domain),
        None => host == name || is_below(host, name),
    }
}

fn is_below(host: &str, domain: &str) -> bool {
    !domain.is_empty() && host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
}
