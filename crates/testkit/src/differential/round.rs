//! One round: a schema on both servers, statements over it, and the reduction of one that differs.

use std::time::Instant;

use melba_vfs::SeededRandom;

use super::generator::Generator;
use super::judge::{Difference, Reason, Verdict, judge};
use super::reduce::{fewest, reduce};
use super::schema::{Schema, Step, types};
use super::server::{Answer, Rows, TestedServer};
use super::tree::Node;
use super::{DifferentialOptions, Report, change, schema};

const ZONES: [&str; 3] = ["UTC", "America/New_York", "Asia/Kolkata"];

/// Settings that change plans but not answers: a round sets some of them on the tested server.
const TOGGLES: [&str; 15] = [
    "enable_seqscan = off",
    "enable_indexscan = off",
    "enable_indexonlyscan = off",
    "enable_bitmapscan = off",
    "enable_hashjoin = off",
    "enable_mergejoin = off",
    "enable_nestloop = off",
    "enable_hashagg = off",
    "enable_sort = off",
    "enable_memoize = off",
    "enable_material = off",
    "work_mem = '64kB'",
    "min_parallel_table_scan_size = 0",
    "plan_cache_mode = force_generic_plan",
    "plan_cache_mode = force_custom_plan",
];

fn toggles(random: &SeededRandom) -> String {
    if random.chance(50) {
        return String::new();
    }
    TOGGLES.iter().filter(|_| random.chance(20)).map(|toggle| format!("; set {toggle}")).collect()
}

pub struct Round {
    seed: u64,
    random: SeededRandom,
    reference: TestedServer,
    server: TestedServer,
    schema: Schema,
    /// The statements run on both so far, for the script.
    setup: Vec<String>,
    settings: String,
}

/// How a statement is run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Simple,
    Extended,
    /// In a transaction, with a comparison of the tables before it is rolled back.
    Change,
}

impl Round {
    pub fn start(options: &DifferentialOptions, seed: u64) -> Result<Round, String> {
        let random = SeededRandom::new(seed);
        (0..8).for_each(|_| {
            random.below(2);
        });
        let zone = ZONES[random.below(ZONES.len())];
        let settings = format!(
            "set timezone = '{zone}'; set statement_timeout = '10s'; set client_min_messages = error; \
             set search_path = differential_{seed}"
        );
        let mut reference = TestedServer::connect(&options.reference, format!("set jit = off; {settings}"))?;
        let settings = format!("{settings}{}", toggles(&random));
        let mut server = TestedServer::connect(&options.server, settings.clone())?;
        let schema = format!("drop schema if exists differential_{seed} cascade; create schema differential_{seed}");
        for side in [&mut reference, &mut server] {
            match side.simple(&schema) {
                Answer::Rows(_) => {}
                other => return Err(format!("{schema}: {other:?}")),
            }
        }
        let version = reference.version()?;
        let major = version.split([' ', '.']).nth(1).and_then(|word| word.parse::<u32>().ok());
        let schema = Schema { is_modern: major.is_none_or(|major| major >= 18), ..Schema::default() };
        Ok(Round { seed, random, reference, server, schema, setup: Vec::new(), settings })
    }

    pub fn play(&mut self, statements: usize, end: Instant, report: &mut Report) -> Result<(), String> {
        let before = report.differences.len();
        self.set_up(report)?;
        for number in 0..statements {
            // One that keeps coming back, or tables that differ, would fill the report.
            if Instant::now() > end || report.differences.len() > before + 3 {
                break;
            }
            if self.random.chance(2) {
                let change = change::change(&mut Generator::new(&self.random, &self.schema));
                if let Some(change) = change {
                    self.step(Step::new(change.sql()), report)?;
                }
            }
            if self.random.chance(1) {
                // Flushes the changes, so that merges follow.
                self.server.simple("checkpoint");
            }
            let mut generator = Generator::new(&self.random, &self.schema);
            let (node, mode) = match self.random.below(100) {
                0..14 => (change::change(&mut generator), Mode::Change),
                14..20 => (change::script(&mut generator), Mode::Change),
                20..22 => (Some(generator.cursor()), Mode::Change),
                22..45 => (Some(generator.statement()), Mode::Extended),
                _ => (Some(generator.statement()), Mode::Simple),
            };
            let Some(node) = node else { continue };
            // Changes of a WITH query must not stay.
            let mode = if changes(&node) { Mode::Change } else { mode };
            report.statements += 1;
            self.check(&node, mode, number, report)?;
        }
        let schema = format!("drop schema differential_{} cascade", self.seed);
        self.both(&schema);
        Ok(())
    }

