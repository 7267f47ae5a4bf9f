//! A line of pg_hba.conf: its clients, and how they authenticate. Errors are PostgreSQL 18's.

use std::net::IpAddr;
use std::path::PathBuf;

use super::file::FileLine;
use super::options;
use super::pattern;
use super::tokenizer::Token;

/// Kind of connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connections {
    Local,
    Host,
    HostSsl,
    HostNoSsl,
    /// There is no GSSAPI encryption here: such a rule matches nothing.
    HostGss,
    HostNoGss,
}

/// How a client authenticates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Reject,
    Trust,
    ScramSha256,
    /// By an MD5 hash where the role stores one, by SCRAM otherwise.
    Md5,
    Password,
    Cert,
    Peer,
    /// Of built-in rules alone: processes of the account that runs the server need no password, others authenticate by SCRAM.
    Owner,
}

/// Which addresses a rule is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    All,
    SameHost,
    SameNet,
    Network {
        address: IpAddr,
        mask: IpAddr,
    },
    /// A host name, or the end of one after a dot.
    Name(String),
}

/// The demands on a client certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientCert {
    /// Of one of our authorities.
    VerifyCa,
    /// And its name must be the role's.
    VerifyFull,
}

/// Which of a certificate's names is compared with the role's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ClientName {
    #[default]
    CommonName,
    DistinguishedName,
}

/// The options after the method.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MethodOptions {
    pub map: Option<String>,
    pub client_cert: Option<ClientCert>,
    pub client_name: ClientName,
}

#[derive(Clone, Debug)]
pub(crate) struct Rule {
    /// `None`: built in.
    pub file: Option<PathBuf>,
    pub line: usize,
    pub text: String,
    pub connections: Connections,
    pub(super) databases: Vec<Token>,
    pub(super) users: Vec<Token>,
    pub address: Address,
    pub method: Method,
    pub options: MethodOptions,
    /// Why it cannot match anything, which is no error.
    pub warning: Option<String>,
}

impl Connections {
    fn parse(word: &str) -> Option<Connections> {
        Some(match word {
            "local" => Connections::Local,
            "host" => Connections::Host,
            "hostssl" => Connections::HostSsl,
            "hostnossl" => Connections::HostNoSsl,
            "hostgssenc" => Connections::HostGss,
            "hostnogssenc" => Connections::HostNoGss,
            _ => return None,
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            Connections::Local => "local",
            Connections::Host => "host",
            Connections::HostSsl => "hostssl",
            Connections::HostNoSsl => "hostnossl",
            Connections::HostGss => "hostgssenc",
            Connections::HostNoGss => "hostnogssenc",
        }
    }
}

/// Methods of PostgreSQL that this server does not support.
const UNSUPPORTED: [&str; 8] = ["ident", "gss", "sspi", "pam", "bsd", "ldap", "radius", "oauth"];

impl Method {
    pub fn name(self) -> &'static str {
        match self {
            Method::Reject => "reject",
            Method::Trust => "trust",
            Method::ScramSha256 => "scram-sha-256",
            Method::Md5 => "md5",
            Method::Password => "password",
            Method::Cert => "cert",
            Method::Peer => "peer",
            Method::Owner => "owner",
        }
    }

    fn parse(word: &str, connections: Connections) -> Result<Method, String> {
        let method = match word {
            // As in PostgreSQL, where that was one method once.
            "ident" if connections == Connections::Local => Method::Peer,
            "reject" => Method::Reject,
            "trust" => Method::Trust,
            "scram-sha-256" => Method::ScramSha256,
            "md5" => Method::Md5,
            "password" => Method::Password,
            "cert" => Method::Cert,
            "peer" => Method::Peer,
            _ if UNSUPPORTED.contains(&word) => {
                return Err(format!("invalid authentication method \"{word}\": not supported by this build"));
            }
            _ => return Err(format!("invalid authentication method \"{word}\"")),
        };
        if method == Method::Peer && connections != Connections::Local {
            return Err("peer authentication is only supported on local sockets".to_owned());
        }
        if method == Method::Cert && connections != Connections::HostSsl {
            return Err("cert authentication is only supported on hostssl connections".to_owned());
        }
        Ok(method)
    }
}

/// The fields of a line that were not read yet.
struct Fields<'a>(std::slice::Iter<'a, Vec<Token>>);

