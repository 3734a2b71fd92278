//! Which addresses a policy may reach. It checks every address that an address can stand for: IPv6 has many ways to
//! write an IPv4 address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use scupper_policy_spec::Networks;
use thiserror::Error;

/// Why an address is refused.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(super) enum Refusal {
    /// A loopback address; the operator can grant it.
    #[error("it is a loopback address; the grant would need networks: [loopback]")]
    Loopback,
    /// A private address; the operator can grant it.
    #[error("it is a private address; the grant would need networks: [private]")]
    Private,
    /// A metadata service: clouds serve credentials there.
    #[error("it is a metadata service: metadata addresses are never allowed")]
    Metadata,
    #[error("it is a link-local address: those are never allowed")]
    LinkLocal,
    #[error("it is a multicast or broadcast address")]
    Multicast,
    #[error("it is not the address of a host")]
    Unspecified,
    #[error("it is reserved")]
    Reserved,
    /// A tunnel: the packet would go to another address than the one shown.
    #[error("it is a tunnel to an IPv4 address")]
    Tunnel,
}

/// Whether the address may be reached with these networks granted.
pub(super) fn check(address: IpAddr, networks: Networks) -> Result<(), Refusal> {
    match check_address(address) {
        Ok(()) => Ok(()),
        Err(Refusal::Loopback) if networks.loopback => Ok(()),
        Err(Refusal::Private) if networks.private => Ok(()),
        Err(refusal) => Err(refusal),
    }
}

fn check_address(address: IpAddr) -> Result<(), Refusal> {
    match address {
        IpAddr::V4(address) => judge_v4(address),
        IpAddr::V6(address) => judge_v6(address),
    }
}

fn judge_v4(address: Ipv4Addr) -> Result<(), Refusal> {
    match address.octets() {
        [0, ..] => Err(Refusal::Unspecified),
        [127, ..] => Err(Refusal::Loopback),
        // Of most clouds; of Alibaba, Oracle and Azure.
        [169, 254, 169, 254] | [100, 100, 100, 200] | [192, 0, 0, 192] | [168, 63, 129, 16] => {
            Err(Refusal::Metadata)
        }
        [169, 254, ..] => Err(Refusal::LinkLocal),
        // 100.64.0.0/10 is for carriers and the pod networks of some clouds; 198.18.0.0/15 for laboratories.
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] | [198, 18..=19, ..] => {
            Err(Refusal::Private)
        }
        // For protocols, documentation, and relays to IPv6.
        [192, 0, 0 | 2, _] | [198, 51, 100, _] | [203, 0, 113, _] | [192, 88, 99, _] => {
            Err(Refusal::Reserved)
        }
        [224..=239, ..] | [255, 255, 255, 255] => Err(Refusal::Multicast),
        [240..=255, ..] => Err(Refusal::Reserved),
        _ => Ok(()),
    }
}

fn judge_v6(address: Ipv6Addr) -> Result<(), Refusal> {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Err(Refusal::Unspecified),
        [0, 0, 0, 0, 0, 0, 0, 1] => Err(Refusal::Loopback),
        // The same host as the IPv4 address: the kernel connects to that one.
        [0, 0, 0, 0, 0, 0xffff, high, low] => judge_v4(embedded(high, low)),
        // In networks without IPv4, names of IPv4 hosts resolve to such addresses (NAT64, well-known prefix).
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => judge_v4(embedded(high, low)),
        // Compatible and translated addresses; NAT64 with a prefix of unknown length; Teredo; 6to4.
        [0, ..] | [0x64, 0xff9b, ..] | [0x2001, 0, ..] | [0x2002, ..] => Err(Refusal::Tunnel),
        // ISATAP carries the address in the interface identifier.
        [.., 0 | 0x200, 0x5efe, _, _] => Err(Refusal::Tunnel),
        // AWS (with its other services for the node) and Google.
        [0xfd00, 0xec2, ..] | [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254] => Err(Refusal::Metadata),
        // Unique local addresses, and their predecessor site-local.
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => Err(Refusal::Private),
        [0xfe80..=0xfebf, ..] => Err(Refusal::LinkLocal),
        [0xff00..=0xffff, ..] => Err(Refusal::Multicast),
        // For protocols (2001::/23) and documentation.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Err(Refusal::Reserved),
        // All global unicast addresses allocated so far.
        [0x2000..=0x3fff, ..] => Ok(()),
        _ => Err(Refusal::Reserved),
    }
}

