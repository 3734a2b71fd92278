//! The choice of the proxy, by the cases of Go's own tests and by common settings.

use super::*;

fn chosen(server: &str, environment: &[(&str, &str)]) -> Result<Option<String>, ProxyUrlError> {
    let env = |name: &str| {
        let found = environment.iter().find(|(known, _)| *known == name);
        found.map(|(_, text)| (*text).to_owned())
    };
    let found = choose(None, &server.parse().unwrap(), env)?;
    Ok(found.map(|proxy| proxy.to_string()))
}

#[test]
fn the_variable_of_the_servers_scheme_counts() {
    let environment = [("HTTPS_PROXY", "http://secure:3128"), ("http_proxy", "plain")];
    let through = |server| chosen(server, &environment).unwrap();
    assert_eq!(
        through("https://api.example.com:6443").as_deref(),
        Some("http://secure:3128")
    );
    assert_eq!(
        through("http://api.example.com").as_deref(),
        Some("http://plain:80")
    );
    for server in [
        "https://localhost:6443",
        "https://127.0.0.1:6443",
        "https://[::1]:6443",
    ] {
        assert_eq!(through(server), None, "{server}");
    }
    assert_eq!(
        chosen("https://a", &[("HTTPS_PROXY", ""), ("https_proxy", "b")]),
        Ok(Some("http://b:80".to_owned()))
    );
    assert_eq!(chosen("https://a", &[("HTTP_PROXY", "http://b")]), Ok(None));
}

#[test]
fn no_proxy_is_read_as_kubectl_reads_it() {
    for (list, server, bypassed) in [
        ("*", "https://a.b", true),
        ("a.b", "https://a.b:6443", true),
        ("A.B", "https://a.b.", true),
        ("b", "https://a.b", true),
        (".b", "https://a.b", true),
        (".a.b", "https://a.b", false),
        ("*.b", "https://a.b", true),
        ("*.b", "https://b", false),
        ("a.b", "https://xa.b", false),
        ("a.b:6443", "https://a.b:6443", true),
        ("a.b:443", "https://a.b:6443", false),
        ("a.b:443", "https://a.b", true),
        ("x, 10.0.0.0/8 ,y", "https://10.96.0.1", true),
        ("10.0.0.0/8", "https://11.96.0.1", false),
        ("10.0.0.0/8", "https://ten.example", false),
        ("192.0.2.7", "https://192.0.2.7:6443", true),
        ("192.0.2.7:443", "https://192.0.2.7:6443", false),
        ("2001:db8::/32", "https://[2001:db8::1]:6443", true),
        ("[2001:db8::1]:6443", "https://[2001:db8::1]:6443", true),
        ("", "https://a.b", false),
        (",", "https://a.b", false),
    ] {
        let environment = [("HTTPS_PROXY", "http://proxy:3128"), ("NO_PROXY", list)];
        let found = chosen(server, &environment).unwrap();
        assert_eq!(found.is_none(), bypassed, "NO_PROXY={list} and {server}");
    }
}

#[test]
fn the_kubeconfigs_proxy_takes_precedence_over_the_environment() {
    let env = |name: &str| (name == "NO_PROXY").then(|| "*".to_owned());
    let server = "https://localhost:6443".parse().unwrap();
    let found = choose(Some("socks5://user:p%40ss@proxy"), &server, env)
        .unwrap()
        .unwrap();
    assert_eq!(found.to_string(), "socks5://proxy:1080");
    assert_eq!(found.protocol, Protocol::Socks5);
    assert_eq!(found.login(), Some(&("user".to_owned(), "p@ss".to_owned())));
    let found = choose(Some("https://user:p%40ss@proxy"), &server, env)
        .unwrap()
        .unwrap();
    assert_eq!(format!("{found:?}"), "Proxy(https://proxy:443)", "no password");
    assert_eq!(found.authorization().unwrap(), "Basic dXNlcjpwQHNz");
    assert!(choose(Some("socks5h://proxy"), &server, env).is_ok());
}

#[test]
fn an_invalid_proxy_names_the_variable_and_hides_the_password() {
    for text in [
        "ftp://proxy",
        "http://",
        "socks4://proxy",
        "http://a b",
        "http://user:secret@:x",
    ] {
        let error = chosen("https://a", &[("HTTPS_PROXY", text)]).unwrap_err();
        assert!(error.to_string().starts_with("HTTPS_PROXY is "), "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
