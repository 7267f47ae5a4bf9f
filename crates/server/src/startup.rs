//! From an accepted socket to an authenticated session.

use std::sync::Arc;
use std::time::Duration;

use melba_catalog::privileges::AclKind;
use melba_catalog::{Catalog, Role, acl};
use melba_protocol::startup::{NextStartup, unsupported_version};
use melba_protocol::{ProtocolVersion, Startup, StartupMessage, next_startup};
use melba_serverlog::{ConnectionAspects, Entry, Level, Source, Verbosity};
use melba_settings::Settings;
use melba_settings::identifiers::cut_to_name;
use melba_settings::socket_options::SocketOptions;
use melba_settings::value::Value;
use melba_sql::session::Session;
use melba_statement::backends::{Addresses, Backend, ClientCertificate, Encryption, Exceeded, Limits, Peer, Wake};
use melba_statement::backup::BACKUP_HINT;
use melba_statement::client::Client;
use melba_statement::context::{Instance, Login, SessionState};
use melba_statement::set::cut_notice;
use melba_statement::user::{User, check_switch};
use melba_types::{DbError, Oid, Result, Severity, SqlState, err};

use crate::access::Access;
use crate::authentication::{Authentication, Refused, Verdict};
use crate::connection::Connection;
use crate::newcomers::Newcomers;
use crate::tls::{Channel, TlsConfiguration};

/// The client's request.
pub(crate) struct StartupRequest {
    version: ProtocolVersion,
    user: String,
    database: String,
    /// A command line, as PGOPTIONS has it.
    options: String,
    settings: Vec<(String, String)>,
}

/// A connection that may become a session.
pub(crate) struct Start<'a> {
    pub instance: &'a Arc<Instance>,
    pub access: &'a Access,
    pub newcomers: &'a Newcomers,
    pub addresses: Option<Addresses>,
    pub pid: i32,
    pub wake: Box<dyn Wake>,
    pub socket: Arc<dyn SocketOptions>,
    /// The connection as the log knows it.
    pub source: Arc<Source>,
}

/// Answers the client's first packets. `None` when there is nothing more to do: it cancelled a statement, or disconnected.
pub(crate) fn start(connection: &mut Connection, start: Start<'_>) -> std::result::Result<Option<Session>, Refused> {
    let Start { instance, access, newcomers, addresses, pid, wake, socket, source } = start;
    let log = |entry: &Entry<'_>| instance.log().emit(&source, Verbosity::Default, entry);
    let aspects = ConnectionAspects::of(instance.settings().get("log_connections").as_text());
    let began = instance.cluster.clock.monotonic();
    if aspects.receipt {
        log_receipt(&source, &log);
    }
    let timeout = instance.settings().get("authentication_timeout").as_integer().max(1) as u64;
    let failed = |e| fatal(err!(IO_ERROR, "could not set the socket's timeout: {e}"));
    connection.set_timeout(Some(Duration::from_secs(timeout))).map_err(failed)?;
    let cancel = |pid, secret: &[u8]| instance.backends.cancel(pid, secret);
    // No other machine sees bytes between processes of one machine.
    let tls = access.tls().filter(|_| addresses.is_some());
    let Some(request) = read_request(connection, tls.as_deref(), cancel, &|text| log(&Entry::new(Level::Log, text)))? else {
        return Ok(None);
    };
    if instance.backends.len() >= connections_max(instance) {
        return Err(too_many_clients().into());
    }
    let client = source.client.as_ref();
    client.iter().for_each(|client| client.set_login(&request.user, &request.database));
    // A database that does not exist is reported after authentication; roles are the same in all.
    let database = instance.cluster.catalog_by_name(&request.database);
    let catalog = database.clone().unwrap_or_else(|| instance.cluster.catalog(Oid::INVALID));
    let role = catalog.role_by_name(&request.user).cloned();
    let authentication = Authentication {
        instance,
        access,
        catalog: &catalog,
        user: &request.user,
        database: &request.database,
        role: role.as_deref(),
        addresses,
        tls: tls.as_deref(),
        aspects,
        log: &log,
    };
    let asked = instance.cluster.clock.monotonic();
    let Verdict::Admitted(identity) = authentication.run(connection)? else { return Ok(None) };
    let proved = instance.cluster.clock.monotonic();
    newcomers.remove(pid);
    // A client refused for a reason other than the password is told after authentication, as in PostgreSQL.
    connection.output().authentication_ok();
    let (role, catalog) = admit(database, &request, role)?;
    let state = session_state(instance, &request, &role, &catalog, (pid, &source))?;
    if aspects.authorization {
        log_authorization(&request, connection, &log);
    }
    state.settings.lock().set_socket(socket);
    let encryption = connection.tls().map(encryption);
    let peer = Peer { addresses, encryption, identity, ..Peer::default() };
    register(instance, &request, &state, (&role, &catalog), peer, wake)?;
    connection.patience().watch(state.interrupt.clone());
    let mut session = Session::new(state.clone());
    let secret = instance.backends.get(pid).map_or_else(Vec::new, |backend| backend.secret.clone());
    session.log_in(&secret, connection)?;
    connection.flush()?;
    if aspects.setup_durations {
        let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
        let total = milliseconds(instance.cluster.clock.monotonic().saturating_sub(began));
        // No process is forked here.
        let authentication = milliseconds(proved.saturating_sub(asked));
        let message =
            format!("connection ready: setup total={total:.3} ms, fork=0.000 ms, authentication={authentication:.3} ms");
        log(&Entry::new(Level::Log, &message));
    }
    Ok(Some(session))
}