fn embedded(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits((u32::from(high) << 16) | u32::from(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Networks = Networks {
        loopback: false,
        private: false,
    };
    const ALL: Networks = Networks {
        loopback: true,
        private: true,
    };

    fn judged(text: &str, networks: Networks) -> Result<(), Refusal> {
        check(text.parse().unwrap(), networks)
    }

    #[test]
    fn public_addresses_are_reached() {
        for text in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2a00:1450:4001:81b::200e",
            "2001:200::1",
            "::ffff:1.1.1.1",
            "64:ff9b::1.1.1.1",
        ] {
            assert_eq!(judged(text, NONE), Ok(()), "{text}");
        }
    }

    #[test]
    fn private_and_loopback_addresses_are_granted_each_for_itself() {
        let private = [
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "198.18.0.1",
            "fc00::1",
            "fdff::1",
            "fec0::1",
            "::ffff:10.0.0.1",
            "64:ff9b::192.168.0.1",
        ];
        let loopback = [
            "127.0.0.1",
            "127.255.255.254",
            "::1",
            "::ffff:127.0.0.1",
            "64:ff9b::127.0.0.1",
        ];
        for (texts, refusal) in [
            (&private[..], Refusal::Private),
            (&loopback[..], Refusal::Loopback),
        ] {
            for text in texts {
                assert_eq!(judged(text, NONE), Err(refusal), "{text}");
                assert_eq!(judged(text, ALL), Ok(()), "{text}");
                let other = Networks {
                    loopback: refusal == Refusal::Private,
                    private: refusal == Refusal::Loopback,
                };
                assert_eq!(judged(text, other), Err(refusal), "{text}");
            }
        }
    }

    #[test]
    fn some_addresses_can_never_be_granted() {
        for (text, refusal) in [
            ("169.254.169.254", Refusal::Metadata),
            ("::ffff:169.254.169.254", Refusal::Metadata),
            ("::ffff:a9fe:a9fe", Refusal::Metadata),
            ("64:ff9b::169.254.169.254", Refusal::Metadata),
            ("100.100.100.200", Refusal::Metadata),
            ("192.0.0.192", Refusal::Metadata),
            ("168.63.129.16", Refusal::Metadata),
            ("fd00:ec2::254", Refusal::Metadata),
            ("fd00:ec2::23", Refusal::Metadata),
            ("fd20:ce::254", Refusal::Metadata),
            ("169.254.170.2", Refusal::LinkLocal),
            ("fe80::1", Refusal::LinkLocal),
            ("febf::1", Refusal::LinkLocal),
            ("0.0.0.0", Refusal::Unspecified),
            ("0.1.2.3", Refusal::Unspecified),
            ("::", Refusal::Unspecified),
            ("::ffff:0.0.0.0", Refusal::Unspecified),
            ("224.0.0.1", Refusal::Multicast),
            ("255.255.255.255", Refusal::Multicast),
            ("ff02::1", Refusal::Multicast),
            ("240.0.0.1", Refusal::Reserved),
            ("192.0.2.1", Refusal::Reserved),
            ("203.0.113.7", Refusal::Reserved),
            ("192.88.99.1", Refusal::Reserved),
            ("2001:db8::1", Refusal::Reserved),
            ("2001:10::1", Refusal::Reserved),
            ("3fff::1", Refusal::Reserved),
            ("100::1", Refusal::Reserved),
            ("5f00::1", Refusal::Reserved),
            ("4000::1", Refusal::Reserved),
            ("::127.0.0.1", Refusal::Tunnel),
            ("::ffff:0:127.0.0.1", Refusal::Tunnel),
            ("64:ff9b:1::10.0.0.1", Refusal::Tunnel),
            ("2001:0:5ef5:79fb::1", Refusal::Tunnel),
            ("2002:7f00:1::1", Refusal::Tunnel),
            ("2606:4700::5efe:7f00:1", Refusal::Tunnel),
            ("2606:4700::200:5efe:a00:1", Refusal::Tunnel),
        ] {
            assert_eq!(judged(text, ALL), Err(refusal), "{text}");
        }
    }
}
