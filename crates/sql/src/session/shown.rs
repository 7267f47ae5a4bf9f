//! Stored expressions and queries as clients see them: analyzed, and printed for the session's search path.

use melba_catalog::Relation;
use melba_types::{Oid, Result};

use super::context::StatementContext;
use super::pipeline::analysis;
use crate::analyze::{analyze_stored_domain_check, analyze_stored_expression, analyze_view};
use crate::deparse;

impl StatementContext {
    /// `of` is the relation whose columns the expression mentions, the domain whose VALUE it does, or 0.
    pub(super) fn print_expression(&self, text: &str, of: Oid, pretty: bool) -> Result<String> {
        let cx = analysis(self);
        let relation = self.catalog.relation(of);
        if relation.is_none()
            && let Some(domain) = self.catalog.type_(of).and_then(|t| t.domain.as_ref())
        {
            let (base, typmod) = self.catalog.base_type_and_typmod(domain.base, domain.typmod);
            let expression = analyze_stored_domain_check(&cx, text, base, typmod)?;
            return Ok(deparse::shown_expression(&cx, &expression, None, pretty));
        }
        let expression = analyze_stored_expression(&cx, text, relation, None)?;
        Ok(deparse::shown_expression(&cx, &expression, relation.map(|r| &**r), pretty))
    }

    pub(super) fn print_query(&self, view: &Relation, pretty: bool) -> Result<String> {
        let cx = analysis(self);
        Ok(deparse::shown_query(&cx, &analyze_view(&cx, view)?, pretty))
    }
}
