//! [`Zone`]: which part of the world an IP address belongs to. This is the only list of such ranges.
//!
//! A server must not fetch for its callers what only it can reach: its own machine, its network, and what a cloud tells
//! its machines about themselves. The ranges are those of the IANA special-purpose registries (RFC 6890), and the
//! addresses where clouds keep credentials.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where an address is, from everybody's to nobody's. The order matters: what may go to one zone may go to those before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Zone {
    /// Anybody can reach it.
    Public,
    /// A private network, or one behind a provider's address translation.
    Private,
    /// This machine.
    Loopback,
    /// No host that could answer: documentation, benchmarks, multicast, and what is not assigned.
    Reserved,
    /// The link, and the addresses where a cloud tells its machines about themselves, with their keys.
    Metadata,
}

impl Zone {
    /// The zone of an address. An IPv4 address inside of an IPv6 address counts as itself.
    pub fn of(address: IpAddr) -> Zone {
        match address {
            IpAddr::V4(address) => v4(address),
            IpAddr::V6(address) => v6(address),
        }
    }
}

fn v4(address: Ipv4Addr) -> Zone {
    match address.octets() {
        // The link (AWS, Google, Azure and others), Azure's wire server, Alibaba, Oracle.
        [169, 254, ..] | [168, 63, 129, 16] | [100, 100, 100, 200] | [192, 0, 0, 192] => Zone::Metadata,
        [127, ..] => Zone::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => Zone::Private,
        // "This network", protocol assignments, documentation, 6to4 relays, benchmarks.
        [0, ..] | [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 18 | 19, ..] => Zone::Reserved,
        [198, 51, 100, _] | [203, 0, 113, _] => Zone::Reserved,
        // Multicast, future use, broadcast.
        [224..=255, ..] => Zone::Reserved,
        _ => Zone::Public,
    }
}

