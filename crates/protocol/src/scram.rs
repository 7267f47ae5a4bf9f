//! SCRAM-SHA-256 (RFC 5802, RFC 7677), the server's side, and the verifiers that roles store.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, Mac};
use melba_types::{DbError, Result, SqlState, err};
use sha2::{Digest, Sha256};

type Key = [u8; 32];

/// A role's stored form of its password, in PostgreSQL's form: `SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey`.
#[derive(Clone, Debug, PartialEq)]
pub struct Verifier {
    iterations: u32,
    salt: Vec<u8>,
    stored_key: Key,
    server_key: Key,
}

fn hmac(key: &[u8], data: &[u8]) -> Key {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(data);
    mac.finalize().into_bytes().into()
}

impl Verifier {
    /// A password that SASLprep (RFC 4013) prohibits is used unchanged, as in PostgreSQL and libpq.
    pub fn from_password(password: &str, salt: &[u8], iterations: u32) -> Verifier {
        let prepared = stringprep::saslprep(password).unwrap_or(Cow::Borrowed(password));
        let salted = pbkdf2::pbkdf2_array::<Hmac<Sha256>, 32>(prepared.as_bytes(), salt, iterations)
            .expect("HMAC takes keys of any length");
        let stored_key = Sha256::digest(hmac(&salted, b"Client Key")).into();
        Verifier { iterations, salt: salt.to_vec(), stored_key, server_key: hmac(&salted, b"Server Key") }
    }

    /// Whether it is this password's.
    pub fn is_of(&self, password: &str) -> bool {
        let other = Verifier::from_password(password, &self.salt, self.iterations);
        let pairs = self.stored_key.iter().zip(other.stored_key);
        pairs.fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
    }

    /// The apparent verifier of a role without a usable password: its salt is always the same, and cannot be told from a random
    /// one without the cluster's secret. Its keys match no password, and computing them takes no time.
    pub fn mock(role: &str, secret: &[u8], iterations: u32) -> Verifier {
        let digest: Key = Sha256::new().chain_update(role).chain_update(secret).finalize().into();
        Verifier { iterations, salt: digest[..16].to_vec(), stored_key: [0; 32], server_key: [0; 32] }
    }

    pub fn parse(text: &str) -> Option<Verifier> {
        let (parameters, keys) = text.strip_prefix("SCRAM-SHA-256$")?.split_once('$')?;
        let (iterations, salt) = parameters.split_once(':')?;
        let (stored, server) = keys.split_once(':')?;
        Some(Verifier {
            iterations: iterations.parse().ok()?,
            salt: BASE64.decode(salt).ok()?,
            stored_key: BASE64.decode(stored).ok()?.try_into().ok()?,
            server_key: BASE64.decode(server).ok()?.try_into().ok()?,
        })
    }
}

impl std::fmt::Display for Verifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [salt, stored, server] = [&self.salt[..], &self.stored_key, &self.server_key].map(|b| BASE64.encode(b));
        write!(f, "SCRAM-SHA-256${}:{salt}${stored}:{server}", self.iterations)
    }
}

/// How the exchange is bound to its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelBinding {
    /// There is no TLS.
    Unavailable,
    /// SCRAM-SHA-256 over TLS: the client does not bind, but could.
    Declined,
    /// SCRAM-SHA-256-PLUS: the hash of the server's certificate that `tls-server-end-point` (RFC 5929) requires.
    ServerEndPoint(Vec<u8>),
}

const SERVER_END_POINT: &str = "tls-server-end-point";

/// An exchange with one client.
pub struct Exchange {
    verifier: Verifier,
    /// The role has no usable password: the exchange continues as usual, and fails at its end, so that it reveals nothing.
    doomed: bool,
    binding: ChannelBinding,
    nonce: String,
    client_first_bare: String,
    server_first: String,
    header: String,
}

impl Exchange {
    /// `nonce`: random bytes.
    pub fn new(verifier: Verifier, nonce: &[u8; 18], binding: ChannelBinding) -> Exchange {
        Exchange {
            verifier,
            doomed: false,
            binding,
            nonce: BASE64.encode(nonce),
            client_first_bare: String::new(),
            server_first: String::new(),
            header: String::new(),
        }
    }

    /// One that fails at its end, with `Verifier::mock`.
    pub fn doomed(verifier: Verifier, nonce: &[u8; 18], binding: ChannelBinding) -> Exchange {
        Exchange { doomed: true, ..Exchange::new(verifier, nonce, binding) }
    }