/// log_connections: a client has come.
fn log_receipt(source: &Source, log: &dyn Fn(&Entry<'_>)) {
    let Some(client) = &source.client else { return };
    let port = client.port.map_or_else(String::new, |port| format!(" port={port}"));
    log(&Entry::new(Level::Log, &format!("connection received: host={}{port}", client.host)));
}

/// log_connections: a client is let in.
fn log_authorization(request: &StartupRequest, connection: &Connection, log: &dyn Fn(&Entry<'_>)) {
    let mut message = format!("connection authorized: user={} database={}", request.user, request.database);
    if let Some((_, name)) = request.settings.iter().find(|(name, _)| name == "application_name") {
        message.push_str(&format!(" application_name={name}"));
    }
    if let Some(Encryption { version, cipher, bits, .. }) = connection.tls().map(encryption).as_deref() {
        message.push_str(&format!(" SSL enabled (protocol={version}, cipher={cipher}, bits={bits})"));
    }
    log(&Entry::new(Level::Log, &message));
}

/// Reads up to the client's startup message; `None` when it has cancelled a statement, or disconnected. `tls`: the configuration
/// for a client that requests it.
pub(crate) fn read_request(
    connection: &mut Connection,
    tls: Option<&TlsConfiguration>,
    cancel: impl Fn(i32, &[u8]),
    log: &dyn Fn(&str),
) -> Result<Option<StartupRequest>> {
    let (mut tls_decided, mut gss_decided) = (false, false);
    // The first byte of a TLS handshake is that of no packet: its length would be beyond bounds.
    if connection.read_until(1).is_err()
        || connection.data().first() == Some(&TLS_HANDSHAKE) && !start_directly(connection, tls, log)
    {
        return Ok(None);
    }
    loop {
        let (request, bytes) = match next_startup(connection.data())? {
            NextStartup::Need(n) => {
                if connection.read_until(n).is_err() {
                    return Ok(None);
                }
                continue;
            }
            NextStartup::Packet(Startup::Cancel { pid, secret }, _) => {
                cancel(pid, secret);
                return Ok(None);
            }
            NextStartup::NoPacket => return Ok(None),
            NextStartup::Packet(Startup::Outdated(version), _) => {
                let message = format!("EFATAL:  {}\n\0", unsupported_version(version).message());
                connection.send_raw(message.as_bytes())?;
                return Ok(None);
            }
            // A client whose request is refused continues unencrypted or disconnects. It may ask once.
            NextStartup::Packet(Startup::Ssl, _) if tls_decided => {
                return Err(unsupported_version(ProtocolVersion::SSL_REQUEST));
            }
            NextStartup::Packet(Startup::Gssenc, _) if gss_decided => {
                return Err(unsupported_version(ProtocolVersion::GSSENC_REQUEST));
            }
            NextStartup::Packet(Startup::Ssl, bytes) => {
                tls_decided = true;
                if let Some(tls) = tls.filter(|_| connection.tls().is_none()) {
                    connection.consume(bytes);
                    if !start_requested(connection, tls, log)? {
                        return Ok(None);
                    }
                    gss_decided = true;
                    continue;
                }
                (None, bytes)
            }
            NextStartup::Packet(Startup::Gssenc, bytes) => {
                gss_decided = true;
                (None, bytes)
            }
            NextStartup::Packet(Startup::Message(message), bytes) => (Some(negotiate(&message)?), bytes),
        };
        connection.consume(bytes);
        match request {
            None => connection.send_raw(b"N")?,
            Some((request, differences)) => {
                if let Some(unknown) = differences {
                    let unknown: Vec<&str> = unknown.iter().map(String::as_str).collect();
                    connection.output().negotiate_protocol_version(request.version, &unknown);
                }
                return Ok(Some(request));
            }
        }
    }
}

/// The client's request, and where it is not fully granted: the options that are unknown here.
fn negotiate(message: &StartupMessage<'_>) -> Result<(StartupRequest, Option<Vec<String>>)> {
    let (version, unknown) = message.negotiate()?;
    let request = read_parameters(message.parameters(), version)?;
    let differs = version != message.requested || !unknown.is_empty();
    Ok((request, differs.then(|| unknown.into_iter().map(str::to_owned).collect())))
}

/// The record type of a TLS handshake.
const TLS_HANDSHAKE: u8 = 0x16;

/// TLS at the client's request; false when it failed.
///
/// # Errors
/// Bytes were sent ahead that could be taken for encrypted ones.
fn start_requested(connection: &mut Connection, tls: &TlsConfiguration, log: &dyn Fn(&str)) -> Result<bool> {
    if !connection.data().is_empty() {
        return Err(fatal(
            err!(PROTOCOL_VIOLATION, "received unencrypted data after SSL request")
                .detail("This could be either a client-software bug or evidence of an attempted man-in-the-middle attack."),
        ));
    }
    connection.send_raw(b"S")?;
    Ok(start_tls(connection, tls, log))
}

/// TLS from the first byte: only for clients that name this protocol by ALPN.
fn start_directly(connection: &mut Connection, tls: Option<&TlsConfiguration>, log: &dyn Fn(&str)) -> bool {
    let Some(tls) = tls else { return false };
    if !start_tls(connection, tls, log) {
        return false;
    }
    let has_protocol = connection.tls().is_some_and(Channel::has_protocol);
    if !has_protocol {
        log("received direct SSL connection request without ALPN protocol negotiation extension");
    }
    has_protocol
}

fn start_tls(connection: &mut Connection, tls: &TlsConfiguration, log: &dyn Fn(&str)) -> bool {
    match connection.start_tls(tls) {
        Ok(()) => true,
        Err(e) => {
            log(&format!("could not accept SSL connection: {e}"));
            false
        }
    }
}

/// The columns of pg_stat_ssl.
fn encryption(channel: &Channel) -> Arc<Encryption> {
    let (version, cipher, bits) = channel.parameters();
    let certificate = channel.certificate().flatten();
    Arc::new(Encryption {
        version,
        cipher,
        bits,
        client: certificate.map(|c| ClientCertificate { subject: c.subject, serial: c.serial, issuer: c.issuer }),
    })
}

fn read_parameters<'a>(
    parameters: impl Iterator<Item = Result<(&'a str, &'a str)>>,
    version: ProtocolVersion,
) -> Result<StartupRequest> {
    let mut request =
        StartupRequest { version, user: String::new(), database: String::new(), options: String::new(), settings: Vec::new() };
    for pair in parameters {
        let (name, value) = pair.map_err(fatal)?;
        match name {
            "user" => request.user = cut_to_name(value).to_owned(),
            "database" => request.database = cut_to_name(value).to_owned(),
            "options" => request.options = value.to_owned(),
            "replication" if matches!(value, "false" | "off" | "no" | "0") => {}
            "replication" => return Err(fatal(DbError::unsupported("replication").hint(BACKUP_HINT))),
            _ if name.starts_with("_pq_.") => {}
            _ => request.settings.push((name.to_owned(), value.to_owned())),
        }
    }
    if request.user.is_empty() {
        return Err(fatal(err!(INVALID_AUTHORIZATION_SPECIFICATION, "no PostgreSQL user name specified in startup packet")));
    }
    if request.database.is_empty() {
        request.database = request.user.clone();
    }
    Ok(request)
}

/// `-c name=value` and `--name=value`, separated by spaces; a backslash takes the next character literally.
fn options(text: &str) -> Result<Vec<(String, String)>> {
    let mut words: Vec<String> = Vec::new();
    let (mut word, mut open) = (String::new(), false);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c.is_ascii_whitespace() {
            if open {
                words.push(std::mem::take(&mut word));
            }
            open = false;
        } else {
            open = true;
            word.push(if c == '\\' { chars.next().unwrap_or('\\') } else { c });
        }
    }
    if open {
        words.push(word);
    }
    let mut settings = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let (switch, assignment) = match word.as_str() {
            "--" => break,
            "-c" => ("-c ", words.next().ok_or_else(|| unknown_option("-c"))?),
            w if w.starts_with("--") => ("--", w[2..].to_owned()),
            w if w.starts_with("-c") => ("-c ", w[2..].to_owned()),
            _ => return Err(unknown_option(&word)),
        };
        match assignment.split_once('=') {
            Some((name, value)) => settings.push((name.replace('-', "_"), value.to_owned())),
            None => return Err(fatal(err!(SYNTAX_ERROR, "{switch}{assignment} requires a value"))),
        }
    }
    Ok(settings)
}

