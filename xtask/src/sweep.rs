//! `cargo xtask sweep`: calls every function with arguments as large as fit a short time, under a timeout of a tenth of a second
//! more than they take. Each call must return or be ended in time, and the server must survive.
//!
//! Functions, those of operators and aggregates among them, are pg_proc's; casts by input and output are of pg_type's types.
//! Statements that functions alone do not cover are in tests/sweep/statements.sql.

mod values;

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use values::VALUES;

use crate::melba::{Address, Melba, ask};
use crate::messages::Wire;
use crate::root;
use crate::shapes::processor_seconds;

/// The time for a statement beside its arguments.
const TIMEOUT: Duration = Duration::from_millis(100);
/// The tolerance for a busy machine: later than this, each time, is too late.
const SLACK: Duration = Duration::from_millis(400);
const ATTEMPTS: usize = 3;
const PATIENCE: Duration = Duration::from_secs(300);
/// Calls of one function, of all combinations of its arguments' values.
const CALLS_MAX: usize = 16;
/// Combinations that are tried to find them.
const LOOKED_MAX: usize = 100_000;
/// They pick among these, and must not divide their number.
const STRIDE: usize = 7919;
/// Left out: they end or hold up other sessions, or write files.
const DANGEROUS: &str = "'pg_terminate_backend', 'pg_cancel_backend', 'lo_export', 'set_config'";

const FUNCTIONS: &str = "select p.proname, p.prokind, p.proretset, p.provariadic <> 0, coalesce(a.aggnumdirectargs, 0),
        coalesce(a.aggkind, 'n'), (select string_agg(t.typname, ' ' order by n) from unnest(p.proargtypes) with ordinality u(ty, n)
            join pg_type t on t.oid = ty) as args
    from pg_proc p left join pg_aggregate a on a.aggfnoid = p.oid
    where p.pronargs > 0 and p.pronamespace = 'pg_catalog'::regnamespace and p.proname not in (DANGEROUS) order by 1, 7";
const TYPES: &str =
    "select format_type(oid, null) from pg_type where typtype in ('b', 'r', 'm') and typcategory <> 'A' order by 1";

/// A function, and how it is called.
struct Function {
    name: String,
    kind: String,
    returns_set: bool,
    is_variadic: bool,
    direct: usize,
    aggregate_kind: String,
    args: Vec<String>,
}

impl Function {
    fn parse(line: &str) -> Option<Function> {
        let fields: Vec<&str> = line.split('|').collect();
        let [name, kind, set, variadic, direct, aggregate, args] = fields[..] else { return None };
        Some(Function {
            name: name.to_owned(),
            kind: kind.to_owned(),
            returns_set: set == "t",
            is_variadic: variadic == "t",
            direct: direct.parse().ok()?,
            aggregate_kind: aggregate.to_owned(),
            args: args.split(' ').map(str::to_owned).collect(),
        })
    }

    /// A statement that calls it.
    fn call(&self, values: &[&str]) -> String {
        let mut args: Vec<String> = values.iter().map(|v| (*v).to_owned()).collect();
        if let (true, Some(last)) = (self.is_variadic && self.args.last().is_some_and(|a| a != "any"), args.last_mut()) {
            last.insert_str(0, "variadic ");
        }
        let name = format!("pg_catalog.\"{}\"", self.name);
        let list = args.join(", ");
        match &*self.kind {
            "a" if self.aggregate_kind != "n" => {
                let (direct, ordered) = args.split_at(self.direct.min(args.len()));
                let (direct, ordered) = (direct.join(", "), ordered.join(", "));
                format!("select num_nulls({name}({direct}) within group (order by {ordered})) from generate_series(1, 20) i")
            }
            "a" => format!("select num_nulls({name}({list})) from generate_series(1, 20) i"),
            "w" => format!("select count(f) from (select {name}({list}) over (order by i) f from generate_series(1, 20000) i) q"),
            _ if self.returns_set => format!("select count(*) from {name}({list})"),
            _ => format!("select num_nulls({name}({list}))"),
        }
    }

    /// Calls with combinations of its arguments' values, one of them large in each; none when a type has no values.
    fn calls(&self) -> Vec<(String, Vec<String>)> {
        let choices: Option<Vec<_>> = self.args.iter().map(|ty| VALUES.iter().find(|v| v.types.contains(&&**ty))).collect();
        let Some(choices) = choices else { return Vec::new() };
        let all = choices.iter().fold(1usize, |all, c| all.saturating_mul(c.large.len() + c.small.len()));
        let mut calls = Vec::new();
        for i in 0..all.min(LOOKED_MAX) {
            let mut number = i * STRIDE % all;
            let (mut values, mut is_large) = (Vec::new(), false);
            for (choice, ty) in choices.iter().zip(&self.args) {
                let count = choice.large.len() + choice.small.len();
                let at = number % count;
                number /= count;
                is_large |= at < choice.large.len();
                values.push(cast(choice.large.get(at).unwrap_or_else(|| &choice.small[at - choice.large.len()]), ty));
            }
            if is_large && calls.len() < CALLS_MAX {
                let names: Vec<&str> = values.iter().map(String::as_str).collect();
                calls.push((self.call(&names), values));
            }
        }
        calls
    }
}

/// A value, as the type that a function wants.
fn cast(value: &str, ty: &str) -> String {
    match ty {
        "any" | "record" | "cstring" => value.to_owned(),
        ty if ty.starts_with("any") => value.to_owned(),
        ty => format!("({value})::pg_catalog.\"{ty}\""),
    }
}

