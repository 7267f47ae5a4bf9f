//! The content of a certificate: names, serial number, and the hash that binds SCRAM to it.

use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use super::der::{Der, INTEGER, OBJECT_IDENTIFIER, SEQUENCE, SET, dotted, explicit};

/// A certificate whose signature was already checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Certificate {
    /// `None`: there is none that could be a role's name.
    pub common_name: Option<String>,
    /// By RFC 2253, as clientname=DN compares it.
    pub distinguished_name: String,
    /// `/CN=...`, as pg_stat_ssl shows them.
    pub subject: String,
    pub issuer: String,
    /// In decimal.
    pub serial: String,
}

/// An attribute of a name: its type, and its value.
struct Attribute {
    oid: String,
    value: String,
}

impl Certificate {
    /// Of DER; `None` when it is malformed.
    pub fn parse(bytes: &[u8]) -> Option<Certificate> {
        let mut signed = Der(bytes).enter(SEQUENCE)?.enter(SEQUENCE)?;
        // The version, which the first had not.
        let _ = signed.enter_if(explicit(0));
        let serial = decimal(signed.expect(INTEGER)?);
        let _algorithm = signed.enter(SEQUENCE)?;
        let issuer = name(signed.enter(SEQUENCE)?)?;
        let _validity = signed.enter(SEQUENCE)?;
        let subject = name(signed.enter(SEQUENCE)?)?;
        let common = subject.iter().flatten().rfind(|attribute| attribute.oid == "2.5.4.3");
        let common_name = common.map(|attribute| attribute.value.clone());
        Some(Certificate {
            // A name that C would cut at a zero byte is rejected.
            common_name: common_name.filter(|name| !name.is_empty() && !name.contains('\0')),
            distinguished_name: rfc2253(&subject),
            subject: slashed(&subject),
            issuer: slashed(&issuer),
            serial,
        })
    }
}

/// The hash of tls-server-end-point (RFC 5929): by the algorithm of the certificate's signature, by SHA-256 where that is MD5 or SHA-1.
/// `None` where the algorithm has no hash.
pub(super) fn end_point_hash(certificate: &[u8]) -> Option<Vec<u8>> {
    let mut parts = Der(certificate).enter(SEQUENCE)?;
    parts.expect(SEQUENCE)?;
    let mut algorithm = parts.enter(SEQUENCE)?;
    let oid = dotted(algorithm.expect(OBJECT_IDENTIFIER)?)?;
    let hash = match oid.as_str() {
        // RSASSA-PSS has its hash as a parameter, SHA-1 by default.
        "1.2.840.113549.1.1.10" => match algorithm.enter(SEQUENCE)?.enter_if(explicit(0)) {
            Some(mut field) => dotted(field.enter(SEQUENCE)?.expect(OBJECT_IDENTIFIER)?)?,
            None => "1.3.14.3.2.26".to_owned(),
        },
        _ => oid,
    };
    Some(match hash.as_str() {
        // RSA and ECDSA with SHA-512, -384, -224, and those hashes themselves.
        "1.2.840.113549.1.1.13" | "1.2.840.10045.4.3.4" | "2.16.840.1.101.3.4.2.3" => Sha512::digest(certificate).to_vec(),
        "1.2.840.113549.1.1.12" | "1.2.840.10045.4.3.3" | "2.16.840.1.101.3.4.2.2" => Sha384::digest(certificate).to_vec(),
        "1.2.840.113549.1.1.14" | "1.2.840.10045.4.3.1" | "2.16.840.1.101.3.4.2.4" => Sha224::digest(certificate).to_vec(),
        // With SHA-256, SHA-1 and MD5.
        "1.2.840.113549.1.1.11"
        | "1.2.840.10045.4.3.2"
        | "2.16.840.1.101.3.4.2.1"
        | "1.2.840.113549.1.1.5"
        | "1.2.840.113549.1.1.4"
        | "1.2.840.10045.4.1"
        | "1.3.14.3.2.26" => Sha256::digest(certificate).to_vec(),
        _ => return None,
    })
}

/// The parts of a name, in their order; a part may have several attributes.
fn name(mut der: Der<'_>) -> Option<Vec<Vec<Attribute>>> {
    let mut parts = Vec::new();
    while !der.is_empty() {
        let mut set = der.enter(SET)?;
        let mut part = Vec::new();
        while !set.is_empty() {
            let mut attribute = set.enter(SEQUENCE)?;
            let oid = dotted(attribute.expect(OBJECT_IDENTIFIER)?)?;
            let value = attribute.next()?;
            part.push(Attribute { oid, value: text(value.tag, value.content)? });
        }
        parts.push(part);
    }
    Some(parts)
}

/// A value of one of the string types.
fn text(tag: u8, content: &[u8]) -> Option<String> {
    const UTF8: u8 = 0x0c;
    const NUMERIC: u8 = 0x12;
    const PRINTABLE: u8 = 0x13;
    const IA5: u8 = 0x16;
    const VISIBLE: u8 = 0x1a;
    const UNIVERSAL: u8 = 0x1c;
    const BMP: u8 = 0x1e;
    match tag {
        UTF8 | NUMERIC | PRINTABLE | IA5 | VISIBLE => Some(std::str::from_utf8(content).ok()?.to_owned()),
        BMP => {
            let (units, []) = content.as_chunks::<2>() else { return None };
            let units: Vec<u16> = units.iter().map(|unit| u16::from_be_bytes(*unit)).collect();
            String::from_utf16(&units).ok()
        }
        UNIVERSAL => {
            let (characters, []) = content.as_chunks::<4>() else { return None };
            characters.iter().map(|c| char::from_u32(u32::from_be_bytes(*c))).collect()
        }
        // T61 and other obsolete encodings, as Latin-1.
        _ => Some(content.iter().map(|byte| char::from(*byte)).collect()),
    }
}

