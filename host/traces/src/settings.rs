//! Reads where traces are sent from the OpenTelemetry environment variables, which all programs share. Values that may
//! be secret are never printed.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use http::uri::{PathAndQuery, Uri};
use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use thiserror::Error;

/// Default time limit for one batch.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The path of a collector for traces over HTTP.
const TRACES_PATH: &str = "/v1/traces";

const SERVICE: &str = "service.name";

/// The destination of traces, and the description of the sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceSettings {
    pub(super) endpoint: Uri,
    pub(super) protocol: Protocol,
    pub(super) headers: HeaderMap,
    pub(super) timeout: Duration,
    /// The CA certificates to trust for an https collector; `None`: those of the system.
    pub(super) certificates: Option<PathBuf>,
    /// The resource attributes of this program.
    pub(super) resource: Vec<(String, String)>,
}

/// The supported OTLP protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Grpc,
    Http,
}

/// An error in the trace settings.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum TraceSettingsError {
    /// Not a URL of a collector. The value may contain a password and is not repeated.
    #[error("{name}: {wrong}; it must be a URL such as http://127.0.0.1:4318")]
    Endpoint {
        /// The flag or the variable.
        name: String,
        /// The problem.
        wrong: &'static str,
    },
    /// An unsupported value.
    #[error("{name}: {value:?} is not supported; {fix}")]
    NotOffered {
        /// The variable.
        name: String,
        /// Its value.
        value: String,
        /// The correction.
        fix: &'static str,
    },
    /// Not a list of pairs. The values may be secret and are not repeated.
    #[error(
        "{name}: entry {number} {wrong}; write key=value,key=value and percent-encode special characters"
    )]
    List {
        /// The variable.
        name: String,
        /// The position of the pair, from 1.
        number: usize,
        /// The problem.
        wrong: &'static str,
    },
    /// Not a duration.
    #[error("{name}: {value:?} is not a time; write a number of milliseconds, at least 1")]
    Timeout {
        /// The variable.
        name: String,
        /// Its value.
        value: String,
    },
}

/// Reads the settings from the flag and the environment; `None`: traces are not sent. Reports all errors at once.
pub fn trace_settings(
    flag: Option<&str>,
    var: impl Fn(&str) -> Option<String>,
) -> Result<Option<TraceSettings>, Vec<TraceSettingsError>> {
    let said = Environment { var };
    let mut problems = Vec::new();
    let mut seen = |problem| problems.push(problem);
    if said.is_off(&mut seen) {
        return if problems.is_empty() {
            Ok(None)
        } else {
            Err(problems)
        };
    }
    let protocol = said.protocol().map_err(&mut seen);
    let Some(endpoint) = said.endpoint(flag, protocol == Ok(Protocol::Grpc)) else {
        // Traces are disabled, so errors in the other variables do not matter.
        return Ok(None);
    };
    let endpoint = endpoint.map_err(&mut seen);
    let headers = said.headers().map_err(&mut seen);
    let timeout = said.timeout().map_err(&mut seen);
    let resource = said.resource().map_err(&mut seen);
    said.check_rest(&mut seen);
    match (endpoint, protocol, headers, timeout, resource) {
        (Ok(endpoint), Ok(protocol), Ok(headers), Ok(timeout), Ok(resource)) if problems.is_empty() => {
            Ok(Some(TraceSettings {
                endpoint,
                protocol,
                headers,
                timeout,
                certificates: said.of_traces("CERTIFICATE").map(|(_, path)| path.into()),
                resource,
            }))
        }
        _ => Err(problems),
    }
}

type ProblemSink<'a> = &'a mut dyn FnMut(TraceSettingsError);

/// The OpenTelemetry variables.
struct Environment<V> {
    var: V,
}

