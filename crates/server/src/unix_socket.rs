//! Unix-domain sockets: a file `.s.PGSQL.PORT` in each of unix_socket_directories, and beside it a lock file, like PostgreSQL's,
//! so that its clients and servers understand ours.
//!
//! The lock file `.s.PGSQL.PORT.lock` has five lines: process id, data directory, start time (seconds since 1970), port, directory of
//! the socket. It is made before the socket and removed after it.
//!
//! 1. A socket that accepts connections is never replaced, whatever the lock file says.
//! 2. Files of a server that no longer runs are replaced, also when another process has got its process id.

use std::ffi::CString;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{Error, ErrorKind, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, chown};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use melba_settings::Settings;
use melba_types::{DbError, Result, bail, err};

/// The longest path that fits in a socket's address.
const PATH_BYTES_MAX: usize = 107;
/// Another server may start or stop while its lock file is read.
const LOCK_ATTEMPTS: usize = 100;

/// A lock file's information about its server.
pub(crate) struct Owner<'a> {
    pub data_directory: &'a str,
    /// Seconds since 1970.
    pub started: i64,
    pub port: u16,
}

/// A socket that listens, without waiting; dropping it removes its files.
#[derive(Debug)]
pub(crate) struct UnixSocket {
    pub listener: UnixListener,
    /// None of a socket in the abstract name space, which has no files.
    files: Option<Files>,
}

impl UnixSocket {
    pub fn directory(&self) -> Option<&Path> {
        self.files.as_ref()?.socket.parent()
    }
}

#[derive(Debug)]
struct Files {
    socket: PathBuf,
    lock: PathBuf,
}

impl Drop for Files {
    fn drop(&mut self) {
        // The next server of this port replaces files that cannot be removed.
        let _ = std::fs::remove_file(&self.socket);
        let _ = std::fs::remove_file(&self.lock);
    }
}

/// Listens in all of the directories. Those where that fails are warnings, unless all are; a lock file that cannot be had is an
/// error.
pub(crate) fn listen(settings: &Settings, owner: &Owner<'_>) -> Result<(Vec<UnixSocket>, Vec<DbError>)> {
    let text = settings.get("unix_socket_directories").as_text();
    let Some(directories) = split_directories(text) else {
        bail!(INVALID_PARAMETER_VALUE, "invalid list syntax in parameter \"unix_socket_directories\"");
    };
    let (mut sockets, mut warnings) = (Vec::new(), Vec::new());
    for directory in &directories {
        match listen_in(directory, settings, owner)? {
            Ok(socket) => sockets.push(socket),
            Err(reason) => {
                let warning = err!(WARNING, "could not create Unix-domain socket in directory \"{directory}\"");
                warnings.push(warning.detail(reason));
            }
        }
    }
    match warnings.first() {
        Some(first) if sockets.is_empty() => {
            let error = err!(INVALID_PARAMETER_VALUE, "could not create any Unix-domain sockets");
            Err(error.detail(first.fields().detail.clone().unwrap_or_default()))
        }
        _ => Ok((sockets, warnings)),
    }
}

/// The inner error is why there can be no socket in this directory.
fn listen_in(directory: &str, settings: &Settings, owner: &Owner<'_>) -> Result<std::result::Result<UnixSocket, String>> {
    let abstract_name = directory.starts_with('@');
    // Names count from the data directory.
    let folder = if abstract_name { PathBuf::from(directory) } else { Path::new(owner.data_directory).join(directory) };
    let path = folder.join(format!(".s.PGSQL.{}", owner.port));
    let shown = path.display().to_string();
    if path.as_os_str().len() > PATH_BYTES_MAX {
        return Ok(Err(format!("Unix-domain socket path \"{shown}\" is too long (maximum {PATH_BYTES_MAX} bytes)")));
    }
    let could_not_bind = |e: Error| format!("could not bind Unix address \"{shown}\": {}", reason(&e));
    if abstract_name {
        let address = SocketAddr::from_abstract_name(&path.as_os_str().as_bytes()[1..]);
        let listener = address.and_then(|a| UnixListener::bind_addr(&a)).and_then(without_waiting);
        return Ok(listener.map(|listener| UnixSocket { listener, files: None }).map_err(could_not_bind));
    }
    let lock = folder.join(format!(".s.PGSQL.{}.lock", owner.port));
    make_lock(&lock, &path, &folder, owner)?;
    let files = Files { socket: path, lock };
    let bound = remove_if_there(&files.socket).and_then(|()| UnixListener::bind(&files.socket)).and_then(without_waiting);
    let listener = match bound {
        Ok(listener) => listener,
        Err(e) => return Ok(Err(could_not_bind(e))),
    };
    Ok(permit(&files.socket, settings).map(|()| UnixSocket { listener, files: Some(files) }))
}

