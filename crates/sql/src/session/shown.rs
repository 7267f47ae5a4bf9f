//! Stored expressions and queries as clients see them: analyzed, and printed for the session's search path.

use melba_catalog::Relation;
use melba_types::{Oid, Result};

use super::context::StatementContext;
use super::pipeline::analysis;
use crate::analyze::{analyze_stored_expression, analyze_view};
use crate::deparse;

impl StatementContext {
    /// `relation` is the one whose columns the expression mentions, or 0.
    pub(super) fn print_expression(&self, text: &str, relation: Oid, pretty: bool) -> Result<String> {
        let cx = analysis(self);
        let relation = self.catalog.relation(relation);
        let expression = analyze_stored_expression(&cx, text, relation, None)?;
        Ok(deparse::shown_expression(&cx, &expression, relation.map(|r| &**r), pretty))
    }

    pub(super) fn print_query(&self, view: &Relation, pretty: bool) -> Result<String> {
        let cx = analysis(self);
        Ok(deparse::shown_query(&cx, &analyze_view(&cx, view)?, pretty))
    }
}