impl<V: Fn(&str) -> Option<String>> Environment<V> {
    /// Reads a variable; an empty one counts as unset.
    fn read(&self, name: &str) -> Option<String> {
        let value = (self.var)(name)?;
        Some(value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    /// The variable for traces, or else the general one for all signals: its name and its value.
    fn of_traces(&self, what: &str) -> Option<(String, String)> {
        let names = [
            format!("OTEL_EXPORTER_OTLP_TRACES_{what}"),
            format!("OTEL_EXPORTER_OTLP_{what}"),
        ];
        let mut said = names.into_iter();
        said.find_map(|name| self.read(&name).map(|value| (name, value)))
    }

    fn is_off(&self, seen: ProblemSink<'_>) -> bool {
        let disabled = self.read("OTEL_SDK_DISABLED");
        if disabled.is_some_and(|it| it.eq_ignore_ascii_case("true")) {
            return true;
        }
        let exporter = self.read("OTEL_TRACES_EXPORTER");
        match exporter.as_deref() {
            None | Some("otlp") => false,
            Some("none") => true,
            Some(other) => {
                seen(TraceSettingsError::NotOffered {
                    name: "OTEL_TRACES_EXPORTER".to_owned(),
                    value: other.to_owned(),
                    fix: "set it to otlp, or to none for no traces",
                });
                true
            }
        }
    }

    fn protocol(&self) -> Result<Protocol, TraceSettingsError> {
        match self.of_traces("PROTOCOL") {
            None => Ok(Protocol::Http),
            Some((name, value)) => match value.as_str() {
                "grpc" => Ok(Protocol::Grpc),
                "http/protobuf" => Ok(Protocol::Http),
                _ => Err(TraceSettingsError::NotOffered {
                    name,
                    value,
                    fix: "set it to http/protobuf or to grpc",
                }),
            },
        }
    }

    /// The endpoint. The variable for traces is used as it is; for HTTP, the path for traces is appended to the flag
    /// and the general variable.
    fn endpoint(&self, flag: Option<&str>, grpc: bool) -> Option<Result<Uri, TraceSettingsError>> {
        let own = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
        let (name, value) = match flag.map(str::trim).filter(|flag| !flag.is_empty()) {
            Some(flag) => ("--otlp-endpoint".to_owned(), flag.to_owned()),
            None => self.of_traces("ENDPOINT")?,
        };
        let path = if grpc || name == own { "" } else { TRACES_PATH };
        Some(endpoint(&value, path).map_err(|wrong| TraceSettingsError::Endpoint { name, wrong }))
    }

    fn headers(&self) -> Result<HeaderMap, TraceSettingsError> {
        let mut headers = HeaderMap::new();
        let Some((name, list)) = self.of_traces("HEADERS") else {
            return Ok(headers);
        };
        for (number, (key, value)) in (1..).zip(pairs(&name, &list)?) {
            let wrong = |wrong| TraceSettingsError::List {
                name: name.clone(),
                number,
                wrong,
            };
            let key = HeaderName::try_from(key).map_err(|_bad| wrong("has an invalid header name"))?;
            let value = HeaderValue::try_from(value);
            let mut value = value.map_err(|_bad| wrong("has an invalid header value"))?;
            value.set_sensitive(true);
            headers.append(key, value);
        }
        Ok(headers)
    }

    fn timeout(&self) -> Result<Duration, TraceSettingsError> {
        let Some((name, value)) = self.of_traces("TIMEOUT") else {
            return Ok(TIMEOUT);
        };
        match value.parse() {
            Ok(millis) if millis > 0 => Ok(Duration::from_millis(millis)),
            _ => Err(TraceSettingsError::Timeout { name, value }),
        }
    }

    fn resource(&self) -> Result<Vec<(String, String)>, TraceSettingsError> {
        let name = "OTEL_RESOURCE_ATTRIBUTES";
        let list = self.read(name).unwrap_or_default();
        let mut resource = pairs(name, &list)?;
        let service = self.read("OTEL_SERVICE_NAME");
        let named = resource.iter().any(|(key, _)| key == SERVICE);
        if service.is_some() || !named {
            resource.retain(|(key, _)| key != SERVICE);
            let service = service.unwrap_or_else(|| "scupper".to_owned());
            resource.insert(0, (SERVICE.to_owned(), service));
        }
        if resource.iter().all(|(key, _)| key != "service.version") {
            let version = env!("CARGO_PKG_VERSION").to_owned();
            resource.push(("service.version".to_owned(), version));
        }
        Ok(resource)
    }

    /// Rejects features of OpenTelemetry that Scupper does not support: the operator would rely on a setting that is
    /// silently ignored.
    fn check_rest(&self, seen: ProblemSink<'_>) {
        for (what, fix) in [
            ("COMPRESSION", "leave it out, or set it to none"),
            ("CLIENT_KEY", "leave it out; headers can carry a token"),
            ("CLIENT_CERTIFICATE", "leave it out; headers can carry a token"),
        ] {
            let Some((name, value)) = self.of_traces(what) else {
                continue;
            };
            if value != "none" {
                seen(TraceSettingsError::NotOffered { name, value, fix });
            }
        }
    }
}

/// Parses a URL and appends a path.
fn endpoint(text: &str, path: &str) -> Result<Uri, &'static str> {
    let uri: Uri = text.parse().map_err(|_bad| "is not a valid URL")?;
    let mut parts = uri.into_parts();
    match parts.scheme.as_ref().map(|scheme| scheme.as_str()) {
        Some("http" | "https") => {}
        Some(_) => return Err("has another scheme than http or https"),
        None => return Err("does not begin with http:// or https://"),
    }
    let authority = parts.authority.as_ref();
    let authority = authority.ok_or("names no host")?;
    if authority.host().is_empty() {
        return Err("names no host");
    }
    if authority.as_str().contains('@') {
        return Err("contains a user, which belongs into OTEL_EXPORTER_OTLP_HEADERS");
    }
    let before = parts.path_and_query.as_ref().map_or("", PathAndQuery::path);
    let whole = match before.trim_end_matches('/') {
        "" if path.is_empty() => "/".to_owned(),
        _ if path.is_empty() => before.to_owned(),
        before => format!("{before}{path}"),
    };
    parts.path_and_query = Some(whole.parse().map_err(|_bad| "has no path that works")?);
    Uri::from_parts(parts).map_err(|_bad| "is not a valid URL")
}

/// Parses `key=value,key=value`, percent-encoded.
fn pairs(name: &str, list: &str) -> Result<Vec<(String, String)>, TraceSettingsError> {
    let entries = list.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    let pairs = entries.zip(1..).map(|(entry, number)| {
        let wrong = |wrong| TraceSettingsError::List {
            name: name.to_owned(),
            number,
            wrong,
        };
        let (key, value) = entry.split_once('=').ok_or_else(|| wrong("has no ="))?;
        let decoded = percent_decode_str(value.trim()).decode_utf8();
        let value = decoded.map_err(|_bad| wrong("is no UTF-8"))?.into_owned();
        match key.trim() {
            "" => Err(wrong("has no key")),
            key => Ok((key.to_owned(), value)),
        }
    });
    pairs.collect()
}

impl TraceSettings {
    /// A hint at the usual mistake, if the settings look like one.
    pub(super) fn hint(&self) -> &'static str {
        match (self.protocol, self.endpoint.port_u16()) {
            (Protocol::Http, Some(4317)) => {
                " (4317 is usually gRPC: set OTEL_EXPORTER_OTLP_PROTOCOL=grpc, or take port 4318)"
            }
            (Protocol::Grpc, Some(4318)) => {
                " (4318 is usually HTTP: set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf, or take port 4317)"
            }
            _ => "",
        }
    }
}

impl fmt::Display for TraceSettings {
    /// Prints the destination, for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = match self.protocol {
            Protocol::Grpc => "grpc",
            Protocol::Http => "http/protobuf",
        };
        write!(f, "{} ({protocol})", self.endpoint)
    }
}

#[cfg(test)]
#[path = "settings/tests.rs"]
mod tests;