    fn set_up(&mut self, report: &mut Report) -> Result<(), String> {
        for step in types() {
            self.step(step, report)?;
        }
        let tables = 3 + self.random.below(3);
        for number in 0..tables {
            let steps = schema::table_steps(&mut Generator::new(&self.random, &self.schema), number);
            for step in steps {
                self.step(step, report)?;
            }
        }
        for number in 0..3 + self.random.below(2) {
            let mut generator = Generator::new(&self.random, &self.schema);
            let simple = if number == 0 { schema::simple_view_step(&mut generator, number) } else { None };
            let step = simple.unwrap_or_else(|| schema::view_step(&mut generator, number));
            self.step(step, report)?;
            // One that only ever fails would take the statements over it with it.
            let view = format!("select * from v{number}");
            self.step(Step::new(view.clone()), report)?;
            if self.setup.pop_if(|last| *last == view).is_none() {
                self.schema.tables.retain(|t| t.name != format!("v{number}"));
            }
        }
        // Some changes stay, so that rows have versions and indexes have entries of deleted rows.
        for _ in 0..self.random.below(6) {
            let change = change::change(&mut Generator::new(&self.random, &self.schema));
            if let Some(change) = change {
                self.step(Step::new(change.sql()), report)?;
            }
        }
        if self.random.chance(30) {
            self.server.simple("checkpoint");
        }
        let contents = self.contents();
        let (expected, actual) = (self.reference.simple(&contents), self.server.simple(&contents));
        self.recover(&actual)?;
        let statement = Node::text(super::tree::Sort::Statement, contents.clone());
        if let Verdict::Different(difference) = judge(&statement, &expected, &actual) {
            let script = self.script(&format!("{contents};"));
            self.note(self.describe("after the setup", &difference, &expected, &actual, &script), report);
        }
        Ok(())
    }

    /// A statement of the setup; its object exists when it succeeds on both.
    fn step(&mut self, step: Step, report: &mut Report) -> Result<(), String> {
        self.both("begin");
        let (expected, actual) = (self.reference.simple(&step.sql), self.server.simple(&step.sql));
        self.recover(&actual)?;
        // A change that only one side accepts must not stay.
        let both = matches!((&expected, &actual), (Answer::Rows(_), Answer::Rows(_)));
        let end = if both { "commit" } else { "rollback" };
        self.both(end);
        let statement = Node::text(super::tree::Sort::Statement, step.sql.clone()).fallible(true);
        if both {
            self.schema.tables.extend(step.table);
            self.setup.push(step.sql.clone());
        }
        match judge(&statement, &expected, &actual) {
            Verdict::Different(difference) => {
                let script = self.script(&format!("{};", step.sql));
                let text = self.describe("setup", &difference, &expected, &actual, &script);
                self.note(text, report);
            }
            Verdict::Refused(message) => *report.refused.entry(message).or_default() += 1,
            Verdict::Explained(reason) => *report.explained.entry(reason).or_default() += 1,
            Verdict::Same | Verdict::SameError => {}
        }
        Ok(())
    }

    fn check(&mut self, node: &Node, mode: Mode, number: usize, report: &mut Report) -> Result<(), String> {
        let (verdict, expected, actual) = self.compare(node, mode)?;
        if let Answer::Rows(rows) = &expected {
            report.rows += rows.rows.len();
        }
        match verdict {
            Verdict::Same => {}
            Verdict::SameError => {
                let Answer::Error { state, message } = &expected else { return Ok(()) };
                let entry = report.errors.entry(state.clone()).or_insert((0, String::new()));
                *entry = (entry.0 + 1, message.clone());
            }
            Verdict::Explained(reason) => *report.explained.entry(reason).or_default() += 1,
            Verdict::Refused(message) => *report.refused.entry(message).or_default() += 1,
            Verdict::Different(difference) => {
                let text = self.investigate(node, mode, number, &difference, (&expected, &actual))?;
                self.note(text, report);
            }
        }
        Ok(())
    }

    /// Runs a statement on both sides.
    fn compare(&mut self, node: &Node, mode: Mode) -> Result<(Verdict, Answer, Answer), String> {
        let (sql, parameters) = node.prepared();
        match mode {
            Mode::Simple => self.ask(node, |side| side.simple(&node.sql())),
            Mode::Extended => self.ask(node, |side| side.extended(&sql, &parameters)),
            Mode::Change => self.compare_change(node),
        }
    }

