//! Verifies a client's identity: finds the rule for it, and runs that rule's method.
//!
//! Invariants:
//! 1. A client gets the same answer for a wrong password, a role without one, one that has expired, and a role that does not
//!    exist, in the same time: only the log tells them apart.
//! 2. A client that fails waits (auth_delay.milliseconds) before it is told.

use std::sync::Arc;
use std::time::Duration;

use melba_catalog::privileges::RoleUse;
use melba_catalog::{Catalog, Role};
use melba_protocol::body::utf8;
use melba_protocol::frontend::decode_sasl_initial;
use melba_protocol::password::{are_equal, is_md5, is_stored, md5_answer};
use melba_protocol::scram::{ChannelBinding, Exchange, Verifier};
use melba_serverlog::{ConnectionAspects, Entry, Level};
use melba_statement::backends::Addresses;
use melba_statement::client::Client;
use melba_statement::context::Instance;
use melba_types::{DbError, Result, Severity, SqlState, err};

use crate::access::Access;
use crate::connection::Connection;
use crate::hba::system::{System, account_name, own_account, peer_account};
use crate::hba::{Applicant, ClientCert, ClientName, InForce, Method, Rule, check_map, find, is_own_account};
use crate::tls::{Channel, TlsConfiguration};

/// A client at the door.
pub(crate) struct Authentication<'a> {
    pub instance: &'a Instance,
    pub access: &'a Access,
    pub catalog: &'a Catalog,
    pub user: &'a str,
    pub database: &'a str,
    pub role: Option<&'a Role>,
    /// `None`: it has come by a Unix-domain socket.
    pub addresses: Option<Addresses>,
    /// The TLS that the connection could have used, whether it has or not.
    pub tls: Option<&'a TlsConfiguration>,
    pub aspects: ConnectionAspects,
    /// Writes a message about this client.
    pub log: &'a dyn Fn(&Entry<'_>),
}

/// The message to a refused client, and the one for the log only.
pub(crate) struct Refused {
    pub error: DbError,
    pub log_detail: Option<String>,
}

impl From<DbError> for Refused {
    fn from(error: DbError) -> Refused {
        Refused { error, log_detail: None }
    }
}

/// The reason of a refusal.
enum Refusal {
    /// The client has disconnected, or was silent for too long: it gets no message.
    Silent,
    /// The method's answer is no; the reason is for the log.
    Failed(String),
    Error(DbError),
}

impl From<DbError> for Refusal {
    fn from(error: DbError) -> Refusal {
        Refusal::Error(fatal(error))
    }
}

/// How the authentication of a client ends.
pub(crate) enum Verdict {
    /// The client has left.
    Left,
    /// With `method:identity`, where the method establishes an identity.
    Admitted(Option<Arc<str>>),
}

type Proof = std::result::Result<(), Refusal>;

fn fatal(error: DbError) -> DbError {
    error.severity(Severity::Fatal)
}