fn remove_if_there(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

fn without_waiting(listener: UnixListener) -> std::io::Result<UnixListener> {
    listener.set_nonblocking(true).map(|()| listener)
}

/// unix_socket_group and unix_socket_permissions.
fn permit(socket: &Path, settings: &Settings) -> std::result::Result<(), String> {
    let group = settings.get("unix_socket_group").as_text();
    if !group.is_empty() {
        let id = group_id(group).ok_or_else(|| format!("group \"{group}\" does not exist"))?;
        chown(socket, None, Some(id))
            .map_err(|e| format!("could not set group of file \"{}\": {}", socket.display(), reason(&e)))?;
    }
    let mode = settings.get("unix_socket_permissions").as_integer() as u32;
    std::fs::set_permissions(socket, Permissions::from_mode(mode))
        .map_err(|e| format!("could not set permissions of file \"{}\": {}", socket.display(), reason(&e)))
}

/// A group by its number or name.
fn group_id(group: &str) -> Option<u32> {
    if let Ok(id) = group.parse() {
        return Some(id);
    }
    let name = CString::new(group).ok()?;
    // SAFETY: the name ends with a zero byte. The result lives until the next call for a group, which happens only here, at the
    // start of a server.
    unsafe { libc::getgrnam(name.as_ptr()).as_ref().map(|found| found.gr_gid) }
}

/// Creates the lock file, replacing one whose server no longer runs.
fn make_lock(lock: &Path, socket: &Path, folder: &Path, owner: &Owner<'_>) -> Result<()> {
    let shown = lock.display();
    let failed = |what: &str, e: &Error| err!(IO_ERROR, "could not {what} lock file \"{shown}\": {}", reason(e));
    for _ in 0..LOCK_ATTEMPTS {
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(lock) {
            Ok(file) => {
                return write_lock(file, folder, owner).map_err(|e| {
                    // The file would be empty; only the error matters.
                    let _ = std::fs::remove_file(lock);
                    failed("write", &e)
                });
            }
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(e) => return Err(failed("create", &e)),
        }
        let text = match std::fs::read_to_string(lock) {
            Err(e) if e.kind() == ErrorKind::NotFound => continue,
            text => text.map_err(|e| failed("open", &e))?,
        };
        if text.is_empty() {
            return Err(err!(LOCK_FILE_EXISTS, "lock file \"{shown}\" is empty")
                .hint("Either another server is starting, or the lock file is the remnant of a previous server startup crash."));
        }
        // PostgreSQL writes a negative one for a server of one session.
        let pid = text.lines().next().and_then(|line| line.trim().parse::<i32>().ok()).map_or(0, i32::saturating_abs);
        if pid == 0 {
            bail!(LOCK_FILE_EXISTS, "bogus data in lock file \"{shown}\": \"{text}\"");
        }
        if is_served(socket, pid) {
            let error = err!(LOCK_FILE_EXISTS, "lock file \"{shown}\" already exists");
            let socket = socket.display();
            return Err(error.hint(format!("Is another postmaster (PID {pid}) using socket file \"{socket}\"?")));
        }
        // The socket first: a lock file without one is believed as long as its process lives.
        remove_if_there(socket).and_then(|()| remove_if_there(lock)).map_err(|e| {
            failed("remove old", &e).hint(
                "The file seems accidentally left over, but it could not be removed. Please remove the file by hand and try again.",
            )
        })?;
    }
    bail!(LOCK_FILE_EXISTS, "lock file \"{shown}\" already exists")
}

fn write_lock(mut file: File, folder: &Path, owner: &Owner<'_>) -> std::io::Result<()> {
    let Owner { data_directory, started, port } = owner;
    write!(file, "{}\n{data_directory}\n{started}\n{port}\n{}\n", std::process::id(), folder.display())?;
    file.sync_all()
}

/// Whether there is a server behind the socket. Without a socket file, the process that created the lock file may be about to create it.
fn is_served(socket: &Path, pid: i32) -> bool {
    match UnixStream::connect(socket) {
        Ok(_) => true,
        Err(e) if e.kind() == ErrorKind::ConnectionRefused => false,
        // SAFETY: signal 0 is only checked, not sent; the other call has no arguments.
        Err(_) => unsafe { pid != std::process::id() as i32 && pid != libc::getppid() && libc::kill(pid, 0) == 0 },
    }
}

/// The system's text of an error, without its number.
fn reason(error: &Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// The items of a list: separated by commas, in double quotes if need be. `None` when it is malformed.
fn split_directories(text: &str) -> Option<Vec<String>> {
    let mut directories = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (directory, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted_item(quoted)?,
            None => {
                let (item, after) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
                (item.trim_end().to_owned(), after)
            }
        };
        if directory.is_empty() {
            return None;
        }
        let canonical = directory.trim_end_matches('/');
        directories.push(if canonical.is_empty() { "/".to_owned() } else { canonical.to_owned() });
        rest = after.trim_start();
        if let Some(more) = rest.strip_prefix(',') {
            rest = more.trim_start();
            if rest.is_empty() {
                return None;
            }
        } else if !rest.is_empty() {
            return None;
        }
    }
    Some(directories)
}

/// The content of the quotes, in which a doubled quote is one, and the rest.
fn quoted_item(quoted: &str) -> Option<(String, &str)> {
    let mut item = String::new();
    let mut rest = quoted;
    loop {
        let end = rest.find('"')?;
        item.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(more) => {
                item.push('"');
                rest = more;
            }
            None => return Some((item, rest)),
        }
    }
}

#[cfg(test)]
mod tests;
