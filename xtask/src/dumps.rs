//! `cargo xtask dumps`: copies a database with every feature (tests/dumps) from server to server by every tool and option; a dump
//! of the copy must be the same text as that of the original.
//!
//! pg_dump refuses a server newer than itself. With older tools a copy is moved back by `melba dump` and `melba restore` and
//! compared there; with tools of Melba's version (`--pg-bin`) everything is compared in place.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::compare::{Postgres, reference_for};
use crate::melba::{Address, Melba, ask, binary, postgres_program, run};
use crate::root;

#[derive(Default)]
pub struct Options {
    /// A folder with PostgreSQL's client programs; by default those installed.
    pub pg_bin: Option<PathBuf>,
}

/// The version that Melba says it is.
const MELBA_MAJOR: u32 = 18;
const ORIGINAL: &str = "dumps_original";
const COPY: &str = "dumps_copy";
const BACK: &str = "dumps_back";
/// The roles that `make_roles` made.
const ROLES_MADE: &str = "select quote_ident(rolname) from pg_roles where rolname like 'dump\\_%' or rolname like 'odd, %'";

struct Server {
    name: &'static str,
    address: Address,
    major: u32,
}

impl Server {
    fn new(name: &'static str, address: Address) -> Result<Server, String> {
        let number = ask(&address, "show server_version_num")?;
        let major = number.parse::<u32>().map_err(|_| format!("{name} is of version {number}"))? / 10000;
        Ok(Server { name, address, major })
    }

    fn database(&self, name: &str) -> Address {
        Address { database: name.to_owned(), ..self.address.clone() }
    }

    fn url(&self, database: &str) -> String {
        format!("postgres://postgres@{}:{}/{database}", self.address.host, self.address.port)
    }

    fn fresh(&self, database: &str) -> Result<(), String> {
        ask(&self.address, &format!("drop database if exists {database}"))?;
        ask(&self.address, &format!("create database {database}")).map(drop)
    }

    /// The database of tests/dumps, as far as both this server and `other` have its features.
    fn fill(&self, other: &Server) -> Result<(), String> {
        self.fresh(ORIGINAL)?;
        let mut scripts = vec!["everything"];
        if self.major.min(other.major) >= MELBA_MAJOR {
            scripts.push("since18");
        }
        if self.name == "Melba" && other.name == "Melba" {
            scripts.push("melba");
        }
        for script in scripts {
            let file = root().join("tests/dumps").join(format!("{script}.sql"));
            play(self.database(ORIGINAL).psql(), &file)?;
        }
        Ok(())
    }
}

/// Runs a program that is expected to succeed; returns its output.
fn output(command: &mut Command, what: &str) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|e| format!("{what}: {e}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{what}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

fn play(mut psql: Command, script: &Path) -> Result<(), String> {
    output(psql.args(["-Xqo", "/dev/null", "-v", "ON_ERROR_STOP=1", "-f"]).arg(script), "psql").map(drop)
}

/// A way to copy a database.
struct Way {
    name: &'static str,
    /// pg_dump's, `melba` for our own.
    format: &'static str,
    options: &'static [&'static str],
}

const fn way(name: &'static str, format: &'static str, options: &'static [&'static str]) -> Way {
    Way { name, format, options }
}

const WAYS: [Way; 16] = [
    way("plain", "plain", &[]),
    way("custom", "custom", &[]),
    way("directory, 2 jobs", "directory", &[]),
    way("--inserts", "plain", &["--inserts"]),
    way("--column-inserts", "plain", &["--column-inserts", "--rows-per-insert=7"]),
    way("--no-toast-compression", "plain", &["--no-toast-compression"]),
    way("--no-unlogged-table-data", "custom", &["--no-unlogged-table-data"]),
    way("--blobs", "custom", &["--blobs"]),
    way("--no-blobs", "custom", &["--no-blobs"]),
    way("--schema-only", "plain", &["--schema-only"]),
    way("--schema-only, custom", "custom", &["--schema-only"]),
    way("--data-only", "custom", &["--data-only"]),
    way("melba", "melba", &[]),
    way("melba, a folder, 4 jobs", "melba", &["--directory", "--jobs", "4"]),
    way("melba, standard output", "melba-pipe", &[]),
    way("melba --plain", "melba-plain", &[]),
];