impl<'a> Fields<'a> {
    fn next(&mut self, what: &str) -> Result<&'a [Token], String> {
        self.0.next().map(Vec::as_slice).ok_or_else(|| format!("end-of-line before {what}"))
    }

    fn one(&mut self, missing: &str, several: &str) -> Result<&'a Token, String> {
        match self.next(missing)? {
            [one] => Ok(one),
            _ => Err(format!("multiple values specified for {several}")),
        }
    }

    fn names(&mut self, missing: &str) -> Result<Vec<Token>, String> {
        let tokens = self.next(missing)?;
        tokens.iter().filter_map(Token::pattern).try_for_each(pattern::check)?;
        Ok(tokens.to_vec())
    }
}

impl Rule {
    /// `has_tls`: the server offers TLS.
    ///
    /// # Errors
    /// The pg_hba_file_rules text of an invalid line.
    pub(super) fn parse(line: &FileLine, has_tls: bool) -> Result<Rule, String> {
        let mut fields = Fields(line.fields.iter());
        let word = &fields.one("connection type", "connection type")?.text;
        let connections = Connections::parse(word).ok_or_else(|| format!("invalid connection type \"{word}\""))?;
        let warning = match connections {
            Connections::HostSsl if !has_tls => Some("hostssl record cannot match because SSL is disabled"),
            Connections::HostGss => Some("hostgssenc record cannot match because GSSAPI is not supported by this build"),
            _ => None,
        };
        let databases = fields.names("database specification")?;
        let users = fields.names("role specification")?;
        let address = match connections {
            Connections::Local => Address::All,
            _ => parse_address(&mut fields)?,
        };
        let word = &fields.one("authentication method", "authentication type")?.text;
        let method = Method::parse(word, connections)?;
        let mut options = MethodOptions::default();
        for token in fields.0.flatten() {
            options::parse(&token.text, method, connections, &mut options)?;
        }
        if method == Method::Cert {
            options.client_cert = Some(ClientCert::VerifyFull);
        }
        Ok(Rule {
            file: Some(line.file.clone()),
            line: line.number,
            text: line.text.clone(),
            connections,
            databases,
            users,
            address,
            method,
            options,
            warning: warning.map(str::to_owned),
        })
    }
}

fn parse_address(fields: &mut Fields<'_>) -> Result<Address, String> {
    let token = fields.one("IP address specification", "host address")?;
    for (keyword, address) in [("all", Address::All), ("samehost", Address::SameHost), ("samenet", Address::SameNet)] {
        if token.is_keyword(keyword) {
            return Ok(address);
        }
    }
    let (text, bits) = match token.text.split_once('/') {
        Some((text, bits)) => (text, Some(bits)),
        None => (token.text.as_str(), None),
    };
    match (text.parse::<IpAddr>(), bits) {
        (Err(_), None) => Ok(Address::Name(text.to_owned())),
        (Err(_), Some(_)) => Err(format!("specifying both host name and CIDR mask is invalid: \"{}\"", token.text)),
        (Ok(address), Some(bits)) => {
            let mask = mask_of(bits, address).ok_or_else(|| format!("invalid CIDR mask in address \"{}\"", token.text))?;
            Ok(Address::Network { address, mask })
        }
        (Ok(address), None) => {
            let text = &fields.one("netmask specification", "netmask")?.text;
            let invalid = |_| format!("invalid IP mask \"{text}\": Name or service not known");
            let mask = text.parse::<IpAddr>().map_err(invalid)?;
            match mask.is_ipv4() == address.is_ipv4() {
                true => Ok(Address::Network { address, mask }),
                false => Err("IP address and mask do not match".to_owned()),
            }
        }
    }
}

