//! Secrets in transit: inserted for their granted targets, and removed from every response.

use std::path::PathBuf;

use scupper_policy_spec::SecretSource;

use super::rig::{Rig, secret_file};
use super::server::{Server, ok, response};

fn keystone(request: &str) -> Vec<super::server::Act> {
    if request.starts_with("POST /v3/auth/tokens") {
        response(
            "201 Created\r\nX-Subject-Token: gAAAAtoken-of-keystone",
            "{\"token\": {}}",
        )
    } else {
        ok(request)
    }
}

fn captured(origin: &str) -> SecretSource {
    SecretSource::Captured {
        origin: origin.to_owned(),
        header: "X-Subject-Token".to_owned(),
    }
}

#[tokio::test]
async fn a_password_goes_into_a_body_and_a_captured_token_to_another_origin() {
    let (keystone, nova) = (Server::start(keystone).await, Server::echo().await);
    let from = format!("http://keystone.test:{}", keystone.port);
    let to = format!("http://nova.test:{}", nova.port);
    let loaded = Rig::new()
        .origin(&from)
        .origin(&to)
        .file("password", &secret_file("hunter\"2\\ü\n"), &[&from])
        .secret("token", captured(&from), &[&to])
        .load()
        .await;
    let reported = loaded
        .step(&[
            &format!("POST {from}/v3/auth/tokens"),
            "body {\"auth\": {\"user\": \"me\", \"password\": \"\"}}",
            "field /auth/password password",
            "capture x-subject-token token",
            "send",
        ])
        .await;
    assert_eq!(reported, "201 [] [token] {\"token\": {}}");
    let request = keystone.only();
    assert!(
        request.ends_with("\r\n\r\n{\"auth\":{\"password\":\"hunter\\\"2\\\\ü\",\"user\":\"me\"}}"),
        "{request}"
    );
    // In the next step, and at another origin.
    let reported = loaded
        .step(&[
            &format!("GET {to}/servers"),
            "secret-header X-Auth-Token token",
            "send",
        ])
        .await;
    assert!(nova.only().contains("x-auth-token: gAAAAtoken-of-keystone\r\n"));
    assert!(reported.contains("x-auth-token: [secret token]"), "{reported}");
    assert!(!reported.contains("gAAAA"), "{reported}");
}

#[tokio::test]
async fn a_header_that_is_a_secret_is_never_shown_whether_it_is_captured_or_not() {
    let server = Server::start(keystone).await;
    let origin = format!("http://keystone.test:{}", server.port);
    let loaded = Rig::new()
        .origin(&origin)
        .secret("token", captured(&origin), &[&origin])
        .load()
        .await;
    let reported = loaded
        .step(&[
            &format!("POST {origin}/v3/auth/tokens"),
            "send",
            &format!("GET {origin}/"),
            "secret-header X-Auth-Token token",
            "send",
        ])
        .await;
    assert_eq!(
        reported,
        "201 [] [] {\"token\": {}}; no secret: `token`: it was not captured yet"
    );
}

