//! Chooses the proxy to the API server: the kubeconfig's, else that of the environment, by the rules of `kubectl`,
//! whose library is Go's `net/http`. It must not connect anywhere.

mod bypass;
#[cfg(test)]
mod tests;

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Uri};
use percent_encoding::percent_decode_str;
use thiserror::Error;

use self::bypass::bypasses;

/// An invalid proxy URL.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{source_name} is {url}, which is not a proxy URL; use http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT"
)]
pub struct ProxyUrlError {
    /// Its source: `HTTPS_PROXY`, `proxy-url`.
    pub source_name: &'static str,
    /// The URL without its password.
    pub url: String,
}

/// A proxy.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Proxy {
    pub(super) protocol: Protocol,
    /// Its address, with scheme and port.
    pub(super) address: Uri,
    login: Option<(String, String)>,
}

/// The protocol for requesting a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// `CONNECT`, over TCP or TLS.
    Http,
    /// SOCKS 5. The proxy resolves names.
    Socks5,
}

impl Proxy {
    /// The `Proxy-Authorization` header for an HTTP proxy, if it has credentials.
    pub(super) fn authorization(&self) -> Option<HeaderValue> {
        let (user, password) = self.login.as_ref()?;
        let basic = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
        let mut value = HeaderValue::try_from(basic).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// User and password for a SOCKS proxy, if it has credentials.
    pub(super) const fn login(&self) -> Option<&(String, String)> {
        self.login.as_ref()
    }

    fn parse(source_name: &'static str, text: &str) -> Result<Self, ProxyUrlError> {
        let wrong = || ProxyUrlError {
            source_name,
            url: without_password(text),
        };
        // `proxy:3128` is `http://proxy:3128`, as it is for Go.
        let whole = if text.contains("://") {
            text.to_owned()
        } else {
            format!("http://{text}")
        };
        let uri: Uri = whole.parse().map_err(|_| wrong())?;
        let (protocol, scheme, port) = match uri.scheme_str() {
            Some("http") => (Protocol::Http, Scheme::HTTP, 80),
            Some("https") => (Protocol::Http, Scheme::HTTPS, 443),
            // The scheme tells the connector whether to use TLS.
            Some("socks5" | "socks5h") => (Protocol::Socks5, Scheme::HTTP, 1080),
            _ => return Err(wrong()),
        };
        let authority = uri.authority().ok_or_else(wrong)?;
        if authority.host().is_empty() {
            return Err(wrong());
        }
        let port = authority.port_u16().unwrap_or(port);
        let address = format!("{}:{port}", authority.host());
        let address: Authority = address.parse().map_err(|_| wrong())?;
        let address = Uri::builder()
            .scheme(scheme)
            .authority(address)
            .path_and_query(PathAndQuery::from_static("/"))
            .build();
        Ok(Self {
            protocol,
            address: address.map_err(|_| wrong())?,
            login: login(authority.as_str()),
        })
    }
}

/// Chooses the proxy on the way to `server`. The kubeconfig's takes precedence over the environment.
pub(super) fn choose(
    named: Option<&str>,
    server: &Uri,
    env: impl Fn(&str) -> Option<String>,
) -> Result<Option<Proxy>, ProxyUrlError> {
    if let Some(named) = named.filter(|named| !named.is_empty()) {
        return Proxy::parse("proxy-url", named).map(Some);
    }
    let variables = if server.scheme_str() == Some("http") {
        ["HTTP_PROXY", "http_proxy"]
    } else {
        ["HTTPS_PROXY", "https_proxy"]
    };
    let read = |names: [&'static str; 2]| {
        let given = names.into_iter().map(|name| (name, env(name)));
        given
            .filter_map(|(name, text)| Some((name, text.filter(|text| !text.is_empty())?)))
            .next()
    };
    let Some((name, text)) = read(variables) else {
        return Ok(None);
    };
    let except = read(["NO_PROXY", "no_proxy"]);
    if bypasses(except.as_ref().map_or("", |(_, text)| text), server) {
        return Ok(None);
    }
    Proxy::parse(name, text.trim()).map(Some)
}

/// User and password, if there are any.
fn login(authority: &str) -> Option<(String, String)> {
    let (login, _) = authority.rsplit_once('@')?;
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let plain = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
    Some((plain(user), plain(password)))
}

fn without_password(text: &str) -> String {
    match text.rsplit_once('@') {
        Some((_, rest)) => format!("***@{rest}"),
        None => text.to_owned(),
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.protocol {
            Protocol::Http => self.address.scheme_str().unwrap_or_default(),
            Protocol::Socks5 => "socks5",
        };
        let authority = self.address.authority().map_or("", Authority::as_str);
        write!(f, "{scheme}://{authority}")
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({self})")
    }
}