fn unknown_option(word: &str) -> DbError {
    let error = err!(SYNTAX_ERROR, "invalid command-line argument for server process: {word}");
    fatal(error.hint("Try \"postgres --help\" for more information."))
}

fn fatal(error: DbError) -> DbError {
    error.severity(Severity::Fatal)
}

/// The role and the database must exist and accept this client.
fn admit(database: Option<Arc<Catalog>>, request: &StartupRequest, role: Option<Arc<Role>>) -> Result<(Arc<Role>, Arc<Catalog>)> {
    let role =
        role.ok_or_else(|| fatal(err!(INVALID_AUTHORIZATION_SPECIFICATION, "role \"{}\" does not exist", request.user)))?;
    if !role.can_login {
        return Err(fatal(err!(INVALID_AUTHORIZATION_SPECIFICATION, "role \"{}\" is not permitted to log in", request.user)));
    }
    let name = &request.database;
    let catalog = database.ok_or_else(|| fatal(err!(UNDEFINED_DATABASE, "database \"{name}\" does not exist")))?;
    if let Some(database) = catalog.database(catalog.database_oid()) {
        if !database.allow_connections {
            let message = format!("database \"{name}\" is not currently accepting connections");
            return Err(fatal(DbError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)));
        }
        if !catalog.has_privileges(role.oid, AclKind::Database, database.owner, &database.acl, acl::CONNECT) {
            let error = err!(INSUFFICIENT_PRIVILEGE, "permission denied for database \"{name}\"");
            return Err(fatal(error.detail("User does not have CONNECT privilege.")));
        }
    }
    Ok((role, catalog))
}

