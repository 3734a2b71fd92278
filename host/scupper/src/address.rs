//! Addresses to listen at, as they are typed.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// `PORT` or `:PORT` for this machine alone, `ADDRESS:PORT` for whom that address reaches.
pub(super) fn listen(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text);
    if let Ok(port) = port.parse::<u16>() {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    text.parse().map_err(|_no_address| {
        "must be a port, such as 9090, or an IP address with one, such as 0.0.0.0:9090 or [::]:9090"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_address_is_loopback() {
        for (typed, meant) in [
            ("9090", "127.0.0.1:9090"),
            (":9090", "127.0.0.1:9090"),
            ("0", "127.0.0.1:0"),
            ("0.0.0.0:9090", "0.0.0.0:9090"),
            ("[::1]:9090", "[::1]:9090"),
        ] {
            assert_eq!(
                listen(typed).map(|address| address.to_string()),
                Ok(meant.to_owned())
            );
        }
        for wrong in ["", "localhost:9090", "70000", "0.0.0.0", "::1:9090:x"] {
            assert!(listen(wrong).is_err(), "{wrong}");
        }
    }
}