    /// Runs statements in a transaction until one differs; then compares the tables.
    fn compare_change(&mut self, node: &Node) -> Result<(Verdict, Answer, Answer), String> {
        let tables = Node::text(super::tree::Sort::Statement, self.contents());
        self.both("begin");
        let mut last = Ok((Verdict::Same, Answer::Rows(Rows::default()), Answer::Rows(Rows::default())));
        for statement in node.statements().into_iter().chain([&tables]) {
            last = self.ask(statement, |side| side.simple(&statement.sql()));
            if !matches!(last, Ok((Verdict::Same, ..))) {
                break;
            }
        }
        for side in [&mut self.reference, &mut self.server] {
            // A timeout that strikes when the statement has just ended is the answer to the first.
            if !matches!(side.simple("rollback"), Answer::Rows(_)) {
                side.simple("rollback");
            }
        }
        last
    }

    fn both(&mut self, sql: &str) {
        self.reference.simple(sql);
        self.server.simple(sql);
    }

    /// The answers of both sides to `statement`.
    fn ask(&mut self, statement: &Node, run: impl Fn(&mut TestedServer) -> Answer) -> Result<(Verdict, Answer, Answer), String> {
        let (expected, actual) = (run(&mut self.reference), run(&mut self.server));
        self.recover(&actual)?;
        if let Answer::Lost(error) = &expected {
            eprintln!("PostgreSQL is lost: {error}: {}", statement.sql());
            self.reference.again()?;
            return Ok((Verdict::Explained(Reason::Crash), expected, actual));
        }
        Ok((judge(statement, &expected, &actual), expected, actual))
    }

    fn recover(&mut self, actual: &Answer) -> Result<(), String> {
        if let Answer::Lost(_) = actual { self.server.again() } else { Ok(()) }
    }

    /// All rows of all tables that can be changed, as one query.
    fn contents(&self) -> String {
        let tables = self.schema.tables.iter().filter(|t| !t.is_view);
        let selects: Vec<String> = tables.map(|t| format!("select '{0}' as name, x::text as row from {0} x", t.name)).collect();
        selects.join(" union all ")
    }

    /// Reduces a statement that differs, and writes the script that repeats it.
    fn investigate(
        &mut self,
        node: &Node,
        mode: Mode,
        number: usize,
        difference: &Difference,
        (expected, actual): (&Answer, &Answer),
    ) -> Result<String, String> {
        // Without parameters the script is plainer, where it differs so too.
        let mode = match mode {
            Mode::Extended if self.differs(node, Mode::Simple, difference) => Mode::Simple,
            mode => mode,
        };
        let reduced = reduce(node, &mut |candidate| self.differs(candidate, mode, difference));
        let (_, expected_now, actual_now) = self.compare(&reduced, mode)?;
        let statement = match mode {
            Mode::Simple => format!("{};", reduced.sql()),
            Mode::Change => format!("begin;\n{};\n{};\nrollback;", reduced.sql(), self.contents()),
            Mode::Extended => {
                let (sql, parameters) = reduced.prepared();
                let execute = |values: Vec<String>| match values.is_empty() {
                    true => "execute p;".to_owned(),
                    false => format!("execute p({});", values.join(", ")),
                };
                let first = execute(parameters.iter().map(|p| p.sql()).collect());
                let second = execute(parameters.iter().map(|p| p.following().sql()).collect());
                format!("prepare p as {sql};\n{first}\n{second}")
            }
        };
        let needed = self.needed(&statement);
        let needed = self.shortest_setup(needed, &reduced, mode, difference);
        let script = self.script_of(&needed, &statement);
        let place = format!("statement {number}, first {:?} / {:?}", short(expected, actual), short(actual, expected));
        Ok(self.describe(&place, difference, &expected_now, &actual_now, &script))
    }

    fn differs(&mut self, node: &Node, mode: Mode, difference: &Difference) -> bool {
        matches!(self.compare(node, mode), Ok((Verdict::Different(found), _, _)) if found == *difference)
    }

    /// The statements of the setup that `statement` needs, and itself.
    fn script(&self, statement: &str) -> String {
        self.script_of(&self.needed(statement), statement)
    }

    fn needed(&self, statement: &str) -> Vec<String> {
        let mut needed = Vec::new();
        let mut words: Vec<String> = tokens(statement);
        for sql in self.setup.iter().rev() {
            let own = tokens(sql);
            let is_type = sql.starts_with("create type") || sql.starts_with("create domain");
            let makes = own.iter().filter(|w| is_table(w)).any(|w| words.contains(w));
            if is_type || makes {
                words.extend(own.into_iter().filter(|w| is_table(w)));
                needed.push(sql.clone());
            }
        }
        needed.reverse();
        needed
    }