/// A mask of `bits` leading ones, as long as the address.
fn mask_of(bits: &str, address: IpAddr) -> Option<IpAddr> {
    let bits: u32 = bits.parse().ok()?;
    match address {
        IpAddr::V4(_) if bits <= 32 => Some(IpAddr::V4(u32::MAX.checked_shl(32 - bits).unwrap_or(0).into())),
        IpAddr::V6(_) if bits <= 128 => Some(IpAddr::V6(u128::MAX.checked_shl(128 - bits).unwrap_or(0).into())),
        _ => None,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::tokenizer::Scanner;
    use super::*;

    /// A line as `file::read` gives it.
    pub fn line(text: &str) -> FileLine {
        let mut scanner = Scanner::new(text);
        let mut fields: Vec<Vec<Token>> = Vec::new();
        let mut goes_on = false;
        while let Some((token, comma)) = scanner.token() {
            match fields.last_mut().filter(|_| goes_on) {
                Some(field) => field.push(token),
                None => fields.push(vec![token]),
            }
            goes_on = comma;
        }
        FileLine { file: "pg_hba.conf".into(), number: 7, text: text.to_owned(), fields, error: None }
    }

    pub fn rule(text: &str) -> Rule {
        Rule::parse(&line(text), true).expect("a rule")
    }

    #[test]
    fn addresses_have_masks_of_three_forms() {
        let address = |text: &str| rule(&format!("host all all {text} trust")).address;
        let network = |address: &str, mask: &str| Address::Network {
            address: address.parse().expect("an address"),
            mask: mask.parse().expect("a mask"),
        };
        assert_eq!(address("10.1.0.0/16"), network("10.1.0.0", "255.255.0.0"));
        assert_eq!(address("10.1.0.0 255.255.0.0"), network("10.1.0.0", "255.255.0.0"));
        assert_eq!(address("0.0.0.0/0"), network("0.0.0.0", "0.0.0.0"));
        assert_eq!(address("::1/128"), network("::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"));
        assert_eq!(address("fe80::/10"), network("fe80::", "ffc0::"));
        assert_eq!(address("samenet"), Address::SameNet);
        assert_eq!(address("\"samenet\""), Address::Name("samenet".to_owned()));
        assert_eq!(address(".example.org"), Address::Name(".example.org".to_owned()));
    }

    #[test]
    fn options_follow_the_method() {
        let options = rule("hostssl all all all scram-sha-256 clientcert=verify-full clientname=DN").options;
        let expected =
            MethodOptions { map: None, client_cert: Some(ClientCert::VerifyFull), client_name: ClientName::DistinguishedName };
        assert_eq!(options, expected);
        assert_eq!(rule("local all all peer map=m").options.map.as_deref(), Some("m"));
        assert_eq!(rule("hostssl all all all cert").options.client_cert, Some(ClientCert::VerifyFull));
        assert_eq!(rule("local all all ident").method, Method::Peer);
    }

    #[test]
    fn rules_that_cannot_match_are_no_errors() {
        let warning = |text: &str| Rule::parse(&line(text), false).expect("a rule").warning;
        assert_eq!(warning("hostssl all all all trust").as_deref(), Some("hostssl record cannot match because SSL is disabled"));
        assert!(warning("hostgssenc all all all trust").is_some());
        assert_eq!(warning("hostnossl all all all trust"), None);
    }

    #[test]
    fn errors_are_postgresql_s() {
        for (text, expected) in [
            ("local,host all", "multiple values specified for connection type"),
            ("locale all", "invalid connection type \"locale\""),
            ("local", "end-of-line before database specification"),
            ("local all", "end-of-line before role specification"),
            ("host all all", "end-of-line before IP address specification"),
            ("host all all ::1/128,::2/128", "multiple values specified for host address"),
            ("host all all 127.0.0.1/33 trust", "invalid CIDR mask in address \"127.0.0.1/33\""),
            ("host all all localhost/8 trust", "specifying both host name and CIDR mask is invalid: \"localhost/8\""),
            ("host all all 127.0.0.1", "end-of-line before netmask specification"),
            ("host all all 127.0.0.1 trust", "invalid IP mask \"trust\": Name or service not known"),
            ("host all all 127.0.0.1 ::1 trust", "IP address and mask do not match"),
            ("local all all", "end-of-line before authentication method"),
            ("local all all trust,peer", "multiple values specified for authentication type"),
            ("local all all none", "invalid authentication method \"none\""),
            ("host all all all ident", "invalid authentication method \"ident\": not supported by this build"),
            ("local all all ldap", "invalid authentication method \"ldap\": not supported by this build"),
            ("local all all owner", "invalid authentication method \"owner\""),
            ("host all all all peer", "peer authentication is only supported on local sockets"),
            ("host all all all cert", "cert authentication is only supported on hostssl connections"),
            ("local all all trust x", "authentication option not in name=value format: x"),
            ("local all all trust x=1", "unrecognized authentication option name: \"x\""),
            (
                "local all all trust map=m",
                "authentication option \"map\" is only valid for authentication methods ident, peer, gssapi, sspi, cert, and oauth",
            ),
            ("host all all all md5 clientcert=verify-ca", "clientcert can only be configured for \"hostssl\" rows"),
            (
                "hostssl all all all cert clientcert=verify-ca",
                "clientcert can only be set to \"verify-full\" when using \"cert\" authentication",
            ),
            ("hostssl all all all md5 clientcert=no", "invalid value for clientcert: \"no\""),
            ("local /( all trust", "invalid regular expression \"(\": parentheses () not balanced"),
        ] {
            assert_eq!(Rule::parse(&line(text), true).err().as_deref(), Some(expected), "{text}");
        }
    }
}