fn session_state(
    instance: &Arc<Instance>,
    request: &StartupRequest,
    role: &Role,
    catalog: &Catalog,
    (pid, source): (i32, &Arc<Source>),
) -> Result<Arc<SessionState>> {
    let mut settings = instance.settings().for_session(role.superuser);
    settings.set_internal("is_superuser", Value::Bool(role.superuser));
    settings.set_internal("session_authorization", Value::Text(role.name.clone()));
    let mut ignored = apply_stored(&mut settings, catalog, role);
    ignored.extend(permit_users(&mut settings, catalog, role));
    for (name, value) in options(&request.options)?.iter().chain(&request.settings) {
        settings.set_at_start(name, value).map_err(fatal)?;
    }
    if let Some(refused) = permit_users(&mut settings, catalog, role).into_iter().next() {
        return Err(fatal(refused));
    }
    let begins_as = User::of((role.oid, &role.name), &settings, catalog);
    settings.set_superuser(begins_as.superuser);
    let cut = request.settings.iter().filter_map(|(name, value)| cut_notice(name, value));
    let engine = instance.cluster.engine.session().map_err(|e| fatal(e.into()))?;
    engine.set_pid(pid);
    let login = Login {
        user: request.user.as_str().into(),
        user_oid: role.oid,
        database: request.database.as_str().into(),
        database_oid: catalog.database_oid(),
        pid,
    };
    let state = SessionState::new(instance, login, engine, settings).with_log_source(Arc::clone(source));
    state.engine().set_interrupt(state.interrupt.engine.clone());
    ignored.into_iter().for_each(|e| state.warning(e));
    cut.for_each(|e| state.notice(e));
    Ok(Arc::new(state))
}

/// The settings that a session begins with may name another role, but only one that the role that logged in may take: those that are
/// refused are taken back. The session's own user is who logged in, whatever they say.
fn permit_users(settings: &mut Settings, catalog: &Catalog, role: &Role) -> Vec<DbError> {
    let mut refused = Vec::new();
    for (name, own) in [("session_authorization", &role.name), ("role", &Arc::from("none"))] {
        let chosen: Arc<str> = settings.get(name).as_text().into();
        if chosen == *own {
            continue;
        }
        let error = check_switch(role.oid, catalog, role.oid, name, &chosen).err();
        if name == "session_authorization" || error.is_some() {
            settings.set_internal(name, Value::Text(own.clone()));
        }
        refused.extend(error);
    }
    refused
}

