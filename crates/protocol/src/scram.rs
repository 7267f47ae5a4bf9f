//! SCRAM-SHA-256 (RFC 5802, RFC 7677), the server's side, and the verifiers that roles store.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, Mac};
use melba_types::{DbError, Result, SqlState, err};
use sha2::{Digest, Sha256};

type Key = [u8; 32];

/// What a role stores instead of its password, in PostgreSQL's form:
/// `SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey`.
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
    /// A password that SASLprep (RFC 4013) prohibits is taken as it is, as PostgreSQL and libpq do.
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

/// An exchange with one client.
pub struct Exchange {
    verifier: Verifier,
    /// The role has no usable password: the exchange goes on as if, and fails at its end, so that it tells nothing.
    doomed: bool,
    nonce: String,
    client_first_bare: String,
    server_first: String,
    header: String,
}

impl Exchange {
    /// `verifier`: the role's, if it has one. `nonce`: random bytes.
    pub fn new(verifier: Option<Verifier>, nonce: &[u8; 18]) -> Exchange {
        let doomed = verifier.is_none();
        let verifier = verifier.unwrap_or_else(|| Verifier::from_password("", &nonce[..16], 4096));
        Exchange {
            verifier,
            doomed,
            nonce: BASE64.encode(nonce),
            client_first_bare: String::new(),
            server_first: String::new(),
            header: String::new(),
        }
    }

    /// Answers client-first-message with server-first-message.
    pub fn first(&mut self, message: &str) -> Result<String> {
        let malformed = |detail: &str| malformed(detail);
        let (flag, rest) = message.split_once(',').ok_or_else(|| malformed("The message is not a client-first-message."))?;
        match flag {
            "n" | "y" => {}
            _ => return Err(malformed("The client asks for channel binding, which needs TLS.")),
        }
        let (authzid, bare) = rest.split_once(',').ok_or_else(|| malformed("The message has no authorization field."))?;
        if !authzid.is_empty() {
            return Err(err!(FEATURE_NOT_SUPPORTED, "client uses authorization identity, but it is not supported"));
        }
        self.header = format!("{flag},{authzid},");
        let client_nonce = bare
            .split(',')
            .find_map(|field| field.strip_prefix("r="))
            .filter(|nonce| !nonce.is_empty())
            .ok_or_else(|| malformed("The message has no nonce."))?;
        if bare.starts_with("m=") {
            return Err(err!(FEATURE_NOT_SUPPORTED, "client requires an unsupported SCRAM extension"));
        }
        self.client_first_bare = bare.to_owned();
        self.nonce = format!("{client_nonce}{}", self.nonce);
        self.server_first = format!("r={},s={},i={}", self.nonce, BASE64.encode(&self.verifier.salt), self.verifier.iterations);
        Ok(self.server_first.clone())
    }

    /// Checks client-final-message; server-final-message when the client knows the password, `None` when it does not.
    pub fn last(&self, message: &str) -> Result<Option<String>> {
        let (without_proof, proof) = message.rsplit_once(",p=").ok_or_else(|| malformed("The message has no proof."))?;
        let mut fields = without_proof.split(',');
        let (binding, nonce) = (fields.next().unwrap_or(""), fields.next().unwrap_or(""));
        if binding.strip_prefix("c=") != Some(&BASE64.encode(&self.header)) {
            return Err(malformed("The channel binding does not match."));
        }
        if nonce.strip_prefix("r=") != Some(&self.nonce) {
            return Err(malformed("The nonce does not match."));
        }
        let proof: Key = BASE64
            .decode(proof)
            .ok()
            .and_then(|p| p.try_into().ok())
            .ok_or_else(|| malformed("The proof is not 32 bytes in base64."))?;
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
        let mut exchange = Exchange::new(Some(verifier.clone()), &[0; 18]);
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
        assert!(Exchange::new(None, &[0; 18]).first("p=tls-unique,,n=,r=x").is_err());
    }

    /// Examples of RFC 4013: a soft hyphen is mapped to nothing, a ligature to its letters, a prohibited text stays as it is.
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
            assert!(Exchange::new(None, &[0; 18]).first(text).is_err(), "{text}");
            assert!(Exchange::new(None, &[0; 18]).last(text).is_err(), "{text}");
        }
    }
}
