//! The server that is copied: a session that holds a state of it.

use postgres::Client;

use melba_dump::{Source, describe};

use crate::Result;

/// Bytes requested at a time.
const PIECE_BYTES: i32 = 4 << 20;

/// A session in which a backup was begun.
pub struct Server {
    client: Client,
    pub version: String,
    pub database: u64,
    pub replay: u64,
    /// The log is needed up to here.
    pub stop: u64,
    pub manifest: Vec<u8>,
}

/// A file of the backup.
#[derive(Clone, Copy)]
pub struct BackupFile {
    pub number: u64,
    pub footer: u32,
    pub bytes: u64,
}

fn failed(e: postgres::Error) -> String {
    format!("the server: {}", describe(&e))
}

impl Server {
    pub fn begin(url: &str) -> Result<Server> {
        let mut client = Source::parse(url)?.connect()?;
        // Following, it waits for longer than others may.
        client.batch_execute("SET idle_session_timeout = 0").map_err(failed)?;
        let version: String = client.query_one("SELECT pg_catalog.version()", &[]).map_err(failed)?.get(0);
        if !version.contains("Melba") {
            return Err(format!("{url} is no Melba server: {version}"));
        }
        let row = client
            .query_one("SELECT database, replay, stop, manifest FROM pg_catalog.melba_backup_start()", &[])
            .map_err(failed)?;
        let number = |at: usize| row.get::<_, i64>(at) as u64;
        Ok(Server { version, database: number(0), replay: number(1), stop: number(2), manifest: row.get(3), client })
    }

    /// The backup's segments, as of now.
    pub fn files(&mut self) -> Result<Vec<BackupFile>> {
        let rows = self.client.query("SELECT file, checksum, bytes FROM pg_catalog.melba_backup_files()", &[]).map_err(failed)?;
        let number = |row: &postgres::Row, at: usize| row.get::<_, i64>(at) as u64;
        Ok(rows.iter().map(|r| BackupFile { number: number(r, 0), footer: number(r, 1) as u32, bytes: number(r, 2) }).collect())
    }

    /// Bytes of a segment; none at its end.
    pub fn file_piece(&mut self, file: u64, offset: u64) -> Result<Vec<u8>> {
        let arguments: [&(dyn postgres::types::ToSql + Sync); 3] = [&(file as i64), &(offset as i64), &PIECE_BYTES];
        let row = self.client.query_one("SELECT pg_catalog.melba_backup_file($1, $2, $3)", &arguments).map_err(failed)?;
        Ok(row.get(0))
    }

    /// Bytes of the log from a position on, not behind `to`.
    pub fn log_piece(&mut self, from: u64, to: u64) -> Result<Vec<u8>> {
        let bytes = to.saturating_sub(from).min(PIECE_BYTES as u64) as i32;
        let row =
            self.client.query_one("SELECT pg_catalog.melba_backup_log($1, $2)", &[&(from as i64), &bytes]).map_err(failed)?;
        Ok(row.get(0))
    }

    /// Adds the commits since then; the log is needed up to there.
    pub fn advance(&mut self) -> Result<u64> {
        let row = self.client.query_one("SELECT pg_catalog.melba_backup_advance()", &[]).map_err(failed)?;
        self.stop = row.get::<_, i64>(0) as u64;
        Ok(self.stop)
    }

    /// A file of the data directory, if it exists.
    pub fn configuration(&mut self, name: &str) -> Result<Option<String>> {
        let sql =
            "SELECT pg_catalog.pg_read_file(pg_catalog.current_setting('data_directory') || '/' || $1::text, 0, 1048576, true)";
        Ok(self.client.query_one(sql, &[&name]).map_err(failed)?.get(0))
    }
}

/// Makes everything durable that was written to the file system of a folder.
pub fn sync_file_system(folder: &str) -> Result<()> {
    let directory = std::fs::File::open(folder).map_err(|e| format!("{folder}: {e}"))?;
    rustix::fs::syncfs(&directory).map_err(|e| format!("{folder}: {e}"))
}
