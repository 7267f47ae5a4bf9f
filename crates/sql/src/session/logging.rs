//! A session's messages to the server log: its statements, their durations, and its errors.
//!
//! With the default settings a statement costs one branch here (`Policy::is_quiet`). Steps that are logged are also traced (`traces`).

use std::sync::Arc;
use std::time::Duration;

use melba_serverlog::{Entry, Level, Source, Statements, TransactionIds};
use melba_types::{DbError, Severity, SqlState};
use pg_query::NodeEnum as N;
use pg_query::protobuf::ExplainStmt;

use melba_parse::Statement;
use melba_parse::command::{self, Logged};
use melba_statement::prepared::BoundName;
use melba_statement::value_io::parameter_list;

use super::Session;
use super::log_state::PendingDuration;
use super::traces::{self, TracedStep};

/// The step of a statement that took some time.
enum Step<'a> {
    Statement,
    Parse(&'a str),
    Bind(&'a str, Option<&'a BoundName>),
    Execute { portal: &'a str, bound: Option<&'a BoundName>, is_fetch: bool },
}

impl Session {
    /// A message about a statement comes.
    #[inline]
    pub(super) fn begin_logging(&mut self) {
        self.logging.has_text = false;
        self.logging.began = match self.derived.log.is_quiet {
            true => 0,
            false => self.state.instance.cluster.clock.now_micros(),
        };
        if self.logging.began != 0 {
            traces::begin_step(self);
        }
    }

    /// A transaction begins: whether its statements are in the sample.
    pub(super) fn sample_transaction(&mut self) {
        let rate = self.derived.log.transaction_sample_rate;
        self.logging.is_sampled = rate > 0.0 && (rate >= 1.0 || self.draw() < rate);
    }

    /// A statement is started.
    #[inline]
    pub(super) fn note_command(&mut self, statement: &Statement) {
        self.logging.command = Some(command::tag(&statement.node));
    }