impl Authentication<'_> {
    /// # Errors
    /// The error: the message before the client is disconnected, and the log's detail.
    pub fn run(&self, connection: &mut Connection) -> std::result::Result<Verdict, Refused> {
        let in_force = self.access.hosts.in_force();
        let is_encrypted = connection.tls().is_some();
        let Some(rule) = self.find_rule(&in_force, is_encrypted) else {
            return Err(self.rejection("no pg_hba.conf entry for host", is_encrypted).into());
        };
        self.check_has_certificate(rule, connection)?;
        if rule.method == Method::Reject {
            return Err(self.rejection("pg_hba.conf rejects connection for host", is_encrypted).into());
        }
        let proved = self.prove(rule, &in_force, connection).and_then(|()| self.check_certificate(rule, &in_force, connection));
        match proved {
            Ok(()) => {
                let identity = self.identity(rule, connection);
                self.log_identity(rule, identity.as_deref());
                let method = match rule.method {
                    Method::Owner if !self.is_owner(connection) => Method::ScramSha256,
                    method => method,
                };
                Ok(Verdict::Admitted(identity.map(|identity| format!("{}:{identity}", method.name()).into())))
            }
            Err(Refusal::Silent) if connection.is_late() => {
                let message = format!("canceling authentication of user \"{}\" due to timeout", self.user);
                (self.log)(&Entry::new(Level::Fatal, &message));
                Ok(Verdict::Left)
            }
            Err(Refusal::Silent) => Ok(Verdict::Left),
            Err(Refusal::Error(error)) => Err(error.into()),
            Err(Refusal::Failed(reason)) => {
                let error = self.failure(rule);
                let delay = self.instance.settings().get("auth_delay.milliseconds").as_integer().max(0) as u64;
                std::thread::sleep(Duration::from_millis(delay));
                Err(Refused { error, log_detail: Some(format!("{reason}\n{}", origin(rule))) })
            }
        }
    }

    /// Who the client is, by its method; `None` where the method establishes nothing.
    fn identity(&self, rule: &Rule, connection: &Connection) -> Option<String> {
        let by_account = |name: Option<String>| Some(name.unwrap_or_else(|| self.user.to_owned()));
        match rule.method {
            Method::Trust | Method::Reject => None,
            Method::Peer => by_account(peer_account(connection.descriptor()).and_then(account_name)),
            Method::Owner if self.is_owner(connection) => by_account(account_name(own_account())),
            Method::Cert => {
                let certificate = connection.tls().and_then(Channel::certificate).flatten();
                Some(certificate.map_or_else(|| self.user.to_owned(), |c| c.distinguished_name))
            }
            _ => Some(self.user.to_owned()),
        }
    }

    /// log_connections: the client's identity, and the rule and method that established it.
    fn log_identity(&self, rule: &Rule, identity: Option<&str>) {
        if !self.aspects.authentication {
            return;
        }
        let what = if identity.is_some() { "identity" } else { "user" };
        let identity = identity.unwrap_or(self.user);
        let place = match &rule.file {
            Some(file) => format!("{}:{}", file.display(), rule.line),
            None => "built-in rule".to_owned(),
        };
        let message = format!("connection authenticated: {what}=\"{identity}\" method={} ({place})", rule.method.name());
        (self.log)(&Entry::new(Level::Log, &message));
    }

    fn find_rule<'r>(&self, in_force: &'r InForce, is_encrypted: bool) -> Option<&'r Rule> {
        let applicant = Applicant {
            address: self.addresses.map(|a| a.client.ip().to_canonical()),
            is_encrypted,
            database: self.database,
            user: self.user,
            is_member_of: &|group| self.is_member_of(group),
            network: &System,
        };
        find(&in_force.rules, &applicant)
    }

    fn is_member_of(&self, group: &str) -> bool {
        let (Some(role), Some(group)) = (self.role, self.catalog.role_by_name(group)) else { return false };
        self.catalog.has_role_by_grant(role.oid, group.oid, RoleUse::Member)
    }

    fn rejection(&self, what: &str, is_encrypted: bool) -> DbError {
        let host = self.addresses.map_or("[local]".to_owned(), |a| a.client.ip().to_canonical().to_string());
        let (user, database) = (self.user, self.database);
        let encryption = if is_encrypted { "SSL encryption" } else { "no encryption" };
        fatal(err!(
            INVALID_AUTHORIZATION_SPECIFICATION,
            "{what} \"{host}\", user \"{user}\", database \"{database}\", {encryption}"
        ))
    }

    fn failure(&self, rule: &Rule) -> DbError {
        let user = self.user;
        let message = match rule.method {
            Method::Peer => format!("Peer authentication failed for user \"{user}\""),
            Method::Cert => format!("certificate authentication failed for user \"{user}\""),
            Method::Trust => format!("\"trust\" authentication failed for user \"{user}\""),
            // The password of a file may have been wrong, which clients recognise by the code.
            _ => return fatal(err!(INVALID_PASSWORD, "password authentication failed for user \"{user}\"")),
        };
        fatal(DbError::new(SqlState::INVALID_AUTHORIZATION_SPECIFICATION, message))
    }

    fn prove(&self, rule: &Rule, in_force: &InForce, connection: &mut Connection) -> Proof {
        match rule.method {
            // The certificate is checked for every method.
            Method::Trust | Method::Cert => Ok(()),
            Method::Owner if self.is_owner(connection) => Ok(()),
            Method::Owner | Method::ScramSha256 => self.scram(connection),
            Method::Md5 if self.answers_md5() => self.md5(connection),
            Method::Md5 => self.scram(connection),
            Method::Password => self.password(connection),
            Method::Peer => self.peer(rule, in_force, connection),
            Method::Reject => Err(Refusal::Failed("The rule rejects.".to_owned())),
        }
    }

    /// # Errors
    /// The rule requires a certificate of one of our authorities, and the client has sent none.
    fn check_has_certificate(&self, rule: &Rule, connection: &Connection) -> Result<()> {
        if rule.options.client_cert.is_none() {
            return Ok(());
        }
        if !self.tls.is_some_and(|tls| tls.has_authorities) {
            let message = "client certificates can only be checked if a root certificate store is available";
            return Err(fatal(DbError::new(SqlState::CONFIG_FILE_ERROR, message)));
        }
        match connection.tls().and_then(Channel::certificate) {
            Some(_) => Ok(()),
            None => Err(fatal(err!(INVALID_AUTHORIZATION_SPECIFICATION, "connection requires a valid client certificate"))),
        }
    }

    /// The certificate must be in the role's name, if the rule requires that.
    fn check_certificate(&self, rule: &Rule, in_force: &InForce, connection: &Connection) -> Proof {
        if rule.options.client_cert != Some(ClientCert::VerifyFull) {
            return Ok(());
        }
        let certificate = connection.tls().and_then(Channel::certificate).flatten();
        let name = certificate.and_then(|certificate| match rule.options.client_name {
            ClientName::CommonName => certificate.common_name,
            ClientName::DistinguishedName => Some(certificate.distinguished_name).filter(|name| !name.is_empty()),
        });
        let name = name.ok_or_else(|| Refusal::Failed("client certificate contains no user name".to_owned()))?;
        let is_member_of = |group: &str| self.is_member_of(group);
        check_map(&in_force.mappings, rule.options.map.as_deref(), &name, self.user, &is_member_of).map_err(Refusal::Failed)
    }

    /// Whether the client is a process of the account that runs this server; by a Unix-domain socket also root, which could be
    /// that account. By TCP root may be a proxy for any user.
    fn is_owner(&self, connection: &Connection) -> bool {
        match self.addresses {
            Some(Addresses { client, server }) => is_own_account(client, server),
            None => peer_account(connection.descriptor()).is_some_and(|account| account == own_account() || account == 0),
        }
    }

    fn peer(&self, rule: &Rule, in_force: &InForce, connection: &Connection) -> Proof {
        let failed = |reason: &str| Refusal::Failed(reason.to_owned());
        let account = peer_account(connection.descriptor()).ok_or_else(|| failed("could not get peer credentials"))?;
        let name =
            account_name(account).ok_or_else(|| Refusal::Failed(format!("local user with ID {account} does not exist")))?;
        let is_member_of = |group: &str| self.is_member_of(group);
        check_map(&in_force.mappings, rule.options.map.as_deref(), &name, self.user, &is_member_of).map_err(Refusal::Failed)
    }

    /// The role's stored password, as long as it is valid.
    ///
    /// # Errors
    /// Why there is none, for the log.
    fn stored(&self) -> std::result::Result<&str, String> {
        let user = self.user;
        let role = self.role.ok_or_else(|| format!("Role \"{user}\" does not exist."))?;
        let stored = role.password.as_deref().ok_or_else(|| format!("User \"{user}\" has no password assigned."))?;
        match role.valid_until.is_some_and(|until| until < self.instance.cluster.clock.now_micros()) {
            true => Err(format!("User \"{user}\" has an expired password.")),
            false => Ok(stored),
        }
    }

    /// Whether method md5 uses MD5: by the form of the role's stored password, and for a role without one by the likely form of others.
    fn answers_md5(&self) -> bool {
        match self.stored() {
            Ok(stored) => is_md5(stored),
            Err(_) => self.instance.settings().get("password_encryption").as_text() == "md5",
        }
    }

    fn mismatch(&self) -> Refusal {
        Refusal::Failed(format!("Password does not match for user \"{}\".", self.user))
    }

    fn mock(&self) -> Verifier {
        let iterations = self.instance.settings().get("scram_iterations").as_integer().max(1) as u32;
        Verifier::mock(self.user, self.access.secret(), iterations)
    }

    fn password(&self, connection: &mut Connection) -> Proof {
        connection.output().authentication_cleartext_password();
        connection.flush()?;
        let password = read_password(connection)?;
        match self.stored() {
            Ok(stored) if is_stored(self.user, &password, stored) => Ok(()),
            Ok(_) => Err(self.mismatch()),
            Err(reason) => {
                // It takes as long as if there were one.
                let _ = self.mock().is_of(&password);
                Err(Refusal::Failed(reason))
            }
        }
    }

    fn md5(&self, connection: &mut Connection) -> Proof {
        let salt: [u8; 4] = rand::random();
        connection.output().authentication_md5_password(&salt);
        connection.flush()?;
        let answer = read_password(connection)?;
        let stored = self.stored().map_err(Refusal::Failed)?;
        match are_equal(md5_answer(stored, &salt).as_bytes(), answer.as_bytes()) {
            true => Ok(()),
            false => Err(self.mismatch()),
        }
    }

    fn scram(&self, connection: &mut Connection) -> Proof {
        const PLAIN: &str = "SCRAM-SHA-256";
        const BOUND: &str = "SCRAM-SHA-256-PLUS";
        let verifier = self.stored().and_then(|stored| {
            let none = || format!("User \"{}\" does not have a valid SCRAM secret.", self.user);
            Verifier::parse(stored).ok_or_else(none)
        });
        let end_point = self.tls.filter(|_| connection.tls().is_some()).and_then(|tls| tls.end_point.clone());
        let offered = if end_point.is_some() { &[BOUND, PLAIN][..] } else { &[PLAIN] };
        connection.output().authentication_sasl(offered);
        connection.flush()?;
        let message = read_response(connection)?;
        let (mechanism, first) = decode_sasl_initial(&message)?;
        let binding = match (mechanism, end_point) {
            (BOUND, Some(hash)) => ChannelBinding::ServerEndPoint(hash),
            (PLAIN, Some(_)) => ChannelBinding::Declined,
            (PLAIN, None) => ChannelBinding::Unavailable,
            _ => return Err(err!(PROTOCOL_VIOLATION, "client selected an invalid SASL authentication mechanism").into()),
        };
        let nonce = rand::random();
        let (mut exchange, reason) = match verifier {
            Ok(verifier) => (Exchange::new(verifier, &nonce, binding), None),
            Err(reason) => (Exchange::doomed(self.mock(), &nonce, binding), Some(reason)),
        };
        let first = match first {
            Some(first) => first.to_vec(),
            None => {
                connection.output().authentication_sasl_continue(b"");
                connection.flush()?;
                read_response(connection)?
            }
        };
        let answer = exchange.first(utf8(&first)?)?;
        connection.output().authentication_sasl_continue(answer.as_bytes());
        connection.flush()?;
        let last = read_response(connection)?;
        match exchange.last(utf8(&last)?)? {
            Some(answer) => {
                connection.output().authentication_sasl_final(answer.as_bytes());
                Ok(())
            }
            None => Err(reason.map_or_else(|| self.mismatch(), Refusal::Failed)),
        }
    }
}

