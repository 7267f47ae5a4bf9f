//! Network addresses: family (2 or 3, as on the wire), bits of the network, address bytes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address with the size of its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inet {
    pub v6: bool,
    pub bits: u8,
    /// The first 4 count for IPv4; the others are 0.
    pub address: [u8; 16],
}

const FAMILY_V4: u8 = 2;
const FAMILY_V6: u8 = 3;

/// One host. An IPv4 address in IPv6, as a socket for both has it, is the IPv4 address.
impl From<IpAddr> for Inet {
    fn from(host: IpAddr) -> Inet {
        let mut address = [0; 16];
        match host.to_canonical() {
            IpAddr::V4(v4) => {
                address[..4].copy_from_slice(&v4.octets());
                Inet { v6: false, bits: 32, address }
            }
            IpAddr::V6(v6) => Inet { v6: true, bits: 128, address: v6.octets() },
        }
    }
}

impl Inet {
    pub fn size(&self) -> usize {
        if self.v6 { 16 } else { 4 }
    }

    pub fn bits_max(&self) -> u8 {
        if self.v6 { 128 } else { 32 }
    }

    pub fn store(&self) -> Vec<u8> {
        let mut out = vec![if self.v6 { FAMILY_V6 } else { FAMILY_V4 }, self.bits];
        out.extend_from_slice(&self.address[..self.size()]);
        out
    }

    /// Reads the stored form; damaged bytes read as 0.0.0.0.
    pub fn load(stored: &[u8]) -> Inet {
        let v6 = stored.first() == Some(&FAMILY_V6);
        let mut address = [0; 16];
        for (to, from) in address.iter_mut().zip(stored.iter().skip(2)) {
            *to = *from;
        }
        let bits = stored.get(1).copied().unwrap_or(0).min(if v6 { 128 } else { 32 });
        Inet { v6, bits, address }
    }

    /// Reads text; `network`: as cidr, where octets and the size may be missing.
    pub fn parse(text: &str, network: bool) -> Option<Inet> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => {
                let valid = (1..=3).contains(&bits.len()) && bits.bytes().all(|c| c.is_ascii_digit());
                (address, Some(bits.parse::<u8>().ok().filter(|_| valid)?))
            }
            None => (text, None),
        };
        let mut bytes = [0; 16];
        if address.contains(':') {
            bytes = address.parse::<Ipv6Addr>().ok()?.octets();
            let bits = bits.unwrap_or(128);
            return (bits <= 128).then_some(Inet { v6: true, bits, address: bytes });
        }
        let octets: Vec<u8> = address.split('.').map(octet).collect::<Option<_>>()?;
        // An address may lack octets that its network does not reach.
        let is_whole = |bits: u8| octets.len() == 4 || octets.len() >= usize::from(bits / 8);
        if octets.len() > 4 || (!network && !bits.map_or(octets.len() == 4, is_whole)) {
            return None;
        }
        bytes[..octets.len()].copy_from_slice(&octets);
        let bits = bits.unwrap_or_else(|| if octets.len() == 4 { 32 } else { class_bits(&octets) });
        (bits <= 32).then_some(Inet { v6: false, bits, address: bytes })
    }

    /// Appends the address without its size.
    pub fn write_address(&self, out: &mut Vec<u8>) {
        let dotted = |at: usize| {
            let [a, b, c, d] = [0, 1, 2, 3].map(|i| self.address[at + i]);
            Ipv4Addr::new(a, b, c, d).to_string()
        };
        let text = match self.v6 {
            false => dotted(0),
            // IPv4 in IPv6, as long as more than the last two bytes are set.
            true if self.address[..12] == [0; 12] && self.address[12..14] != [0; 2] => format!("::{}", dotted(12)),
            true => Ipv6Addr::from(self.address).to_string(),
        };
        out.extend_from_slice(text.as_bytes());
    }

    /// Appends the address; its size unless it is a single host's and `always` is false.
    pub fn write(&self, always: bool, out: &mut Vec<u8>) {
        self.write_address(out);
        if always || self.bits < self.bits_max() {
            out.extend_from_slice(format!("/{}", self.bits).as_bytes());
        }
    }

    /// The address as a number, leftmost byte highest.
    pub fn number(&self) -> u128 {
        let all = u128::from_be_bytes(self.address);
        if self.v6 { all } else { all >> 96 }
    }

    /// The same network size with another address; `None` when it is too large for the family.
    pub fn with_number(&self, number: u128) -> Option<Inet> {
        if !self.v6 && number > u128::from(u32::MAX) {
            return None;
        }
        let shifted = if self.v6 { number } else { number << 96 };
        Some(Inet { address: shifted.to_be_bytes(), ..*self })
    }

    /// Ones where the network part is.
    pub fn mask(&self) -> u128 {
        let host = u32::from(self.bits_max() - self.bits);
        let all = if self.v6 { u128::MAX } else { u128::from(u32::MAX) };
        all.checked_shl(host).unwrap_or(0) & all
    }

    /// The address of the network.
    pub fn network(&self) -> Inet {
        self.with_number(self.number() & self.mask()).unwrap_or(*self)
    }

    /// Whether the network of `inner` lies in the network of `self`, or is the same.
    pub fn contains(&self, inner: &Inet) -> bool {
        self.v6 == inner.v6 && self.bits <= inner.bits && inner.number() & self.mask() == self.number() & self.mask()
    }
}