struct Tools {
    folder: Option<PathBuf>,
    major: u32,
    /// Where dumps are written.
    scratch: PathBuf,
}

impl Tools {
    fn find(folder: Option<PathBuf>) -> Result<Option<Tools>, String> {
        let scratch = root().join("target").join(format!("dumps-files-{}", std::process::id()));
        let mut tools = Tools { folder, major: 0, scratch };
        let Some(pg_dump) = tools.program("pg_dump") else { return Ok(None) };
        let version = output(Command::new(pg_dump).arg("--version"), "pg_dump")?;
        let major = version.split(") ").nth(1).and_then(|v| v.split(['.', ' ', '\n', 'd', 'b', 'r']).next()?.parse().ok());
        tools.major = major.ok_or_else(|| format!("{version} is no version"))?;
        Ok(Some(tools))
    }

    fn program(&self, name: &str) -> Option<PathBuf> {
        match &self.folder {
            Some(folder) => Some(folder.join(name)).filter(|p| p.is_file()),
            None => postgres_program(name),
        }
    }

    fn command(&self, address: &Address, name: &str) -> Result<Command, String> {
        Ok(address.client(self.program(name).ok_or_else(|| format!("{name} is not installed"))?))
    }

    /// A database of a server as text, by pg_dump, or by melba dump where pg_dump refuses.
    fn text(&self, server: &Server, database: &str, options: &[&str]) -> Result<String, String> {
        let address = server.database(database);
        if self.can_dump(server) {
            return Ok(comparable(&output(self.command(&address, "pg_dump")?.args(options), "pg_dump")?));
        }
        let text = comparable(&output(melba_dump(&address, &["--plain"]).args(["--to", "-"]), "melba dump")?);
        // Objects come in the order of their OIDs, which a copy changes.
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        Ok(lines.join("\n") + "\n")
    }

    fn can_dump(&self, server: &Server) -> bool {
        server.major <= self.major
    }

    /// Whether the tools can take a database this way; pg_dump's ways need a server they accept.
    fn can_go(&self, way: &Way, from: &Server) -> bool {
        way.format.starts_with("melba") || self.can_dump(from)
    }

    /// Copies a database.
    fn go(&self, way: &Way, from: &Address, to: &Server, database: &str) -> Result<(), String> {
        let target = to.database(database);
        let path = self.scratch.join("dump");
        clear(&path)?;
        match way.format {
            "plain" => {
                output(self.command(from, "pg_dump")?.args(way.options).arg("-f").arg(&path), "pg_dump")?;
                play(self.command(&target, "psql")?, &path)
            }
            "melba" => {
                output(melba_dump(from, way.options).arg("--to").arg(&path), "melba dump")?;
                output(melba_restore(&path).args(["--to", &to.url(database)]), "melba restore").map(drop)
            }
            "melba-pipe" => {
                let file = std::fs::File::create(&path).map_err(|e| e.to_string())?;
                run(melba_dump(from, &["--to", "-"]).stdout(file), "melba dump")?;
                output(melba_restore(&path).args(["--to", &to.url(database)]), "melba restore").map(drop)
            }
            "melba-plain" => {
                output(melba_dump(from, &["--plain"]).arg("--to").arg(&path), "melba dump")?;
                play(self.command(&target, "psql")?, &path)
            }
            format => {
                let parallel: &[&str] = if format == "directory" { &["-j", "2"] } else { &[] };
                let mut dump = self.command(from, "pg_dump")?;
                output(dump.args(["-F", format]).args(parallel).args(way.options).arg("-f").arg(&path), "pg_dump")?;
                let mut restore = self.command(&target, "pg_restore")?;
                output(restore.args(["-e", "-d", database]).args(parallel).arg(&path), "pg_restore").map(drop)
            }
        }
    }