    /// log_statement, of a text of the simple protocol.
    #[inline]
    pub(super) fn log_text<'n>(&mut self, nodes: impl IntoIterator<Item = &'n N>) {
        let wanted = self.derived.log.statements;
        if wanted == Statements::None {
            return;
        }
        let is_wanted = |node: &N| self.kind(node) <= wanted;
        if nodes.into_iter().any(is_wanted) {
            let message = format!("statement: {}", self.source);
            self.say(&message, self.prepared_text());
            self.logging.has_text = true;
        }
    }

    /// The same, of a portal that is executed.
    pub(super) fn log_execution(&mut self, portal: &str, bound: &BoundName, is_fetch: bool) {
        let wanted = self.derived.log.statements;
        let Some(statement) = bound.prepared.statement.as_ref().filter(|_| wanted != Statements::None) else { return };
        if self.kind(&statement.node) <= wanted {
            let message = self.step_text(&Step::Execute { portal, bound: Some(bound), is_fetch });
            let detail = self.parameters_text(Some(bound), self.derived.log.parameter_max);
            self.say(&message, detail);
            self.logging.has_text = true;
        }
    }

    /// A step has ended well: its duration, with its text unless that was logged already. One that commits ends with the commit.
    #[inline]
    pub(super) fn end_logged_statement(&mut self) {
        if !self.derived.log.is_quiet {
            self.end_timed(&Step::Statement);
        }
    }

    /// The same, of Parse.
    #[inline]
    pub(super) fn end_logged_parse(&mut self, name: &str) {
        if !self.derived.log.is_quiet {
            self.end_timed(&Step::Parse(name));
        }
    }

    /// The same, of Bind.
    #[inline]
    pub(super) fn end_logged_bind(&mut self, portal: &str, bound: Option<&BoundName>) {
        if !self.derived.log.is_quiet {
            self.end_timed(&Step::Bind(portal, bound));
        }
    }

    /// The same, for Execute; `is_fetch`: it continued a portal.
    #[inline]
    pub(super) fn end_logged_execute(&mut self, portal: &str, bound: Option<&BoundName>, is_fetch: bool) {
        if !self.derived.log.is_quiet {
            self.end_timed(&Step::Execute { portal, bound, is_fetch });
        }
    }

    fn end_timed(&mut self, step: &Step<'_>) {
        // A statement that has switched logging on began with its command.
        let began = if self.logging.began == 0 { self.statement_start } else { self.logging.began };
        let traced = match step {
            Step::Statement | Step::Execute { .. } => TracedStep::Execution,
            Step::Parse(_) => TracedStep::Parse,
            Step::Bind(..) => TracedStep::Bind,
        };
        traces::end_step(self, traced, began);
        if self.is_committing() {
            let message = if self.logging.has_text { String::new() } else { self.step_text(step) };
            let detail = if self.logging.has_text { None } else { self.step_detail(step) };
            self.logging.pending = Some(PendingDuration { began, message, detail });
            return;
        }
        let Some(with_text) = self.duration_policy(began) else { return };
        let with_text = with_text && !self.logging.has_text;
        let (text, detail) = match with_text {
            true => (self.step_text(step), self.step_detail(step)),
            false => (String::new(), None),
        };
        self.say_duration(began, &text, detail);
    }

    /// The commit that a statement waited for is durable.
    #[inline]
    pub(super) fn end_logged_commit(&mut self) {
        traces::end_commit(self);
        if let Some(pending) = self.logging.pending.take()
            && let Some(with_text) = self.duration_policy(pending.began)
        {
            let (text, detail) = if with_text { (pending.message, pending.detail) } else { (String::new(), None) };
            self.say_duration(pending.began, &text, detail);
        }
    }

    fn took(&self, began: i64) -> Duration {
        Duration::from_micros((self.state.instance.cluster.clock.now_micros() - began).max(0) as u64)
    }

    fn duration_policy(&self, began: i64) -> Option<bool> {
        self.derived.log.of_duration(self.took(began), self.logging.is_sampled, || self.draw())
    }

    /// A random number in 0..1.
    pub(super) fn draw(&self) -> f64 {
        (self.state.instance.cluster.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn say_duration(&self, began: i64, text: &str, detail: Option<String>) {
        let took = self.took(began).as_secs_f64() * 1000.0;
        let space = if text.is_empty() { "" } else { "  " };
        self.say(&format!("duration: {took:.3} ms{space}{text}"), detail);
    }

    fn step_text(&self, step: &Step<'_>) -> String {
        let unnamed = |name: &str| if name.is_empty() { "<unnamed>".to_owned() } else { name.to_owned() };
        let of_portal = |bound: Option<&BoundName>, portal: &str| {
            let slash = if portal.is_empty() { "" } else { "/" };
            format!("{}{slash}{portal}", unnamed(bound.map_or("", |bound| &bound.statement)))
        };
        let source = &self.source;
        match step {
            Step::Statement => format!("statement: {source}"),
            Step::Parse(name) => format!("parse {}: {source}", unnamed(name)),
            Step::Bind(portal, bound) => format!("bind {}: {source}", of_portal(*bound, portal)),
            Step::Execute { portal, bound, is_fetch } => {
                let execute = if *is_fetch { "execute fetch from" } else { "execute" };
                format!("{execute} {}: {source}", of_portal(*bound, portal))
            }
        }
    }

    fn step_detail(&self, step: &Step<'_>) -> Option<String> {
        match step {
            Step::Statement => self.prepared_text(),
            Step::Parse(_) => None,
            Step::Bind(_, bound) | Step::Execute { bound, .. } => self.parameters_text(*bound, self.derived.log.parameter_max),
        }
    }

    /// The text of PREPARE that EXECUTE runs.
    fn prepared_text(&self) -> Option<String> {
        let (first, rest) = self.source.trim_start().split_at_checked("execute".len())?;
        if !first.eq_ignore_ascii_case("execute") {
            return None;
        }
        let name: String = rest.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let prepared = self.prepared.get(&name).or_else(|| self.prepared.get(&name.to_lowercase()))?;
        Some(format!("prepare: {}", prepared.source()))
    }

    fn parameters_text(&self, bound: Option<&BoundName>, max: Option<usize>) -> Option<String> {
        let bound = bound.filter(|bound| !bound.parameters.is_empty() && max != Some(0))?;
        Some(format!("Parameters: {}", self.parameter_list(bound, max)))
    }

    fn parameter_list(&self, bound: &BoundName, max: Option<usize>) -> String {
        parameter_list(&self.context, &bound.prepared.parameter_types, &bound.parameters, max)
    }

    fn say(&self, message: &str, detail: Option<String>) {
        let mut entry = self.entry(Entry::new(Level::Log, message));
        entry.detail = detail.map(Into::into);
        self.state.instance.log().emit(&self.state.log_source, self.derived.log.verbosity, &entry);
        // A client with client_min_messages = log reads along.
        let told = DbError::new(SqlState::SUCCESSFUL_COMPLETION, message.to_owned()).severity(Severity::Log);
        self.state.send(match entry.detail {
            Some(detail) => told.detail(detail.into_owned()),
            None => told,
        });
    }

    fn entry<'e>(&self, mut entry: Entry<'e>) -> Entry<'e> {
        entry.command = self.logging.command.unwrap_or("idle");
        entry.query_id = self.state.activity.query_id();
        entry.transaction = TransactionIds {
            virtual_id: Some((self.state.pid, 0)),
            xid: self.transaction.as_ref().and_then(|t| t.tx.xid_if_assigned()).unwrap_or(0),
        };
        entry
    }

    /// Logs an error on its way to the client, its position in characters already.
    pub fn log_error(&self, error: &DbError) {
        let level = Level::from(error.fields().severity);
        let policy = &self.derived.log;
        if level < policy.min_messages || self.state.instance.log().is_silent() {
            return;
        }
        let mut entry = self.entry(Entry::of(error));
        let source = Arc::clone(&self.source);
        if level >= policy.min_error_statement && !source.is_empty() && self.busy {
            entry.statement = Some(source.as_ref().into());
        } else {
            entry.position = None;
        }
        self.state.instance.log().emit(&self.state.log_source, policy.verbosity, &entry);
    }

    /// The session ends.
    pub fn log_disconnection(&self) {
        if !self.derived.log.disconnections {
            return;
        }
        let source: &Source = &self.state.log_source;
        let Some(client) = &source.client else { return };
        let took = self.took(source.started);
        let seconds = took.as_secs();
        let port = client.port.map_or_else(String::new, |port| format!(" port={port}"));
        let message = format!(
            "disconnection: session time: {}:{:02}:{:02}.{:03} user={} database={} host={}{port}",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60,
            took.subsec_millis(),
            self.state.user,
            self.state.database,
            client.host
        );
        self.say(&message, None);
    }

    /// The error, with the parameters of the portal that failed in its context (log_parameter_max_length_on_error).
    pub(super) fn with_parameters(&self, error: DbError, portal: &str, bound: Option<&BoundName>) -> DbError {
        let max = self.derived.log.parameter_max_on_error;
        let Some(bound) = bound.filter(|bound| max != Some(0) && !bound.parameters.is_empty()) else { return error };
        let portal = if portal.is_empty() { "unnamed portal".to_owned() } else { format!("portal \"{portal}\"") };
        error.within(format!("{portal} with parameters: {}", self.parameter_list(bound, max)))
    }

    /// Which value of log_statement a statement is logged by.
    fn kind(&self, node: &N) -> Statements {
        match node {
            N::ExecuteStmt(execute) => {
                let statement = self.prepared.get(&execute.name).and_then(|p| p.statement.clone());
                statement.map_or(Statements::All, |s| self.kind(&s.node))
            }
            N::PrepareStmt(prepare) => inner(prepare.query.as_deref()).map_or(Statements::All, |node| self.kind(node)),
            N::ExplainStmt(explain) if analyzes(explain) => {
                inner(explain.query.as_deref()).map_or(Statements::All, |node| self.kind(node))
            }
            node => match command::logged(node) {
                Logged::Ddl => Statements::Ddl,
                Logged::Mod => Statements::Mod,
                Logged::All => Statements::All,
            },
        }
    }
}

fn inner(node: Option<&pg_query::protobuf::Node>) -> Option<&N> {
    node.and_then(|node| node.node.as_ref())
}

fn analyzes(explain: &ExplainStmt) -> bool {
    let named = |node: &pg_query::protobuf::Node| matches!(&node.node, Some(N::DefElem(d)) if d.defname == "analyze");
    explain.options.iter().any(named)
}