    /// Answers client-first-message with server-first-message.
    pub fn first(&mut self, message: &str) -> Result<String> {
        if message.is_empty() {
            return Err(malformed("The message is empty."));
        }
        let (flag, rest) = message.split_once(',').ok_or_else(|| malformed("The message is not a client-first-message."))?;
        self.check_binding_flag(flag)?;
        let (authzid, bare) = rest.split_once(',').ok_or_else(|| malformed("The message has no authorization field."))?;
        if authzid.starts_with('a') {
            return Err(err!(FEATURE_NOT_SUPPORTED, "client uses authorization identity, but it is not supported"));
        }
        if !authzid.is_empty() {
            return Err(malformed("Unexpected attribute in client-first-message."));
        }
        self.header = format!("{flag},,");
        if bare.starts_with('m') {
            return Err(err!(FEATURE_NOT_SUPPORTED, "client requires an unsupported SCRAM extension"));
        }
        // The name is ignored: the startup packet has it.
        let mut fields = bare.split(',');
        fields.next().filter(|name| name.starts_with("n=")).ok_or_else(|| malformed("Expected attribute \"n\"."))?;
        let client_nonce = fields.next().and_then(|field| field.strip_prefix("r=")).filter(|nonce| !nonce.is_empty());
        let client_nonce = client_nonce.ok_or_else(|| malformed("Expected attribute \"r\"."))?;
        if !client_nonce.bytes().all(|b| matches!(b, 0x21..=0x7e)) {
            return Err(err!(PROTOCOL_VIOLATION, "non-printable characters in SCRAM nonce"));
        }
        self.client_first_bare = bare.to_owned();
        self.nonce = format!("{client_nonce}{}", self.nonce);
        self.server_first = format!("r={},s={},i={}", self.nonce, BASE64.encode(&self.verifier.salt), self.verifier.iterations);
        Ok(self.server_first.clone())
    }

    /// gs2-cbind-flag, beside the mechanism that the client has chosen. A client that supports binding but believes that the
    /// server does not was deceived by an attacker.
    fn check_binding_flag(&self, flag: &str) -> Result<()> {
        let binds = matches!(self.binding, ChannelBinding::ServerEndPoint(_));
        match flag {
            "n" | "y" if binds => Err(malformed(
                "The client selected SCRAM-SHA-256-PLUS, but the SCRAM message does not include channel binding data.",
            )),
            "y" if self.binding == ChannelBinding::Declined => {
                let error = err!(INVALID_AUTHORIZATION_SPECIFICATION, "SCRAM channel binding negotiation error");
                Err(error.detail(
                    "The client supports SCRAM channel binding but thinks the server does not.  However, this server does support \
                     channel binding.",
                ))
            }
            "n" | "y" => Ok(()),
            _ => match flag.strip_prefix("p=") {
                None => Err(malformed(&format!("Unexpected channel-binding flag \"{}\".", flag.escape_default()))),
                Some(_) if !binds => Err(malformed(
                    "The client selected SCRAM-SHA-256 without channel binding, but the SCRAM message includes channel binding data.",
                )),
                Some(SERVER_END_POINT) => Ok(()),
                Some(other) => {
                    let other = other.escape_default();
                    Err(err!(PROTOCOL_VIOLATION, "unsupported SCRAM channel-binding type \"{other}\""))
                }
            },
        }
    }

    /// Checks client-final-message; server-final-message when the client knows the password, `None` when it does not.
    pub fn last(&self, message: &str) -> Result<Option<String>> {
        let (without_proof, proof) = message.rsplit_once(",p=").ok_or_else(|| malformed("The message has no proof."))?;
        let mut fields = without_proof.split(',');
        let (binding, nonce) = (fields.next().unwrap_or(""), fields.next().unwrap_or(""));
        let mut bound = self.header.clone().into_bytes();
        if let ChannelBinding::ServerEndPoint(hash) = &self.binding {
            bound.extend_from_slice(hash);
        }
        if binding.strip_prefix("c=") != Some(&BASE64.encode(&bound)) {
            return Err(match self.binding {
                ChannelBinding::ServerEndPoint(_) => {
                    err!(INVALID_AUTHORIZATION_SPECIFICATION, "SCRAM channel binding check failed")
                }
                _ => err!(PROTOCOL_VIOLATION, "unexpected SCRAM channel-binding attribute in client-final-message"),
            });
        }
        if nonce.strip_prefix("r=") != Some(&self.nonce) {
            return Err(err!(PROTOCOL_VIOLATION, "invalid SCRAM response").detail("Nonce does not match."));
        }
        let proof: Key = BASE64
            .decode(proof)
            .ok()
            .and_then(|p| p.try_into().ok())
            .ok_or_else(|| malformed("Malformed proof in client-final-message."))?;
        let auth_message = format!("{},{},{without_proof}", self.client_first_bare, self.server_first);
        let signature = hmac(&self.verifier.stored_key, auth_message.as_bytes());
        let client_key: Vec<u8> = proof.iter().zip(signature).map(|(a, b)| a ^ b).collect();
        let known: Key = Sha256::digest(&client_key).into();
        let difference = known.iter().zip(self.verifier.stored_key).fold(0, |d, (a, b)| d | (a ^ b));
        if difference != 0 || self.doomed {
            return Ok(None);
        }
        Ok(Some(format!("v={}", BASE64.encode(hmac(&self.verifier.server_key, auth_message.as_bytes())))))
    }
}

