//! Which addresses belong to the public internet.
//!
//! A server must not fetch for its callers what only it can reach: its own machine, its network, and what a cloud tells
//! its machines about themselves.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is one that anybody could reach.
pub(super) fn public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => public_v4(address),
        IpAddr::V6(address) => public_v6(address),
    }
}

/// Whether an address is one of the link, or one where a cloud tells its machines about themselves, with their keys. Those
/// are nobody's pages, on whatever network a server may fetch.
pub(super) fn never(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => never_v4(address),
        IpAddr::V6(address) => match address.segments() {
            // An address of the old kind within the new.
            [0, 0, 0, 0, 0, 0xffff, high, low]
            | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
            | [0x2002, high, low, ..] => never_v4(v4(high, low)),
            [0xfd00, 0xec2, ..] | [0xfd20, 0xce, ..] => true,
            [first, ..] => first & 0xffc0 == 0xfe80,
        },
    }
}

fn never_v4(address: Ipv4Addr) -> bool {
    matches!(address.octets(), [169, 254, ..] | [168, 63, 129, 16] | [100, 100, 100, 200] | [192, 0, 0, 192])
}

fn public_v4(address: Ipv4Addr) -> bool {
    let kept_back = match address.octets() {
        // This network, private networks and this machine.
        [0 | 10 | 127, ..] | [172, 16..=31, ..] | [192, 168, ..] => true,
        // Behind a provider's own translation, and the link.
        [100, 64..=127, ..] | [169, 254, ..] => true,
        // Protocol assignments, documentation, relays of 6to4, benchmarks.
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 18 | 19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => {
            true
        }
        // Many at once, and what is reserved.
        [224..=255, ..] => true,
        // What Azure tells its machines about themselves stands at a public address.
        [168, 63, 129, 16] => true,
        _ => false,
    };
    !kept_back
}

fn public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        // An address of the old kind within the new: mapped, or translated by a gateway.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            public_v4(v4(high, low))
        }
        // 6to4.
        [0x2002, high, low, ..] => public_v4(v4(high, low)),
        // Protocol assignments with Teredo among them, and documentation.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // An address of the old kind in the second half (ISATAP).
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low] if !public_v4(v4(high, low)) => false,
        // Everything else that is public begins so.
        [first, ..] => (0x2000..0x4000).contains(&first),
    }
}

fn v4(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_only_the_server_reaches_are_not_public() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.1",
            "100.100.100.200",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.0.1",
            "169.254.169.254",
            "169.254.170.2",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "168.63.129.16",
            "::",
            "::1",
            "::2",
            "::127.0.0.1",
            "::8.8.8.8",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:0:8.8.8.8",
            "64:ff9b::127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b::10.1.2.3",
            "64:ff9b:1::8.8.8.8",
            "100::1",
            "2001::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2001:2::1",
            "2001:10::1",
            "2001:20::1",
            "2001:db8::1",
            "2001:db8:ffff::",
            "2002:7f00:1::",
            "2002:a00:1::1",
            "2002:c0a8:101::",
            "2002:a9fe:a9fe::1",
            "3fff::1",
            "3fff:fff::1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fd20:ce::254",
            "fdff::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "ff02::1",
            "ff0e::1",
            "2606:4700::5efe:10.0.0.1",
            "2606:4700::200:5efe:127.0.0.1",
        ] {
            assert!(!public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn what_a_cloud_tells_its_machines_is_for_nobody() {
        for address in [
            "169.254.169.254",
            "169.254.170.2",
            "168.63.129.16",
            "100.100.100.200",
            "192.0.0.192",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "2002:a9fe:a9fe::1",
            "fd00:ec2::254",
            "fd20:ce::254",
            "fe80::1",
        ] {
            assert!(never(address.parse().unwrap()), "{address}");
        }
        for address in ["127.0.0.1", "10.0.0.1", "192.168.0.1", "100.64.0.1", "8.8.8.8", "::1", "fd00::1"] {
            assert!(!never(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn addresses_that_anybody_reaches_are_public() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.1",
            "100.63.255.255",
            "100.128.0.1",
            "126.0.0.1",
            "128.0.0.1",
            "169.253.1.1",
            "169.255.1.1",
            "172.15.255.255",
            "172.32.0.1",
            "192.0.1.1",
            "192.0.3.1",
            "192.167.1.1",
            "192.169.1.1",
            "198.17.1.1",
            "198.20.1.1",
            "203.0.112.1",
            "223.255.255.255",
            "168.63.129.17",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2002:808:808::1",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2606:4700:4700::1111",
            "2a00:1450:4001::1",
            "3fff:1000::1",
            "2606:4700::5efe:8.8.8.8",
        ] {
            assert!(public(address.parse().unwrap()), "{address}");
        }
    }
}
