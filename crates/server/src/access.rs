//! The data that decide about access, beside the catalog: the rules of pg_hba.conf, the TLS configuration, and a secret of the cluster.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use melba_catalog::Catalog;
use melba_serverlog::{Entry, Level, ServerLog};
use melba_settings::Settings;
use melba_statement::context::Gate;
use melba_types::{Datum, Result, err};
use parking_lot::RwLock;

use crate::hba::HostAccess;
use crate::tls::TlsConfiguration;

/// The rules of who may connect to a server.
pub struct Access {
    pub(crate) hosts: HostAccess,
    /// `None`: ssl is off.
    tls: RwLock<Option<Arc<TlsConfiguration>>>,
    secret: Secret,
    log: Arc<ServerLog>,
}

/// The salts of roles that do not exist are derived from it.
type Secret = [u8; 32];

/// The secret's file in the data directory.
const SECRET_FILE: &str = "authentication.secret";

impl Access {
    /// Reads the files that the settings name, in the data directory by default. `require_password`: the account on this machine
    /// does not suffice.
    ///
    /// # Errors
    /// F0000 when they are malformed, 0A000 for TLS features that are not supported, 58030 when the secret cannot be read or created.
    pub fn load(settings: &Settings, require_password: bool, log: &Arc<ServerLog>) -> Result<Access> {
        let data = settings.get("data_directory").as_text();
        let secret = if data.is_empty() { rand::random() } else { secret(Path::new(data))? };
        let tls = TlsConfiguration::load(settings)?.map(Arc::new);
        let hosts = HostAccess::load(settings, require_password, log)?;
        Ok(Access { hosts, tls: RwLock::new(tls), secret, log: Arc::clone(log) })
    }

    /// Admits only processes of this account, by Unix-domain sockets.
    pub fn owner_only() -> Access {
        Access { hosts: HostAccess::owner_only(), tls: RwLock::default(), secret: rand::random(), log: Arc::default() }
    }

    pub(crate) fn tls(&self) -> Option<Arc<TlsConfiguration>> {
        self.tls.read().clone()
    }

    pub(crate) fn secret(&self) -> &[u8] {
        &self.secret
    }

    /// # Errors
    /// F0000 when the rules require a password and no superuser has one.
    pub(crate) fn check(&self, catalog: &Catalog) -> Result<()> {
        self.hosts.check_somebody_has_password(catalog)
    }
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

impl Gate for Access {
    fn reload(&self, settings: &Settings) {
        self.hosts.reload(settings);
        match TlsConfiguration::load(settings) {
            Ok(tls) => *self.tls.write() = tls.map(Arc::new),
            Err(e) => {
                self.log.server_entry(&Entry { level: Level::Log, ..Entry::of(&e) });
                self.log.server(Level::Log, "SSL configuration was not reloaded");
            }
        }
    }

    fn rule_rows(&self, settings: &Settings) -> Result<Vec<Vec<Datum>>> {
        self.hosts.rule_rows(settings)
    }

    fn mapping_rows(&self) -> Result<Vec<Vec<Datum>>> {
        self.hosts.mapping_rows()
    }
}

/// The cluster's secret, drawn when there is none.
fn secret(data: &Path) -> Result<Secret> {
    let path = data.join(SECRET_FILE);
    let failed = |e: std::io::Error| err!(IO_ERROR, "could not read or write \"{}\": {e}", path.display());
    let mut secret = [0; 32];
    match OpenOptions::new().read(true).open(&path) {
        Ok(mut file) => {
            file.read_exact(&mut secret).map_err(failed)?;
            return Ok(secret);
        }
        Err(e) if e.kind() == ErrorKind::NotFound => {}
        Err(e) => return Err(failed(e)),
    }
    secret = rand::random();
    // Under another name first: a crash must not leave half of it.
    let new = data.join(format!("{SECRET_FILE}.new"));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new).map_err(failed)?;
    file.write_all(&secret).and_then(|()| file.sync_all()).map_err(failed)?;
    std::fs::rename(&new, &path).map_err(failed)?;
    Ok(secret)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_secret_stays_and_is_the_owner_s() {
        let data = tempfile::tempdir().expect("a folder");
        let first = secret(data.path()).expect("a new one");
        assert_eq!(secret(data.path()).expect("the same"), first);
        let mode = std::fs::metadata(data.path().join(SECRET_FILE)).expect("the file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let other = tempfile::tempdir().expect("a folder");
        assert_ne!(secret(other.path()).expect("another"), first);
        std::fs::write(other.path().join(SECRET_FILE), "short").expect("the folder can be written");
        assert!(secret(other.path()).is_err());
    }
}
