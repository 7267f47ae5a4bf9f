//! Turns a target into a session: the startup packet, authentication.

use std::collections::{HashMap, VecDeque};

use bytes::BytesMut;
use postgres::config::Host;
use postgres::fallible_iterator::FallibleIterator as _;
use postgres_protocol::authentication::{md5_hash, sasl};
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;

use crate::cancel::CancelKey;
use crate::report::{Failure, Report};
use crate::session::Connection;
use crate::socket;
use crate::stream::Socket;
use crate::target::Target;

type Result<T> = std::result::Result<T, Failure>;

/// Connects; `ask` is called for a password that was not given.
///
/// # Errors
/// No host answers, or the server refuses.
pub fn open(target: &Target, ask: &mut dyn FnMut(&str) -> Option<String>) -> Result<Connection> {
    let mut failures = Vec::new();
    for (host, port) in &target.hosts {
        match socket::encrypted(host, *port, target) {
            Ok(stream) => return start(stream, (host.clone(), *port), target, ask),
            Err(Failure::Other(reason)) => {
                let place = match host {
                    Host::Tcp(host) => format!("host \"{host}\", port {port}"),
                    Host::Unix(path) => format!("socket \"{}/.s.PGSQL.{port}\"", path.display()),
                };
                failures.push(format!("could not connect to {place}: {reason}"));
            }
            Err(refused) => return Err(refused),
        }
    }
    Err(Failure::Other(failures.join("\n")))
}

fn start(stream: Socket, place: (Host, u16), target: &Target, ask: &mut dyn FnMut(&str) -> Option<String>) -> Result<Connection> {
    let is_encrypted = matches!(stream, Socket::Tls(_));
    let mut connection = Connection {
        stream,
        incoming: BytesMut::new(),
        outgoing: BytesMut::new(),
        kept: VecDeque::new(),
        parameters: HashMap::new(),
        transaction: b'I',
        process_id: 0,
        cancel_key: CancelKey::new(place, target.clone()),
        is_encrypted,
        is_lost: false,
    };
    let options = target.options.as_deref().map(|options| ("options", options));
    let parameters = [
        ("user", target.user.as_str()),
        ("database", &target.database),
        ("application_name", &target.application_name),
        ("client_encoding", "UTF8"),
    ];
    frontend::startup_message(parameters.into_iter().chain(options), &mut connection.outgoing)?;
    connection.flush()?;
    authenticate(&mut connection, target, ask)?;
    loop {
        match connection.message()? {
            Message::BackendKeyData(body) => {
                connection.process_id = body.process_id();
                connection.cancel_key.set(body.process_id(), body.secret_key());
            }
            Message::ParameterStatus(body) => {
                connection.parameters.insert(body.name()?.to_owned(), body.value()?.to_owned());
            }
            Message::ReadyForQuery(_) => return Ok(connection),
            Message::ErrorResponse(body) => return Err(Failure::Refused(Box::new(Report::of(body.fields())))),
            Message::NoticeResponse(_) => {}
            _ => return Err("the server sent a message that does not belong here".to_owned().into()),
        }
    }
}

fn authenticate(connection: &mut Connection, target: &Target, ask: &mut dyn FnMut(&str) -> Option<String>) -> Result<()> {
    let mut password = || {
        target.password.clone().or_else(|| ask(&format!("Password for user {}: ", target.user))).ok_or_else(|| {
            format!("the server asks for the password of user \"{}\": set PGPASSWORD, or put it into the URL", target.user)
        })
    };
    loop {
        match connection.message()? {
            Message::AuthenticationOk => return Ok(()),
            Message::AuthenticationCleartextPassword => {
                frontend::password_message(password()?.as_bytes(), &mut connection.outgoing)?;
            }
            Message::AuthenticationMd5Password(body) => {
                let hash = md5_hash(target.user.as_bytes(), password()?.as_bytes(), body.salt());
                frontend::password_message(hash.as_bytes(), &mut connection.outgoing)?;
            }
            Message::AuthenticationSasl(body) => {
                let mechanisms: Vec<&str> = body.mechanisms().collect()?;
                if !mechanisms.contains(&sasl::SCRAM_SHA_256) {
                    return Err(format!("the server wants to authenticate by {}", mechanisms.join(", ")).into());
                }
                scram(connection, &password()?)?;
                continue;
            }
            Message::ErrorResponse(body) => return Err(Failure::Refused(Box::new(Report::of(body.fields())))),
            Message::NoticeResponse(_) => continue,
            _ => return Err("the server wants to authenticate in a way that is not supported".to_owned().into()),
        }
        connection.flush()?;
    }
}

fn scram(connection: &mut Connection, password: &str) -> Result<()> {
    let mut scram = sasl::ScramSha256::new(password.as_bytes(), sasl::ChannelBinding::unsupported());
    frontend::sasl_initial_response(sasl::SCRAM_SHA_256, scram.message(), &mut connection.outgoing)?;
    loop {
        connection.flush()?;
        match connection.message()? {
            Message::AuthenticationSaslContinue(body) => {
                scram.update(body.data())?;
                frontend::sasl_response(scram.message(), &mut connection.outgoing)?;
            }
            Message::AuthenticationSaslFinal(body) => {
                let proven = scram.finish(body.data());
                return proven.map_err(|_| "the server does not know the password itself".to_owned().into());
            }
            Message::ErrorResponse(body) => return Err(Failure::Refused(Box::new(Report::of(body.fields())))),
            _ => return Err("the server sent a message that does not belong here".to_owned().into()),
        }
    }
}
