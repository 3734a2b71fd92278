//! The addresses at which metrics are served.

use std::future::ready;
use std::path::Path;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

/// The IP addresses at which the manifests have the driver serve.
fn of_manifests() -> Vec<SocketAddr> {
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    let files = ["base/daemonset.yaml", "helm/scupper/templates/daemonset.yaml"];
    let addresses = files.map(|file| {
        let text = std::fs::read_to_string(deploy.join(file)).unwrap();
        let (_, rest) = text.split_once("- --metrics-address=").unwrap();
        rest.lines().next().unwrap().parse().unwrap()
    });
    addresses.to_vec()
}

/// The kubelet probes a pod at its own address, which is of either family.
#[tokio::test]
async fn probes_reach_the_address_of_the_manifests_by_ipv4_and_ipv6() {
    for address in of_manifests() {
        let free = SocketAddr::new(address.ip(), 0);
        let served = serve_metrics(free, Metrics::new(), Health::default()).await;
        let (bound, serving) = served.unwrap();
        let serving = tokio::spawn(serving);
        for from in [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()] {
            let to = SocketAddr::new(from, bound.port());
            let mut stream = TcpStream::connect(to)
                .await
                .unwrap_or_else(|error| panic!("{address} at {to}: {error}"));
            let request = b"GET /healthz HTTP/1.1\r\nhost: it\r\nconnection: close\r\n\r\n";
            stream.write_all(request).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with("HTTP/1.1 "), "{to}: {answer}");
        }
        serving.abort();
    }
}

#[tokio::test]
async fn a_kernel_without_ipv6_serves_ipv4() {
    let every = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 9090));
    for (code, address, expected) in [
        // EAFNOSUPPORT, EADDRNOTAVAIL, EADDRINUSE
        (97, every, Ok("0.0.0.0:9090")),
        (99, every, Ok("0.0.0.0:9090")),
        (98, every, Err(98)),
        (99, SocketAddr::from((Ipv6Addr::LOCALHOST, 9090)), Err(99)),
    ] {
        let bind = |asked: SocketAddr| {
            ready(match asked {
                SocketAddr::V4(_) => Ok(asked.to_string()),
                SocketAddr::V6(_) => Err(io::Error::from_raw_os_error(code)),
            })
        };
        let bound = listen(address, bind).await;
        let bound = bound.map_err(|error| error.raw_os_error().unwrap());
        assert_eq!(bound, expected.map(str::to_owned), "{code}");
    }
}