    /// Takes `from`'s database to `to`, by melba back again where one tool cannot dump both, and compares.
    fn round(&self, way: &Way, from: &Server, to: &Server) -> Result<(), String> {
        to.fresh(COPY)?;
        let original = from.database(ORIGINAL);
        // Both texts are written by one tool: ours where pg_dump cannot dump the original.
        let stays = self.can_dump(to) == self.can_dump(from);
        let is_data_only = way.options.contains(&"--data-only");
        if is_data_only {
            self.go(&self::way("", "plain", &["--schema-only"]), &original, to, COPY)?;
        }
        self.go(way, &original, to, COPY)?;
        if !stays {
            from.fresh(BACK)?;
            self.go(&self::way("", "melba", &[]), &to.database(COPY), from, BACK)?;
        }
        let (server, copy) = if stays { (to, COPY) } else { (from, BACK) };
        // Only pg_dump's own options affect both texts.
        let options = if way.format.starts_with("melba") { &[][..] } else { way.options };
        let (before, after) = (self.text(from, ORIGINAL, options)?, self.text(server, copy, options)?);
        if before == after {
            return Ok(());
        }
        let files = [("before", before), ("after", after)].map(|(name, text)| (self.scratch.join(name), text));
        for (path, text) in &files {
            std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))?;
        }
        let _ = Command::new("diff").arg("-u").args(files.iter().map(|f| &f.0)).status();
        Err("the copy is not the original".to_owned())
    }

    /// All ways from one server to another.
    fn ways(&self, from: &Server, to: &Server) -> Result<(), String> {
        if !self.can_dump(from) {
            println!("skipped dumps: {} to {} by pg_dump {}: it refuses {}", from.name, to.name, self.major, from.major);
        }
        from.fill(to)?;
        for way in WAYS.iter().filter(|w| self.can_go(w, from)) {
            let failed = |e| format!("{} to {}, {}: {e}", from.name, to.name, way.name);
            self.round(way, from, to).map_err(failed)?;
            println!("ok      dumps: {} to {}, {}", from.name, to.name, way.name);
        }
        Ok(())
    }

    /// A dump is restored part by part; one that was cut off says so, and still restores its parts.
    fn parts(&self, server: &Server) -> Result<(), String> {
        server.fresh(COPY)?;
        let path = self.scratch.join("parts");
        output(melba_dump(&server.database(ORIGINAL), &[]).arg("--to").arg(&path), "melba dump")?;
        let restore =
            |arguments: &[&str]| output(melba_restore(&path).args(["--to", &server.url(COPY)]).args(arguments), "melba restore");
        for part in [&["--schema"][..], &["--data", "--table", "app.pages"], &["--large-objects"]] {
            restore(part)?;
        }
        let count = "select (select count(*) from app.pages) || ' ' || (select count(*) from app.settled) || ' ' || (select count(*) from pg_largeobject_metadata)";
        let found = ask(&server.database(COPY), count)?;
        if found != "20 0 44" {
            return Err(format!("parts of a dump are {found}"));
        }
        if restore(&["--large-objects"]).is_ok() {
            return Err("large objects were restored over those that are there".to_owned());
        }
        let length = std::fs::metadata(&path).map_err(|e| e.to_string())?.len();
        let file = std::fs::File::options().write(true).open(&path).map_err(|e| e.to_string())?;
        file.set_len(length - 100).map_err(|e| e.to_string())?;
        match output(melba_restore(&path).arg("--list"), "melba restore --list") {
            Err(e) if e.contains("the dump is incomplete") => {}
            other => return Err(format!("a dump without its end is listed as {other:?}")),
        }
        println!("ok      dumps: parts of {}", server.name);
        Ok(())
    }

    /// A database is dumped by its owner, who is no superuser: options of user mappings that the owner may not see are left out.
    fn owned(&self, server: &Server) -> Result<(), String> {
        server.fresh(COPY)?;
        let (address, path) = (server.database(COPY), self.scratch.join("owned"));
        ask(&address, &format!("alter database {COPY} owner to dump_owner"))?;
        ask(
            &address,
            "create foreign data wrapper w; create server s foreign data wrapper w;
             create user mapping for public server s options (password 'hidden'); set role dump_owner;
             create schema mine; create table mine.t as select n from generate_series(1, 10) n; create sequence mine.q start 5;
             select lo_from_bytea(7, 'begin'); select lo_put(7, 100000, 'end'); select lo_create(8)",
        )?;
        let url = format!("postgres://dump_owner@{}:{}/{COPY}", address.host, address.port);
        output(Command::new(binary()).args(["dump", "--from", &url, "--to"]).arg(&path), "melba dump by an owner")?;
        server.fresh(BACK)?;
        output(melba_restore(&path).args(["--to", &server.url(BACK)]), "melba restore")?;
        let shown =
            "select (select sum(n) from mine.t) || ' ' || nextval('mine.q') || ' ' || md5(lo_get(7)) || ' ' || length(lo_get(8))";
        let (before, after) = (ask(&address, shown)?, ask(&server.database(BACK), shown)?);
        let mappings =
            ask(&server.database(BACK), "select umuser || coalesce(umoptions::text, ' without options') from pg_user_mapping")?;
        if before != after || mappings != "0 without options" {
            return Err(format!("a database of an owner who is no superuser: {before}, its copy: {after}, {mappings}"));
        }
        println!("ok      dumps: {} by a database's owner", server.name);
        Ok(())
    }

    /// The table of contents has large objects in groups, from version 17 on.
    fn groups(&self, server: &Server) -> Result<(), String> {
        if self.major < 17 || !self.can_dump(server) {
            return Ok(());
        }
        let path = self.scratch.join("listed");
        output(self.command(&server.database(ORIGINAL), "pg_dump")?.args(["-Fc", "-f"]).arg(&path), "pg_dump")?;
        let list = output(self.command(&server.address, "pg_restore")?.arg("-l").arg(&path), "pg_restore")?;
        let groups = list.lines().filter(|l| l.contains("BLOB METADATA")).count() as u32;
        let objects = ask(&server.database(ORIGINAL), "select count(*) from pg_largeobject_metadata")?;
        if groups == 0 || objects.parse().is_ok_and(|n: u32| groups >= n) {
            return Err(format!("{}: {groups} entries for {objects} large objects", server.name));
        }
        println!("ok      dumps: {}: {objects} large objects are {groups} entries", server.name);
        Ok(())
    }

    /// Roles and all databases of a server make another Melba, and a PostgreSQL of its version, the same.
    fn cluster(&self, from: &Server, postgresql: Option<&Server>) -> Result<(), String> {
        if !self.can_dump(from) {
            println!("skipped dumps: pg_dumpall {} refuses {}", self.major, from.major);
            return Ok(());
        }
        let melba = Melba::fresh("dumpall")?;
        self.copy_cluster(from, &Server::new("Melba", melba.address.clone())?)?;
        melba.stop()?;
        let Some(postgresql) = postgresql.filter(|p| p.major >= from.major && self.can_dump(p)) else {
            println!("skipped dumps: pg_dumpall to PostgreSQL: none of version {} is there", from.major);
            return Ok(());
        };
        for role in ask(&postgresql.address, ROLES_MADE)?.lines() {
            ask(&postgresql.address, &format!("drop role {role}"))?;
        }
        if ask(
            &postgresql.address,
            "select (select count(*) from pg_database) + (select count(*) from pg_authid where oid >= 16384)",
        )? != "3"
        {
            println!("skipped dumps: pg_dumpall to PostgreSQL: it has databases or roles of its own");
            return Ok(());
        }
        self.copy_cluster(from, postgresql)
    }

    fn copy_cluster(&self, from: &Server, to: &Server) -> Result<(), String> {
        let path = self.scratch.join("cluster.sql");
        let dump = |server: &Server| {
            let text = output(self.command(&server.address, "pg_dumpall")?.arg("--no-role-passwords"), "pg_dumpall")?;
            Ok::<_, String>(comparable(&text))
        };
        let before = dump(from)?;
        std::fs::write(&path, &before).map_err(|e| e.to_string())?;
        // The superuser already exists: its CREATE ROLE fails, and nothing else may.
        let mut psql = self.command(&to.address, "psql")?;
        let played = psql.args(["-Xq", "-f"]).arg(&path).stdout(Stdio::null()).stderr(Stdio::piped()).output();
        let errors = String::from_utf8_lossy(&played.map_err(|e| e.to_string())?.stderr).into_owned();
        let unexpected: Vec<&str> =
            errors.lines().filter(|l| l.contains("ERROR") && !l.contains("role \"postgres\" already exists")).collect();
        if !unexpected.is_empty() {
            return Err(format!("pg_dumpall's script: {}", unexpected.join("; ")));
        }
        let after = dump(to)?;
        if before != after {
            let copy = self.scratch.join("cluster.after.sql");
            std::fs::write(&copy, after).map_err(|e| e.to_string())?;
            let _ = Command::new("diff").arg("-u").arg(&path).arg(&copy).status();
            return Err("a cluster restored from pg_dumpall is another".to_owned());
        }
        println!("ok      dumps: pg_dumpall, {} to {}", from.name, to.name);
        Ok(())
    }

    /// vacuumlo removes objects that no column of type oid refers to.
    fn vacuumlo(&self, server: &Server) -> Result<(), String> {
        let Some(program) = self.program("vacuumlo") else {
            println!("skipped dumps: vacuumlo is not installed");
            return Ok(());
        };
        server.fresh(COPY)?;
        let database = server.database(COPY);
        ask(
            &database,
            "select lo_create(n) from generate_series(1, 2500) n; create table kept as select n::oid as object from generate_series(1, 2500, 500) n",
        )?;
        output(database.client(program).arg("-v").arg(COPY), "vacuumlo")?;
        match ask(&database, "select string_agg(oid::text, ' ' order by oid) from pg_largeobject_metadata")?.as_str() {
            "1 501 1001 1501 2001" => {
                println!("ok      dumps: vacuumlo on {}", server.name);
                Ok(())
            }
            other => Err(format!("vacuumlo left {other}")),
        }
    }
}