/// The connection, the durations of arguments, and the results of the calls.
struct Sweep {
    wire: Wire,
    address: Address,
    /// Of a server whose processor time counts, as others may have the processors.
    pid: Option<u32>,
    takes: HashMap<String, Duration>,
    outcomes: BTreeMap<String, usize>,
    faults: Vec<String>,
}

impl Sweep {
    /// Runs a statement: its SQLSTATE or "", how long it took, and how long with the processors its own.
    fn run(&mut self, sql: &str, timeout: Duration) -> Result<(String, Duration, Duration), String> {
        self.wire.query(&format!("set statement_timeout = {}", timeout.as_millis()));
        self.wire.send()?;
        self.wire.until(b'Z')?;
        let (began, used) = (Instant::now(), self.pid.map(processor_seconds));
        self.wire.query(sql);
        self.wire.send()?;
        let mut state = String::new();
        loop {
            match self.wire.message()? {
                (b'E', body) => state = outcome(&body),
                (b'Z', _) => break,
                _ => {}
            }
        }
        let took = began.elapsed();
        let used = self.pid.zip(used).map(|(pid, used)| Duration::from_secs_f64((processor_seconds(pid) - used).max(0.0)));
        Ok((state, took, used.map_or(took, |used| used.min(took))))
    }

    /// The duration of an argument alone.
    fn takes(&mut self, value: &str) -> Result<Duration, String> {
        if let Some(known) = self.takes.get(value) {
            return Ok(*known);
        }
        let (_, took, _) = self.run(&format!("select num_nulls({value})"), PATIENCE)?;
        self.takes.insert(value.to_owned(), took);
        Ok(took)
    }

    fn judge(&mut self, sql: &str, values: &[String]) -> Result<(), String> {
        let mut timeout = TIMEOUT;
        for value in values {
            timeout += self.takes(value)? * 5 / 4;
        }
        let mut soonest = Duration::MAX;
        for _ in 0..ATTEMPTS {
            let (state, _, used) = self.run(sql, timeout)?;
            soonest = soonest.min(used.saturating_sub(timeout));
            if state == "XX000" {
                self.fault(format!("XX000: {sql}"));
            }
            if soonest <= SLACK {
                *self.outcomes.entry(state).or_default() += 1;
                return Ok(());
            }
        }
        self.fault(format!("{:.1} s late: {sql}", soonest.as_secs_f64()));
        Ok(())
    }

    fn fault(&mut self, text: String) {
        println!("{text}");
        self.faults.push(text);
    }

    /// One statement; a connection that it loses is a fault, a server that it ends ends the sweep.
    fn throw(&mut self, sql: &str, values: &[String]) -> Result<(), String> {
        if let Err(e) = self.judge(sql, values) {
            self.fault(format!("{e}: {sql}"));
            self.wire = Wire::connect(&self.address, PATIENCE).map_err(|e| format!("the server is gone: {e}: {sql}"))?;
        }
        Ok(())
    }
}

/// An error's SQLSTATE. The error for values that are too long has PostgreSQL's code for internal errors there too.
fn outcome(body: &[u8]) -> String {
    let field = |letter: u8| body.split(|b| *b == 0).find(|f| f.first() == Some(&letter)).map_or(&b""[..], |f| &f[1..]);
    if field(b'M').starts_with(b"invalid memory alloc request size") {
        return "too large".to_owned();
    }
    String::from_utf8_lossy(field(b'C')).into_owned()
}

/// Whether a function, type or statement is wanted: one with `filter` in its name, with `from..` one from there on, with `from..to`
/// one of those before `to`.
fn is_wanted(name: &str, filter: &str) -> bool {
    match filter.split_once("..") {
        Some((from, to)) => name >= from && (to.is_empty() || name < to),
        None => name.contains(filter),
    }
}

/// All calls, or those of functions, types and statements that `filter` wants.
pub fn sweep(filter: &str, server: Option<Address>) -> Result<(), String> {
    let melba = if server.is_none() { Some(Melba::fresh("sweep")?) } else { None };
    let address = server.or_else(|| melba.as_ref().map(|m| m.address.clone())).ok_or("no server")?;
    let wire = Wire::connect(&address, PATIENCE)?;
    let mut sweep = Sweep {
        wire,
        address: address.clone(),
        pid: melba.as_ref().map(Melba::pid),
        takes: HashMap::new(),
        outcomes: BTreeMap::new(),
        faults: Vec::new(),
    };
    let functions = ask(&address, &FUNCTIONS.replace("DANGEROUS", DANGEROUS))?;
    for function in functions.lines().filter_map(Function::parse).filter(|f| is_wanted(&f.name, filter)) {
        for (sql, values) in function.calls() {
            sweep.throw(&sql, &values)?;
        }
    }
    for ty in ask(&address, TYPES)?.lines().filter(|t| is_wanted(t, filter)) {
        for value in VALUES.iter().flat_map(|v| v.large) {
            let text = format!("({value})::text");
            sweep.throw(&format!("select num_nulls(({text})::{ty})"), std::slice::from_ref(&text))?;
        }
    }
    let file = root().join("tests/sweep/statements.sql");
    let statements = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    for sql in statements.split(";\n").filter(|s| !s.is_empty() && is_wanted(s, filter)) {
        sweep.throw(sql, &[])?;
    }
    let outcomes: Vec<String> =
        sweep.outcomes.iter().map(|(state, n)| format!("{n} {}", if state.is_empty() { "answers" } else { state })).collect();
    println!("sweep: {}", outcomes.join(", "));
    if !sweep.faults.is_empty() {
        return Err(format!("sweep: {} faults", sweep.faults.len()));
    }
    melba.map_or(Ok(()), Melba::stop)
}