fn v6(address: Ipv6Addr) -> Zone {
    let within = |high: u16, low: u16| v4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Zone::Loopback,
        // IPv4 in IPv6: mapped, translated by NAT64, 6to4.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => within(high, low),
        [0x2002, high, low, ..] => within(high, low),
        // The same in forms that nobody should use any more, or that only a local network understands: never public.
        [0, 0, 0, 0, 0, 0, high, low] | [0, 0, 0, 0, 0xffff, 0, high, low] => {
            within(high, low).max(Zone::Reserved)
        }
        [0x64, 0xff9b, 1, .., high, low] => within(high, low).max(Zone::Reserved),
        // Teredo writes the IPv4 address of the client inverted.
        [0x2001, 0, .., high, low] => within(!high, !low).max(Zone::Reserved),
        // AWS and Google.
        [0xfd00, 0xec2, ..] | [0xfd20, 0xce, ..] => Zone::Metadata,
        [0xfe80..=0xfebf, ..] => Zone::Metadata,
        [0xfc00..=0xfdff, ..] => Zone::Private,
        // Protocol assignments, documentation.
        [0x2001, 1..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Zone::Reserved,
        // ISATAP has an IPv4 address in the second half.
        [0x2000..=0x3fff, _, _, _, 0 | 0x200, 0x5efe, high, low] => within(high, low),
        [0x2000..=0x3fff, ..] => Zone::Public,
        // Everything else is unassigned, local to a site in the old way, or multicast.
        _ => Zone::Reserved,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each range by its first and last address, and its neighbours by what is just outside.
    #[test]
    fn every_range_of_ipv4() {
        for (zone, addresses) in [
            (
                Zone::Public,
                "1.0.0.0 1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 \
                 168.63.129.15 168.63.129.17 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 \
                 192.0.1.0 192.0.3.0 192.88.98.255 192.88.100.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 \
                 198.51.99.255 198.51.101.0 203.0.112.255 203.0.114.0 223.255.255.255",
            ),
            (
                Zone::Private,
                "10.0.0.0 10.255.255.255 100.64.0.0 100.100.100.199 100.100.100.201 100.127.255.255 172.16.0.0 \
                 172.31.255.255 192.168.0.0 192.168.255.255",
            ),
            (Zone::Loopback, "127.0.0.0 127.0.0.1 127.255.255.255"),
            (
                Zone::Reserved,
                "0.0.0.0 0.255.255.255 192.0.0.0 192.0.0.191 192.0.0.193 192.0.0.255 192.0.2.0 192.0.2.255 192.88.99.0 \
                 192.88.99.255 198.18.0.0 198.19.255.255 198.51.100.0 198.51.100.255 203.0.113.0 203.0.113.255 \
                 224.0.0.0 239.255.255.255 240.0.0.0 255.255.255.254 255.255.255.255",
            ),
            (
                Zone::Metadata,
                "169.254.0.0 169.254.169.254 169.254.170.2 169.254.255.255 168.63.129.16 100.100.100.200 192.0.0.192",
            ),
        ] {
            for address in addresses.split_ascii_whitespace() {
                assert_eq!(Zone::of(address.parse().unwrap()), zone, "{address}");
            }
        }
    }

    #[test]
    fn every_range_of_ipv6() {
        for (zone, addresses) in [
            (
                Zone::Public,
                "2000::1 2001:200::1 2001:4860:4860::8888 2001:db7:ffff::1 2001:db9::1 2606:4700:4700::1111 \
                 2a00:1450:4001::1 3ffe:ffff::1 3fff:1000::1 3fff:ffff::1",
            ),
            (Zone::Private, "fc00::1 fcff:ffff::1 fd00::1 fd00:ec1::1 fd00:ec3::1 fd20:cd::1 fdff:ffff::1"),
            (Zone::Loopback, "::1"),
            (
                Zone::Reserved,
                ":: ::2 100::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001::1 2001:1::1 2001:2::1 2001:10::1 2001:20::1 \
                 2001:1ff:ffff::1 2001:db8::1 2001:db8:ffff:: 3fff::1 3fff:fff::1 4000::1 5f00::1 1fff::1 fbff::1 \
                 fe00::1 fec0::1 feff::1 ff02::1 ff0e::1 ffff::1",
            ),
            (Zone::Metadata, "fd00:ec2::254 fd00:ec2:ffff::1 fd20:ce::254 fe80::1 febf:ffff::1"),
        ] {
            for address in addresses.split_ascii_whitespace() {
                assert_eq!(Zone::of(address.parse().unwrap()), zone, "{address}");
            }
        }
    }

    #[test]
    fn ipv4_within_ipv6() {
        for (zone, v4) in [
            (Zone::Public, "8.8.8.8"),
            (Zone::Private, "10.1.2.3"),
            (Zone::Loopback, "127.0.0.1"),
            (Zone::Reserved, "203.0.113.9"),
            (Zone::Metadata, "169.254.169.254"),
            (Zone::Metadata, "168.63.129.16"),
        ] {
            let [a, b, c, d] = v4.parse::<Ipv4Addr>().unwrap().octets();
            let (high, low) = (u16::from(a) << 8 | u16::from(b), u16::from(c) << 8 | u16::from(d));
            let at = |text: String| Zone::of(text.parse().unwrap());
            // Forms that lead to the address itself.
            for text in [
                format!("::ffff:{v4}"),
                format!("64:ff9b::{v4}"),
                format!("2002:{high:x}:{low:x}::1"),
                format!("2606:4700::5efe:{v4}"),
                format!("2606:4700::200:5efe:{v4}"),
            ] {
                assert_eq!(at(text.clone()), zone, "{text}");
            }
            // Forms that are never public, and metadata if the address is.
            for text in [
                format!("::{v4}"),
                format!("::ffff:0:{v4}"),
                format!("64:ff9b:1::{v4}"),
                format!("2001:0:1:1::{:x}:{:x}", !high, !low),
            ] {
                assert_eq!(at(text.clone()), zone.max(Zone::Reserved), "{text}");
            }
        }
    }
}