fn melba_dump(from: &Address, options: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(["dump", "--from", &format!("postgres://postgres@{}:{}/{}", from.host, from.port, from.database)]).args(options);
    command
}

fn melba_restore(from: &Path) -> Command {
    let mut command = Command::new(binary());
    command.arg("restore").arg("--from").arg(from);
    command
}

/// A dump without the lines that differ from dump to dump.
fn comparable(text: &str) -> String {
    let differs =
        |line: &&str| ["-- Dumped ", "-- Database ", "\\restrict ", "\\unrestrict "].iter().any(|p| line.starts_with(p));
    text.lines().filter(|l| !differs(l)).map(|l| format!("{l}\n")).collect()
}

fn clear(path: &Path) -> Result<(), String> {
    let removed = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    match removed {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(format!("{}: {e}", path.display())),
        _ => Ok(()),
    }
}

pub fn dumps(options: &Options, server: Option<Address>, reference: Option<Address>) -> Result<(), String> {
    let Some(tools) = Tools::find(options.pg_bin.clone())? else {
        println!("skipped dumps: pg_dump is not installed");
        return Ok(());
    };
    std::fs::create_dir_all(&tools.scratch).map_err(|e| format!("{}: {e}", tools.scratch.display()))?;
    let started = if server.is_none() { Some(Melba::fresh("dumps")?) } else { None };
    let address = server.or_else(|| started.as_ref().map(|m| m.address.clone())).ok_or("no server")?;
    let melba = Server::new("Melba", address)?;
    let mut postgres: Option<Postgres> = None;
    let postgresql = reference_for("dumps", reference, &mut postgres)?.map(|a| Server::new("PostgreSQL", a)).transpose()?;
    for server in [Some(&melba), postgresql.as_ref()].into_iter().flatten() {
        make_roles(server)?;
    }
    if let Some(postgresql) = &postgresql {
        tools.ways(postgresql, &melba)?;
        tools.ways(&melba, postgresql)?;
        tools.groups(postgresql)?;
    }
    tools.ways(&melba, &melba)?;
    tools.groups(&melba)?;
    tools.parts(&melba)?;
    tools.owned(&melba)?;
    tools.vacuumlo(&melba)?;
    for server in [Some(&melba), postgresql.as_ref()].into_iter().flatten() {
        // PostgreSQL's original came from Melba, whose cluster is about to be copied.
        let original = if server.name == "Melba" { &[][..] } else { &[ORIGINAL] };
        for database in [COPY, BACK].iter().chain(original) {
            ask(&server.address, &format!("drop database if exists {database}"))?;
        }
    }
    tools.cluster(&melba, postgresql.as_ref())?;
    drop(postgres);
    std::fs::remove_dir_all(&tools.scratch).map_err(|e| format!("{}: {e}", tools.scratch.display()))?;
    started.map_or(Ok(()), Melba::stop)
}

/// The roles of the scripts, unless an earlier run left them.
fn make_roles(server: &Server) -> Result<(), String> {
    match ask(&server.address, "select count(*) from pg_roles where rolname = 'dump_owner'")?.as_str() {
        "0" => play(server.address.psql(), &root().join("tests/dumps/roles.sql")),
        _ => Ok(()),
    }
}
