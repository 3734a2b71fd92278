//! Valid and invalid OpenTelemetry variables.

use super::*;

fn of(flag: Option<&str>, env: &[(&str, &str)]) -> Result<Option<TraceSettings>, Vec<TraceSettingsError>> {
    let var = |name: &str| {
        let said = env.iter().find(|(key, _)| *key == name);
        said.map(|(_, value)| (*value).to_owned())
    };
    trace_settings(flag, var)
}

/// The errors, as text.
fn wrong(env: &[(&str, &str)]) -> Vec<String> {
    of(None, env)
        .unwrap_err()
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn traces_are_sent_nowhere_unless_an_endpoint_is_configured() {
    assert_eq!(of(None, &[]), Ok(None));
    let rest = [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "nonsense"),
        ("OTEL_SERVICE_NAME", "a"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", ""),
    ];
    assert_eq!(of(None, &rest), Ok(None));
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:4318");
    for off in [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none")] {
        assert_eq!(of(Some("http://b:4318"), &[endpoint, off]), Ok(None), "{off:?}");
    }
}

#[test]
fn the_flag_and_the_variable_of_traces_win() {
    let general = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://general:4318/otlp/");
    let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://own:4318/spans");
    let grpc = ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    let http = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf");
    let flag = Some("http://flag:4318");
    for (flag, env, meant) in [
        (
            None,
            &[general][..],
            "http://general:4318/otlp/v1/traces (http/protobuf)",
        ),
        (None, &[general, own], "http://own:4318/spans (http/protobuf)"),
        (
            flag,
            &[general, own],
            "http://flag:4318/v1/traces (http/protobuf)",
        ),
        (flag, &[grpc], "http://flag:4318/ (grpc)"),
        (flag, &[grpc, http], "http://flag:4318/v1/traces (http/protobuf)"),
    ] {
        let settings = of(flag, env).unwrap().unwrap();
        assert_eq!(settings.to_string(), meant);
    }
}

#[test]
fn the_resource_and_the_connection_come_from_the_environment() {
    let settings = of(
        None,
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://a"),
            (
                "OTEL_EXPORTER_OTLP_HEADERS",
                "authorization=Bearer%20s%2Cx, x-tenant=team",
            ),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "2500"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "none"),
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem"),
            (
                "OTEL_RESOURCE_ATTRIBUTES",
                "k8s.cluster.name=eu%2D1,service.name=other",
            ),
            ("OTEL_SERVICE_NAME", "drains"),
        ],
    );
    let settings = settings.unwrap().unwrap();
    assert_eq!(settings.headers["authorization"], "Bearer s,x");
    assert_eq!(settings.headers["x-tenant"], "team");
    assert!(!format!("{settings:?}").contains("Bearer"), "{settings:?}");
    assert_eq!(settings.timeout, Duration::from_millis(2500));
    assert_eq!(settings.certificates, Some("/ca.pem".into()));
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(
        settings.resource,
        [
            pair("service.name", "drains"),
            pair("k8s.cluster.name", "eu-1"),
            pair("service.version", env!("CARGO_PKG_VERSION")),
        ]
    );
}

#[test]
fn all_problems_are_reported_at_once_without_secrets() {
    let reported = wrong(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://user:hunter2@a:4318"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=b,hunter2"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s"),
        ("OTEL_RESOURCE_ATTRIBUTES", "=b"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
    ]);
    let expected = [
        "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: \"http/json\" is not supported; set it to http/protobuf or to grpc",
        "OTEL_EXPORTER_OTLP_ENDPOINT: contains a user, which belongs into OTEL_EXPORTER_OTLP_HEADERS; it must be a \
         URL such as http://127.0.0.1:4318",
        "OTEL_EXPORTER_OTLP_HEADERS: entry 2 has no =; write key=value,key=value and percent-encode special \
         characters",
        "OTEL_EXPORTER_OTLP_TIMEOUT: \"10s\" is not a time; write a number of milliseconds, at least 1",
        "OTEL_RESOURCE_ATTRIBUTES: entry 1 has no key; write key=value,key=value and percent-encode special \
         characters",
        "OTEL_EXPORTER_OTLP_COMPRESSION: \"gzip\" is not supported; leave it out, or set it to none",
    ];
    assert_eq!(reported, expected);
}

#[test]
fn an_endpoint_is_a_url() {
    for bad in [
        "localhost:4318",
        "4318",
        "grpc://a:4317",
        "http://",
        "a b",
        "/v1/traces",
        "http://:4318",
    ] {
        let reported = wrong(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", bad)]);
        assert_eq!(reported.len(), 1, "{bad}: {reported:?}");
        assert!(
            reported[0].starts_with("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "),
            "{reported:?}"
        );
        assert!(
            reported[0].ends_with("it must be a URL such as http://127.0.0.1:4318"),
            "{reported:?}"
        );
    }
    let jaeger = wrong(&[("OTEL_TRACES_EXPORTER", "jaeger")]);
    assert_eq!(jaeger.len(), 1, "{jaeger:?}");
}

#[test]
fn the_usual_mistake_with_ports_is_named() {
    let http = of(Some("http://a:4317"), &[]).unwrap().unwrap();
    assert!(
        http.hint().contains("OTEL_EXPORTER_OTLP_PROTOCOL=grpc"),
        "{}",
        http.hint()
    );
    let right = of(Some("http://a:4317"), &[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]);
    assert_eq!(right.unwrap().unwrap().hint(), "");
}
