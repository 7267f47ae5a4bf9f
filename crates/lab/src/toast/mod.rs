//! The published comparison of TOAST's compression methods: size, INSERT, SELECT and string functions over PostgreSQL's manual
//! and over the Silesia corpus.

mod claims;
mod clients;
mod corpus;

use std::path::PathBuf;

use clap::Args;
use postgres::Client;

use crate::progress::Progress;
use crate::report::{Collector, Key, Report};
use crate::{Common, Result, Target};
use clients::Work;
use corpus::Corpus;

#[derive(Debug, Args)]
pub struct ToastOptions {
    #[command(flatten)]
    pub common: Common,
    /// A folder with PostgreSQL's manual in HTML, a row a file [default: the newest of Debian's packages postgresql-doc-NN]
    #[arg(long, value_name = "DIR")]
    manual: Option<PathBuf>,
    /// A folder with members of the Silesia corpus, plain or .xz, a row a member; left out when not given
    #[arg(long, value_name = "DIR")]
    silesia: Option<PathBuf>,
    /// Compression methods; `external` is out of line and uncompressed
    #[arg(long, value_delimiter = ',', default_value = "external,pglz,lz4,zstd")]
    methods: Vec<String>,
    /// Numbers of clients
    #[arg(long, value_delimiter = ',', default_value = "1,16")]
    clients: Vec<usize>,
    /// How often each file is inserted
    #[arg(long, default_value_t = 5)]
    repeat: usize,
}

const TABLE: &str = "melba_lab_toast";
/// A relation is steady when its size stayed the same for this many looks, a second apart.
const STEADY_LOOKS: usize = 5;

/// The uncompressed method.
const EXTERNAL: &str = "external";

pub fn run(options: &ToastOptions) -> Result<Report> {
    let common = &options.common;
    let parameters = vec![
        ("methods", options.methods.join("/")),
        ("clients", options.clients.iter().map(usize::to_string).collect::<Vec<_>>().join("/")),
        ("repeat", options.repeat.to_string()),
    ];
    let mut report = Report::new("TOAST compression methods", common, parameters)?;
    let manual = options.manual.clone().map_or_else(corpus::installed_manual, Ok)?;
    let mut corpora = vec![Corpus::text("manual", &manual)?];
    if let Some(folder) = &options.silesia {
        corpora.push(Corpus::bytes("Silesia", folder)?);
    }
    let mut collector = Collector::new(common.targets.len());
    let passes = common.rounds as usize * corpora.len() * options.methods.len() * common.targets.len();
    let progress = Progress::new(passes);
    for round in 1..=common.rounds {
        for corpus in &corpora {
            for method in &options.methods {
                for (index, target) in common.targets.iter().enumerate() {
                    progress.step(format_args!("round {round}: {}, {method}, {}", corpus.name, target.name));
                    let mut pass = Pass { options, corpus, method, target, index, collector: &mut collector };
                    pass.run()?;
                }
            }
        }
    }
    for corpus in &corpora {
        report.notes.push(format!(
            "{}: {} values, {} bytes, largest {}",
            corpus.name,
            corpus.values.len(),
            corpus.raw_bytes(),
            corpus.largest()
        ));
    }
    report.finish(&collector, claims::judge(common, &collector, &corpora));
    Ok(report)
}

/// One corpus by one method on one target.
struct Pass<'a> {
    options: &'a ToastOptions,
    corpus: &'a Corpus,
    method: &'a str,
    target: &'a Target,
    index: usize,
    collector: &'a mut Collector,
}

impl Pass<'_> {
    fn run(&mut self) -> Result<()> {
        let mut client = self.target.connect()?;
        self.target.execute(&mut client, &format!("DROP TABLE IF EXISTS {TABLE}"))?;
        if self.create(&mut client).is_err() {
            // A method that the target does not know leaves its cells empty.
            return Ok(());
        }
        for (i, clients) in self.options.clients.iter().enumerate() {
            if i > 0 {
                self.target.execute(&mut client, &format!("DROP TABLE {TABLE}"))?;
                self.create(&mut client)?;
            }
            self.timed("INSERT", Work::Insert, *clients)?;
        }
        self.sizes(&mut client)?;
        for clients in &self.options.clients {
            self.timed("SELECT", Work::Select, *clients)?;
            self.timed("SELECT of string functions", Work::StringFunctions, *clients)?;
        }
        for clients in &self.options.clients {
            self.timed("UPDATE by a string function", Work::StringUpdate, *clients)?;
        }
        self.target.execute(&mut client, &format!("DROP TABLE {TABLE}"))
    }

    fn create(&self, client: &mut Client) -> Result<()> {
        let kind = self.corpus.type_name();
        let (compression, storage) = match self.method {
            EXTERNAL => (String::new(), "EXTERNAL"),
            method => (format!(" COMPRESSION {method}"), "EXTENDED"),
        };
        let create = format!("CREATE TABLE {TABLE} (id int PRIMARY KEY, body {kind}{compression})");
        self.target.execute(client, &create)?;
        self.target.execute(client, &format!("ALTER TABLE {TABLE} ALTER COLUMN body SET STORAGE {storage}"))
    }

    fn timed(&mut self, what: &str, work: Work, clients: usize) -> Result<()> {
        let process = self.target.process();
        let used = || process.map(|p| p.usage());
        let before = used();
        let elapsed = clients::run(self.target, self.corpus, work, clients, self.options.repeat)?;
        let usage = used().zip(before).map(|(after, before)| after.since(before));
        let section = section(what, clients);
        let line = line(self.corpus, self.method);
        self.collector.add(Key::lower(&*section, &*line, "s"), self.index, elapsed.as_secs_f64());
        if let Some(usage) = usage {
            let section = format!("{section}: the server's CPU");
            self.collector.add(Key::lower(section, line, "s"), self.index, usage.cpu_seconds);
        }
        Ok(())
    }

    fn sizes(&mut self, client: &mut Client) -> Result<()> {
        let bytes = self.target.steady_bytes(client, &[TABLE], STEADY_LOOKS)?;
        let line = || line(self.corpus, self.method);
        let raw = (self.corpus.raw_bytes() * self.options.repeat as u64) as f64;
        self.collector.add(Key::lower(SIZE, line(), "bytes"), self.index, bytes);
        self.collector.add(Key::higher(RATIO, line(), "raw / stored"), self.index, raw / bytes);
        if self.method != EXTERNAL {
            let compressed = format!("SELECT count(*) FROM {TABLE} WHERE pg_column_compression(body) = '{}'", self.method);
            let share = self.target.number(client, &compressed)? / (self.corpus.values.len() * self.options.repeat) as f64;
            self.collector.add(Key::higher("Values stored by the method", line(), "%"), self.index, share * 100.0);
        }
        Ok(())
    }
}

const SIZE: &str = "Size of the table with index and TOAST";
const RATIO: &str = "Compression ratio";

fn section(what: &str, clients: usize) -> String {
    format!("{what}, {clients} {}", if clients == 1 { "client" } else { "clients" })
}

fn line(corpus: &Corpus, method: &str) -> String {
    format!("{}, {method}", corpus.name)
}