/// The short name of an attribute's type, or its number.
fn short(oid: &str) -> &str {
    const NAMES: [(&str, &str); 16] = [
        ("2.5.4.3", "CN"),
        ("2.5.4.4", "SN"),
        ("2.5.4.5", "serialNumber"),
        ("2.5.4.6", "C"),
        ("2.5.4.7", "L"),
        ("2.5.4.8", "ST"),
        ("2.5.4.9", "street"),
        ("2.5.4.10", "O"),
        ("2.5.4.11", "OU"),
        ("2.5.4.12", "title"),
        ("2.5.4.42", "GN"),
        ("2.5.4.46", "dnQualifier"),
        ("2.5.4.97", "organizationIdentifier"),
        ("0.9.2342.19200300.100.1.1", "UID"),
        ("0.9.2342.19200300.100.1.25", "DC"),
        ("1.2.840.113549.1.9.1", "emailAddress"),
    ];
    NAMES.iter().find(|(number, _)| *number == oid).map_or(oid, |(_, name)| name)
}

fn slashed(name: &[Vec<Attribute>]) -> String {
    let parts = name.iter().flatten().map(|attribute| format!("/{}={}", short(&attribute.oid), attribute.value));
    parts.collect()
}

/// The last part first, with commas between parts and a plus sign within them.
fn rfc2253(name: &[Vec<Attribute>]) -> String {
    let attribute = |attribute: &Attribute| format!("{}={}", short(&attribute.oid), escaped(&attribute.value));
    let part = |part: &Vec<Attribute>| part.iter().rev().map(attribute).collect::<Vec<_>>().join("+");
    name.iter().rev().map(part).collect::<Vec<_>>().join(",")
}

fn escaped(value: &str) -> String {
    let mut out = String::new();
    let last = value.len().saturating_sub(1);
    for (at, byte) in value.bytes().enumerate() {
        let is_special = matches!(byte, b',' | b'+' | b'"' | b'\\' | b'<' | b'>' | b';')
            || at == 0 && matches!(byte, b'#' | b' ')
            || at == last && byte == b' ';
        match byte {
            _ if is_special => out.extend(['\\', char::from(byte)]),
            0x20..=0x7e => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\{byte:02X}")),
        }
    }
    out
}

/// A number of any length.
fn decimal(bytes: &[u8]) -> String {
    // Groups of nine digits, the lowest first.
    const GROUP: u64 = 1_000_000_000;
    let mut groups = vec![0u64];
    for byte in bytes {
        let mut carry = u64::from(*byte);
        for group in &mut groups {
            let value = *group * 256 + carry;
            *group = value % GROUP;
            carry = value / GROUP;
        }
        if carry > 0 {
            groups.push(carry);
        }
    }
    let mut groups = groups.into_iter().rev();
    let first = groups.next().unwrap_or(0).to_string();
    groups.fold(first, |text, group| text + &format!("{group:09}"))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SerialNumber};

    use super::*;

    fn made(names: &[(DnType, &str)]) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        names.iter().for_each(|(kind, value)| params.distinguished_name.push(kind.clone(), *value));
        params.serial_number = Some(SerialNumber::from_slice(&[1, 0, 0, 0, 0, 0, 0, 0, 5]));
        let key = KeyPair::generate().expect("a key");
        params.self_signed(&key).expect("a certificate").der().to_vec()
    }

    #[test]
    fn names_are_written_in_two_forms() {
        let names = [(DnType::CountryName, "DE"), (DnType::OrganizationName, "Doe, Sons"), (DnType::CommonName, "änne")];
        let certificate = Certificate::parse(&made(&names)).expect("a certificate");
        let expected = Certificate {
            common_name: Some("änne".to_owned()),
            distinguished_name: "CN=\\C3\\A4nne,O=Doe\\, Sons,C=DE".to_owned(),
            subject: "/C=DE/O=Doe, Sons/CN=änne".to_owned(),
            issuer: "/C=DE/O=Doe, Sons/CN=änne".to_owned(),
            serial: "18446744073709551621".to_owned(),
        };
        assert_eq!(certificate, expected);
    }

    #[test]
    fn names_that_c_would_cut_are_nobody_s() {
        let of = |name: &str| Certificate::parse(&made(&[(DnType::CommonName, name)])).expect("a certificate").common_name;
        assert_eq!((of("ann\0x"), of("ann")), (None, Some("ann".to_owned())));
        assert_eq!(Certificate::parse(&made(&[])).expect("a certificate").common_name, None);
    }

    #[test]
    fn every_beginning_of_a_certificate_is_malformed() {
        let bytes = made(&[(DnType::CommonName, "ann")]);
        for length in 0..bytes.len() {
            assert_eq!(Certificate::parse(&bytes[..length]), None);
            assert_eq!(end_point_hash(&bytes[..length]), None);
        }
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x55;
            let _ = (Certificate::parse(&flipped), end_point_hash(&flipped));
        }
        assert_eq!(end_point_hash(&bytes), Some(Sha256::digest(&bytes).to_vec()), "ECDSA with SHA-256");
    }
}
