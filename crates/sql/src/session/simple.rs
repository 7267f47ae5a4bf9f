//! The simple query protocol: one string, any number of statements, one transaction unless they say otherwise.

use std::sync::Arc;

use melba_types::Result;
use pg_query::NodeEnum;

use melba_parse::{Parsed, Statement};

use super::Session;
use super::cache::Cached;
use super::client::Client;
use super::outcome::Outcome;
use super::prepared::{Bound, Prepared};
use super::statement_counts::measure::rows_of;

impl Session {
    pub(super) fn simple_query(&mut self, text: &str, client: &mut dyn Client) -> Result<()> {
        // The unnamed statement and portal last until the next Query message.
        self.prepared.remove("");
        self.state.portals.remove("");
        self.set_source(&text.into());
        self.start_command()?;
        self.warn_of_escapes(text);
        if let Some(bound) = self.bind_literals(text)? {
            self.announce();
            self.log_text(bound.prepared.statement.iter().map(|s| &s.node));
            self.state.interrupt.check()?;
            let tag = self.run_simple(bound, client)?;
            self.lend(client, Session::finish_command)?;
            return self.complete(&tag, client);
        }
        let (parsed, mut known) = match self.cache.get(text.as_bytes()) {
            Some(Cached::Query { parsed, prepared }) => (parsed.clone(), prepared.clone()),
            _ => (Arc::new(self.parse_text(text)?), None),
        };
        self.set_source(&parsed.text);
        self.announce();
        self.log_text(parsed.statements.iter().map(|s| &s.node));
        let last = parsed.statements.len().wrapping_sub(1);
        for (i, statement) in parsed.statements.iter().enumerate() {
            self.check_block(statement)?;
            // All statements of a message have its time.
            self.join_command()?;
            if parsed.statements.len() > 1 {
                self.begin_implicit_block();
            }
            self.state.interrupt.check()?;
            let prepared = self.lend(client, |session| session.prepare_simple(&parsed, statement, known.take()))?;
            let tag = self.run_simple(Bound { prepared, parameters: Arc::from([]) }, client)?;
            if i == last {
                self.end_implicit_block();
                self.lend(client, Session::finish_command)?;
            } else if matches!(statement.node, NodeEnum::TransactionStmt(_)) {
                self.lend(client, Session::finish_command)?;
            }
            self.complete(&tag, client)?;
        }
        if parsed.statements.is_empty() {
            self.finish_command()?;
            client.output().empty_query_response();
        }
        Ok(())
    }

    fn complete(&mut self, tag: &str, client: &mut dyn Client) -> Result<()> {
        self.send_notices(client);
        self.state.interrupt.end_statement();
        client.output().command_complete(tag);
        if self.is_committing() { Ok(()) } else { client.flush_when_large() }
    }

    /// Analyzes a statement, unless the cache had it and the catalog is still the same.
    fn prepare_simple(
        &mut self,
        parsed: &Arc<Parsed>,
        statement: &Arc<Statement>,
        known: Option<Arc<Prepared>>,
    ) -> Result<Arc<Prepared>> {
        if let Some(prepared) = known
            && prepared.compiled.is_for(self.context())
        {
            return Ok(prepared);
        }
        let prepared = match self.prepare(Some(statement.clone()), &[]) {
            Ok(prepared) => Arc::new(prepared),
            Err(error) => {
                // That there are parameters at all is the first thing to say.
                super::planning::refuse_parameters(self.context(), statement)?;
                return Err(error);
            }
        };
        if !prepared.parameter_types.is_empty() {
            super::planning::refuse_parameters(self.context(), statement)?;
        }
        let reusable = parsed.statements.len() == 1 && prepared.compiled.is_reusable();
        let entry = Cached::Query { parsed: parsed.clone(), prepared: reusable.then(|| prepared.clone()) };
        self.cache.put(parsed.text.as_bytes(), entry);
        Ok(prepared)
    }

    fn fails_when_planned(&mut self, statement: Option<Arc<Statement>>) -> bool {
        let Some(mut statement) = statement else { return false };
        if !statement.literals.is_empty() {
            // It stands for all texts of its form; this one's literals are in its text.
            let parsed = self.parse_text(&self.source);
            match parsed.ok().and_then(|parsed| parsed.statements.into_iter().next()) {
                Some(own) => statement = own,
                None => return false,
            }
        }
        super::planning::fails_when_planned(self.context(), &statement)
    }

    fn run_simple(&mut self, bound: Bound, client: &mut dyn Client) -> Result<String> {
        let measured = self.begin_measure(&bound.prepared);
        let tag = self.run_bound(bound, client)?;
        self.end_measure(measured, rows_of(&tag));
        Ok(tag)
    }

    fn run_bound(&mut self, bound: Bound, client: &mut dyn Client) -> Result<String> {
        let statement = bound.prepared.statement.clone();
        match self.lend(client, |session| session.start(bound))? {
            Outcome::Done { tag } => Ok(tag),
            Outcome::Rows { columns, source, tag, formats } => {
                self.renew_context();
                self.send_notices(client);
                let before = client.output().mark();
                self.send_row_description(&columns, &formats, client)?;
                let described = client.output().mark();
                let result = self.send_result(&columns, source, &tag, &formats, client);
                // Not when time or memory ran out: the constants would be computed again.
                let is_of_value = |state: &str| state.starts_with('2') || state.starts_with("54");
                let failed = result.as_ref().is_err_and(|e| is_of_value(e.sqlstate().as_str()));
                if failed && client.output().mark() == described && self.fails_when_planned(statement) {
                    client.output().take_back(before);
                }
                result
            }
            Outcome::CopyIn { format, columns, copy } => self.copy_in(format, columns, copy, client),
            Outcome::CopyOut { format, columns, copy } => self.copy_out(format, columns, copy, client),
        }
    }
}