/// ALTER ROLE ALL SET, ALTER DATABASE ... SET, ALTER ROLE ... SET and ALTER ROLE ... IN DATABASE ... SET, the last one winning. Values that are no
/// longer valid are returned, for warnings.
fn apply_stored(settings: &mut Settings, catalog: &Catalog, role: &Role) -> Vec<DbError> {
    let database = catalog.database_oid();
    let of_role = |scope: Oid, source: &'static str| {
        role.settings.iter().filter(move |(d, _)| *d == scope).map(move |(_, text)| (text, source))
    };
    let of_database = catalog.database(database).into_iter().flat_map(|d| &d.settings).map(|text| (text, "database"));
    let of_all = catalog.settings_of_all().iter().map(|text| (text, "global"));
    let mut ignored = Vec::new();
    for (assignment, source) in
        of_all.chain(of_database).chain(of_role(Oid::INVALID, "user")).chain(of_role(database, "database user"))
    {
        if let Some((name, value)) = assignment.split_once('=') {
            ignored.extend(settings.set_stored(name, value, source).err());
        }
    }
    ignored
}

/// Takes one of max_connections' places, which the limits of the role and of the database must leave.
fn register(
    instance: &Instance,
    request: &StartupRequest,
    state: &SessionState,
    (role, catalog): (&Role, &Catalog),
    peer: Peer,
    wake: Box<dyn Wake>,
) -> Result<()> {
    // Superusers are not limited; a negative limit is no limit.
    let limit = |count: i32| usize::try_from(count).ok().filter(|_| !role.superuser);
    let limits = Limits {
        server: connections_max(instance),
        of_role: limit(role.connection_limit),
        of_database: catalog.database(catalog.database_oid()).and_then(|d| limit(d.connection_limit)),
    };
    // Clients of the older protocol can keep four bytes only.
    let secret_bytes = if request.version >= ProtocolVersion::V3_2 { 32 } else { 4 };
    let secret = rand::random::<[u8; 32]>()[..secret_bytes].to_vec();
    let backend = Backend {
        pid: state.pid,
        role: role.oid,
        database: catalog.database_oid(),
        secret,
        interrupt: state.interrupt.clone(),
        wake,
        activity: state.activity.clone(),
    };
    *state.activity.peer.lock() = Peer {
        user: state.user.clone(),
        database: state.database.clone(),
        application_name: state.settings.lock().get("application_name").as_text().into(),
        started: instance.cluster.clock.now_micros(),
        ..peer
    };
    if !role.superuser {
        check_reserved(instance, catalog, role)?;
    }
    // Others may have come since the check.
    instance.backends.add(Arc::new(backend), &limits).map_err(|exceeded| match exceeded {
        Exceeded::Server => too_many_clients(),
        Exceeded::Role => fatal(err!(TOO_MANY_CONNECTIONS, "too many connections for role \"{}\"", request.user)),
        Exceeded::Database => fatal(err!(TOO_MANY_CONNECTIONS, "too many connections for database \"{}\"", request.database)),
    })
}

/// Some of max_connections' places are for superusers only, some more for those with pg_use_reserved_connections.
fn check_reserved(instance: &Instance, catalog: &Catalog, role: &Role) -> Result<()> {
    const USE_RESERVED: Oid = Oid(4550);
    let settings = instance.settings();
    let number = |name| settings.get(name).as_integer().max(0) as usize;
    let (for_superusers, for_others) = (number("superuser_reserved_connections"), number("reserved_connections"));
    let free = connections_max(instance).saturating_sub(instance.backends.len());
    let attribute = if free <= for_superusers && for_superusers > 0 {
        "roles with the SUPERUSER attribute"
    } else if free <= for_superusers + for_others
        && for_others > 0
        && !catalog.has_role(role.oid, USE_RESERVED, melba_catalog::privileges::RoleUse::Inherit)
    {
        "roles with privileges of the \"pg_use_reserved_connections\" role"
    } else {
        return Ok(());
    };
    Err(fatal(err!(TOO_MANY_CONNECTIONS, "remaining connection slots are reserved for {attribute}")))
}

fn connections_max(instance: &Instance) -> usize {
    instance.settings().get("max_connections").as_integer().max(1) as usize
}

fn too_many_clients() -> DbError {
    fatal(err!(TOO_MANY_CONNECTIONS, "sorry, too many clients already"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_split_as_a_command_line() {
        let got = options(r"-c search_path=a\ b --work-mem=1MB -cx.y=1").unwrap();
        let expected = [("search_path", "a b"), ("work_mem", "1MB"), ("x.y", "1")];
        assert_eq!(got, expected.map(|(n, v)| (n.to_owned(), v.to_owned())));
        assert!(options("-Z").is_err() && options("-c work_mem").is_err());
    }
}