fn octet(text: &str) -> Option<u8> {
    let valid = (1..=3).contains(&text.len()) && text.bytes().all(|c| c.is_ascii_digit());
    text.parse().ok().filter(|_| valid)
}

/// The size that the class of an abbreviated address implies, at least its written octets.
fn class_bits(octets: &[u8]) -> u8 {
    let class = match octets.first() {
        Some(240..) => 32,
        Some(192..=223) => 24,
        Some(128..=191) => 16,
        _ => 8,
    };
    match class.max(octets.len() as u8 * 8) {
        // The multicast block as a whole.
        8 if octets.first() == Some(&224) => 4,
        bits => bits,
    }
}

/// Appends a byte string with the order of networks: by family, network, size, address.
pub fn sort_key(stored: &[u8], out: &mut Vec<u8>) {
    let inet = Inet::load(stored);
    out.push(u8::from(inet.v6));
    out.extend_from_slice(&inet.network().number().to_be_bytes());
    out.push(inet.bits);
    out.extend_from_slice(&inet.number().to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(text: &str, network: bool) -> Option<String> {
        let inet = Inet::parse(text, network)?;
        assert_eq!(Inet::load(&inet.store()), inet);
        let mut out = Vec::new();
        inet.write(network, &mut out);
        String::from_utf8(out).ok()
    }

    #[test]
    fn addresses_in_both_families() {
        assert_eq!(show("192.168.1.5/24", false).as_deref(), Some("192.168.1.5/24"));
        assert_eq!(show("192.168.1.5", false).as_deref(), Some("192.168.1.5"));
        assert_eq!(show("10", true).as_deref(), Some("10.0.0.0/8"));
        assert_eq!(show("192.168.1", true).as_deref(), Some("192.168.1.0/24"));
        assert_eq!(show("2001:DB8::/32", true).as_deref(), Some("2001:db8::/32"));
        assert_eq!(show("224", true).as_deref(), Some("224.0.0.0/4"));
        assert_eq!(show("::1.2.3.4", false).as_deref(), Some("::1.2.3.4"));
        assert_eq!(show("::1", false).as_deref(), Some("::1"));
        assert_eq!(show("1.2.3", false), None);
        assert_eq!(show("1.2.3.4/33", false), None);
    }

    #[test]
    fn networks_contain() {
        let inet = |text: &str| Inet::parse(text, true).expect(text);
        assert!(inet("10.0.0.0/8").contains(&inet("10.1.0.0/16")));
        assert!(!inet("10.1.0.0/16").contains(&inet("10.0.0.0/8")));
        assert!(inet("0.0.0.0/0").contains(&inet("1.2.3.4/32")));
        assert!(!inet("::/0").contains(&inet("1.2.3.4/32")));
    }
}