/// The rule, as the log names it.
fn origin(rule: &Rule) -> String {
    match &rule.file {
        Some(file) => format!("Connection matched file \"{}\" line {}: \"{}\"", file.display(), rule.line, rule.text),
        None => "Connection matched a built-in rule, as there is no pg_hba.conf".to_owned(),
    }
}

/// The body of the client's next message, which must be a response to an authentication request.
fn read_message(connection: &mut Connection, what: &str) -> std::result::Result<Vec<u8>, Refusal> {
    let mut message = Vec::new();
    match connection.read_message(&mut message) {
        Ok(Ok(b'p')) => Ok(message),
        Ok(Ok(tag)) => Err(err!(PROTOCOL_VIOLATION, "expected {what} response, got message type {tag}").into()),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(Refusal::Silent),
    }
}

fn read_response(connection: &mut Connection) -> std::result::Result<Vec<u8>, Refusal> {
    read_message(connection, "SASL")
}

fn read_password(connection: &mut Connection) -> std::result::Result<String, Refusal> {
    let message = read_message(connection, "password")?;
    let Some((0, password)) = message.split_last().filter(|(_, text)| !text.contains(&0)) else {
        return Err(err!(PROTOCOL_VIOLATION, "invalid password packet size").into());
    };
    if password.is_empty() {
        return Err(err!(INVALID_PASSWORD, "empty password returned by client").into());
    }
    Ok(utf8(password)?.to_owned())
}