fn malformed(detail: &str) -> DbError {
    DbError::new(SqlState::PROTOCOL_VIOLATION, "malformed SCRAM message").detail(detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exchange of RFC 7677, section 3.
    #[test]
    fn the_rfc_s_exchange() {
        let salt = BASE64.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let verifier = Verifier::from_password("pencil", &salt, 4096);
        assert_eq!(Verifier::parse(&verifier.to_string()), Some(verifier.clone()));
        let mut exchange = Exchange::new(verifier.clone(), &[0; 18], ChannelBinding::Unavailable);
        exchange.nonce = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0".to_owned();
        assert_eq!(
            exchange.first("n,,n=user,r=rOprNGfwEbeRWgbNEkqO").unwrap(),
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
        );
        let last = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                    p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        assert_eq!(exchange.last(last).unwrap().unwrap(), "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
        assert!(exchange.last(&last.replace("p=dHz", "p=dHy")).unwrap().is_none());
        assert!(exchange.last(&last.replace("c=biws", "c=eSws")).is_err());
        let mut doomed = Exchange::doomed(verifier, &[0; 18], ChannelBinding::Unavailable);
        doomed.nonce = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0".to_owned();
        doomed.first("n,,n=user,r=rOprNGfwEbeRWgbNEkqO").unwrap();
        assert_eq!(doomed.last(last), Ok(None), "even by the right password");
    }

    #[test]
    fn mocked_salts_are_stable_and_differ_by_role_and_secret() {
        let mock = |role: &str, secret: &[u8]| Verifier::mock(role, secret, 4096);
        assert_eq!(mock("ann", b"one"), mock("ann", b"one"));
        assert_ne!(mock("ann", b"one").salt, mock("bob", b"one").salt);
        assert_ne!(mock("ann", b"one").salt, mock("ann", b"two").salt);
        assert_eq!(mock("ann", b"one").salt.len(), 16);
    }

    /// The channel binding flags that a client's first message may have, by the server's offer.
    #[test]
    fn clients_cannot_be_talked_out_of_channel_binding() {
        let bound = || ChannelBinding::ServerEndPoint(vec![1, 2, 3]);
        for (binding, flag, expected) in [
            (ChannelBinding::Unavailable, "n", None),
            (ChannelBinding::Unavailable, "y", None),
            (ChannelBinding::Unavailable, "p=tls-server-end-point", Some(SqlState::PROTOCOL_VIOLATION)),
            (ChannelBinding::Declined, "n", None),
            (ChannelBinding::Declined, "y", Some(SqlState::INVALID_AUTHORIZATION_SPECIFICATION)),
            (ChannelBinding::Declined, "p=tls-server-end-point", Some(SqlState::PROTOCOL_VIOLATION)),
            (bound(), "n", Some(SqlState::PROTOCOL_VIOLATION)),
            (bound(), "y", Some(SqlState::PROTOCOL_VIOLATION)),
            (bound(), "p=tls-unique", Some(SqlState::PROTOCOL_VIOLATION)),
            (bound(), "p=tls-server-end-point", None),
        ] {
            let mut exchange = Exchange::new(Verifier::mock("", b"", 1), &[0; 18], binding.clone());
            let got = exchange.first(&format!("{flag},,n=,r=x")).err().map(|e| e.sqlstate());
            assert_eq!(got, expected, "{flag} {binding:?}");
        }
    }

    #[test]
    fn the_channel_binding_is_part_of_the_proof() {
        let verifier = Verifier::from_password("pencil", b"salt", 1);
        let mut exchange = Exchange::new(verifier, &[0; 18], ChannelBinding::ServerEndPoint(vec![7; 32]));
        let first = exchange.first("p=tls-server-end-point,,n=,r=x").unwrap();
        let nonce = first.split(',').next().unwrap().strip_prefix("r=").unwrap().to_owned();
        let last = |hash: &[u8]| {
            let bound = BASE64.encode([b"p=tls-server-end-point,,", hash].concat());
            exchange.last(&format!("c={bound},r={nonce},p={}", BASE64.encode([0; 32])))
        };
        assert_eq!(last(&[7; 32]), Ok(None), "bound well, but the proof is wrong");
        let error = last(&[8; 32]).unwrap_err();
        assert_eq!((error.message(), error.sqlstate().as_str()), ("SCRAM channel binding check failed", "28000"));
    }

    /// Examples of RFC 4013: a soft hyphen is mapped to nothing, a ligature to its letters, a prohibited text is unchanged.
    #[test]
    fn passwords_are_prepared() {
        let of = |password: &str| Verifier::from_password(password, &[3; 16], 1);
        assert_eq!(of("I\u{AD}X"), of("IX"));
        assert_eq!(of("\u{FB01}"), of("fi"));
        assert_ne!(of("a\u{7}"), of("a"));
        assert!(of("IX").is_of("I\u{AD}X") && !of("IX").is_of("ix"));
    }

    #[test]
    fn nonsense_is_an_error() {
        for text in ["", "n", "n,", "n,,", "n,,n=", "n,,r=", "n,a=x,r=y", "m=x"] {
            let mut exchange = Exchange::new(Verifier::mock("", b"", 1), &[0; 18], ChannelBinding::Unavailable);
            assert!(exchange.last(text).is_err() && exchange.first(text).is_err(), "{text}");
        }
    }
}