#[tokio::test]
async fn a_secret_is_sent_to_no_other_target() {
    let server = Server::start(keystone).await;
    let (a, b) = (
        format!("http://a.test:{}", server.port),
        format!("http://b.test:{}", server.port),
    );
    let loaded = Rig::new()
        .origin(&a)
        .origin(&b)
        .file("password", &secret_file("hunter2"), &[&a])
        .secret("token", captured(&a), &[&a])
        .load()
        .await;
    for lines in [
        &["secret-header X-Password password"][..],
        &["bearer password"],
        &["body {\"p\": \"\"}", "field /p password"],
        &["capture X-Subject-Token token"],
    ] {
        let url = format!("POST {b}/v3/auth/tokens");
        let script: Vec<&str> = [url.as_str()]
            .into_iter()
            .chain(lines.iter().copied())
            .chain(["send"])
            .collect();
        let reported = loaded.step(&script).await;
        assert!(reported.starts_with("not granted: the secret `"), "{reported}");
        assert!(reported.contains(&b), "{reported}");
    }
    for (line, wrong) in [
        (
            "capture X-Other token",
            "not granted: the secret `token` is not captured from the header `X-Other`",
        ),
        (
            "capture X-Subject-Token password",
            "not granted: the secret `password` is not captured",
        ),
        ("bearer nothing", "not granted: there is no secret `nothing`"),
        (
            "capture X-Subject-Token nothing",
            "not granted: there is no secret `nothing`",
        ),
    ] {
        let reported = loaded
            .step(&[&format!("POST {a}/v3/auth/tokens"), line, "send"])
            .await;
        assert!(reported.starts_with(wrong), "{reported}");
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_secret_file_is_reread_and_its_old_content_is_still_redacted() {
    let server = Server::start(|_| ok("old-password and new-password")).await;
    let origin = format!("http://a.test:{}", server.port);
    let file = secret_file("old-password");
    let loaded = Rig::new()
        .origin(&origin)
        .file("password", &file, &[&origin])
        .load()
        .await;
    let (get, send) = (format!("GET {origin}/"), ["bearer password", "send"]);
    let script = [get.as_str(), send[0], send[1]];
    assert_eq!(
        loaded.step(&script).await,
        "200 [] [] [secret password] and new-password"
    );
    std::fs::write(&file, "new-password\n").unwrap();
    assert_eq!(
        loaded.step(&script).await,
        "200 [] [] [secret password] and [secret password]"
    );
    let seen = server.requests();
    assert!(
        seen[0].contains("authorization: Bearer old-password\r\n"),
        "{seen:?}"
    );
    assert!(
        seen[1].contains("authorization: Bearer new-password\r\n"),
        "{seen:?}"
    );
    std::fs::remove_file(&file).unwrap();
    let reported = loaded.step(&script).await;
    assert!(
        reported.starts_with("no secret: `password`: cannot read /"),
        "{reported}"
    );
}

#[tokio::test]
async fn a_file_that_holds_no_secret_is_refused() {
    let server = Server::echo().await;
    let origin = format!("http://a.test:{}", server.port);
    let file = secret_file("");
    let loaded = Rig::new()
        .origin(&origin)
        .file("password", &file, &[&origin])
        .file("directory", file.parent().unwrap(), &[&origin])
        .file("device", &PathBuf::from("/dev/zero"), &[&origin])
        .load()
        .await;
    let get = format!("GET {origin}/");
    for (bytes, wrong) in [
        (&b""[..], "it has 0 bytes"),
        (b"abc\n", "it has 3 bytes"),
        (&[b'x'; 65 * 1024], "it has 655"),
        (b"abc\xffdef", "it is not UTF-8"),
        (
            b"hunter\n2",
            "`password` has control characters, which no header can carry",
        ),
        (
            b"hunter\x002",
            "`password` has control characters, which no header can carry",
        ),
    ] {
        std::fs::write(&file, bytes).unwrap();
        let reported = loaded.step(&[&get, "bearer password", "send"]).await;
        assert!(
            reported.starts_with("no secret: ") && reported.contains(wrong),
            "{reported}"
        );
        assert!(!reported.contains("hunter"), "{reported}");
    }
    for name in ["directory", "device"] {
        let reported = loaded.step(&[&get, &format!("bearer {name}"), "send"]).await;
        assert!(reported.contains("is not a regular file"), "{reported}");
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_kubernetes_secret_is_read_from_the_cluster() {
    let server = Server::echo().await;
    let origin = format!("http://a.test:{}", server.port);
    let source = |key: &str| SecretSource::Kubernetes {
        namespace: "slurm".to_owned(),
        name: "auth".to_owned(),
        key: key.to_owned(),
    };
    let rig = Rig::new()
        .origin(&origin)
        .secret("token", source("token"), &[&origin])
        .secret("other", source("other"), &[&origin]);
    rig.cluster
        .secrets
        .lock()
        .unwrap()
        .insert("slurm/auth/token".to_owned(), "token-of-slurm".to_owned());
    let loaded = rig.load().await;
    let get = format!("GET {origin}/");
    let reported = loaded
        .step(&[&get, "secret-header X-SLURM-USER-TOKEN token", "send"])
        .await;
    assert!(server.only().contains("x-slurm-user-token: token-of-slurm\r\n"));
    assert!(
        reported.contains("x-slurm-user-token: [secret token]"),
        "{reported}"
    );
    let reported = loaded.step(&[&get, "bearer other", "send"]).await;
    assert_eq!(reported, "no secret: `other`: not found: secret");
}

#[tokio::test]
async fn each_node_has_its_own_captured_token() {
    let server = Server::start(|request| {
        let user = request.rsplit("\r\n").next().unwrap_or_default();
        if request.starts_with("POST") {
            response(&format!("201 Created\r\nX-Subject-Token: token-of-{user}"), "{}")
        } else {
            ok(request)
        }
    })
    .await;
    let origin = format!("http://keystone.test:{}", server.port);
    let loaded = Rig::new()
        .origin(&origin)
        .secret("token", captured(&origin), &[&origin])
        .load()
        .await;
    let post = format!("POST {origin}/v3/auth/tokens");
    for node in ["node-a", "node-b"] {
        let capture = "capture X-Subject-Token token";
        let reported = loaded
            .step_on(node, &[&post, &format!("body {node}"), capture, "send"])
            .await;
        assert_eq!(reported, "201 [] [token] {}");
    }
    let delete = format!("DELETE {origin}/v3/auth/tokens");
    let reported = loaded
        .step_on("node-a", &[&delete, "secret-header X-Auth-Token token", "send"])
        .await;
    // The answer is the request: no token is shown, neither its own nor another node's.
    assert!(reported.contains("[secret token]"), "{reported}");
    let sent = server.requests().pop().unwrap();
    assert!(
        sent.contains("token-of-node-a"),
        "it revokes the token of another node: {sent}"
    );
    let put = format!("PUT {origin}/");
    let other = [put.as_str(), "body token-of-node-b", "send"];
    let reported = loaded.step_on("node-a", &other).await;
    assert!(reported.contains("[secret token]"), "{reported}");
    let error = loaded
        .step_on("node-c", &[&format!("GET {origin}/"), "bearer token", "send"])
        .await;
    assert_eq!(error, "no secret: `token`: it was not captured yet");
}

#[tokio::test]
async fn a_captured_token_outlives_the_policy_that_captured_it() {
    let server = Server::start(keystone).await;
    let origin = format!("http://keystone.test:{}", server.port);
    let rig = Rig::new()
        .origin(&origin)
        .secret("token", captured(&origin), &[&origin]);
    let post = format!("POST {origin}/v3/auth/tokens");
    let reported = rig
        .load()
        .await
        .step(&[&post, "capture X-Subject-Token token", "send"])
        .await;
    assert_eq!(reported, "201 [] [token] {\"token\": {}}");
    let get = format!("GET {origin}/");
    let reported = rig.load().await.step(&[&get, "bearer token", "send"]).await;
    assert!(
        reported.contains("authorization: Bearer [secret token]"),
        "{reported}"
    );
    // Another policy has its own secrets.
    let mut other = rig;
    other.spec.name = "q".to_owned();
    let error = other
        .load()
        .await
        .step_as("q", &[&get, "bearer token", "send"])
        .await;
    assert_eq!(error, "no secret: `token`: it was not captured yet");
}