    fn script_of(&self, setup: &[String], statement: &str) -> String {
        let mut script = format!("create schema differential_{0};\n{1};\n", self.seed, self.settings.replace("; ", ";\n"));
        setup.iter().for_each(|sql| script.push_str(&format!("{sql};\n")));
        script + statement
    }

    /// Tries the statement over less: a setup without some of its statements, then without some of its rows, in the same schema
    /// created again. That is restored afterwards.
    fn shortest_setup(&mut self, setup: Vec<String>, statement: &Node, mode: Mode, difference: &Difference) -> Vec<String> {
        let differs = &mut |setup: &[String]| {
            self.make(setup);
            self.differs(statement, mode, difference)
        };
        if !differs(&setup) {
            // It takes more than the statements that name its tables.
            let all = self.setup.clone();
            self.make(&all);
            return all;
        }
        let mut best = fewest(&setup, differs);
        for place in 0..best.len() {
            let sql = best[place].clone();
            let Some((head, rows)) = sql.split_once(" values\n  ") else { continue };
            let rows: Vec<&str> = rows.split(",\n  ").collect();
            let with = |rows: &[&str]| format!("{head} values\n  {}", rows.join(",\n  "));
            let rows = fewest(&rows, &mut |rows| {
                let mut setup = best.clone();
                setup[place] = with(rows);
                !rows.is_empty() && differs(&setup)
            });
            best[place] = with(&rows);
        }
        let all = self.setup.clone();
        self.make(&all);
        best
    }

    /// Creates the schema again, on both sides.
    fn make(&mut self, setup: &[String]) {
        let schema = format!("drop schema if exists differential_{0} cascade; create schema differential_{0}", self.seed);
        for side in [&mut self.reference, &mut self.server] {
            side.simple(&schema);
            // A statement that lacks another's object fails, and the answers are the same then.
            setup.iter().for_each(|sql| {
                side.simple(sql);
            });
        }
    }

    fn note(&self, text: String, report: &mut Report) {
        println!("{text}");
        report.differences.push(text);
    }

    fn describe(&self, place: &str, difference: &Difference, expected: &Answer, actual: &Answer, script: &str) -> String {
        format!(
            "=== seed {} {place}: {difference:?}\n{script}\n--- PostgreSQL: {}\n--- Melba:      {}\n",
            self.seed,
            short(expected, actual),
            short(actual, expected)
        )
    }
}

fn changes(node: &Node) -> bool {
    let sql = node.sql();
    sql.starts_with("with")
        && ["insert into", "update t", "update v", "delete from", "merge into"].iter().any(|w| sql.contains(w))
}

fn tokens(sql: &str) -> Vec<String> {
    sql.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty()).map(str::to_owned).collect()
}

/// Names in schemas: t0, t0_p1, t1_child, v0.
fn is_table(word: &str) -> bool {
    let rest = word.strip_prefix(['t', 'v']).unwrap_or("");
    rest.starts_with(|c: char| c.is_ascii_digit())
}

/// An answer in a few lines: of many rows, those that the other answer does not have.
fn short(answer: &Answer, other: &Answer) -> String {
    const ROWS_MAX: usize = 12;
    match answer {
        Answer::Error { state, message } => format!("{state} {message}"),
        Answer::Lost(error) => format!("lost: {error}"),
        Answer::Rows(rows) => {
            let mut shown = sorted_rows(rows);
            if let (true, Answer::Rows(others)) = (shown.len() > ROWS_MAX, other) {
                for row in sorted_rows(others) {
                    if let Some(at) = shown.iter().position(|r| *r == row) {
                        shown.remove(at);
                    }
                }
            }
            shown.truncate(ROWS_MAX);
            format!("{} rows, tag {}: {}", rows.rows.len(), rows.affected, shown.join(" "))
        }
    }
}

fn sorted_rows(rows: &Rows) -> Vec<String> {
    let show = |row: &Vec<Option<Vec<u8>>>| {
        let values = row.iter().map(|v| v.as_ref().map_or("NULL".to_owned(), |v| String::from_utf8_lossy(v).into_owned()));
        format!("({})", values.collect::<Vec<_>>().join("|"))
    };
    let mut sorted: Vec<String> = rows.rows.iter().map(show).collect();
    sorted.sort();
    sorted
}
