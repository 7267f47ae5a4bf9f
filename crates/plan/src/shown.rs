//! What EXPLAIN shows of a node beside its conditions: names and columns.

use std::sync::Arc;

use melba_catalog::{Catalog, quote_ident};
use melba_tree::{Command, Expr, Query, RangeKind};

use super::member;

/// The object that a node reads or changes.
#[derive(Clone, Debug)]
pub struct ScannedName {
    pub schema: Option<Arc<str>>,
    /// None: only the alias is known, as for VALUES.
    pub name: Option<Arc<str>>,
    pub alias: Arc<str>,
}

impl ScannedName {
    /// `schema.name alias`: the schema if `verbose`, the alias if it is another name.
    pub fn text(&self, verbose: bool) -> String {
        let mut out = String::new();
        if let Some(name) = &self.name {
            if let Some(schema) = self.schema.as_deref().filter(|_| verbose) {
                out.push_str(&quote_ident(schema));
                out.push('.');
            }
            out.push_str(&quote_ident(name));
        }
        if self.name.as_ref() != Some(&self.alias) {
            out.push_str(if out.is_empty() { "" } else { " " });
            out.push_str(&quote_ident(&self.alias));
        }
        out
    }
}

/// A column of a node's rows.
#[derive(Clone, Debug)]
pub struct ShownOutput {
    pub text: String,
    /// A column of a relation, or a constant: nodes above show it as it is.
    pub is_plain: bool,
}

impl ShownOutput {
    /// As a node above shows what this one has computed.
    pub fn above(&self) -> ShownOutput {
        let text = if self.is_plain { self.text.clone() } else { format!("({})", self.text) };
        ShownOutput { text, is_plain: true }
    }
}

/// Whether a statement has more than one range entry, in all its queries.
pub(super) fn has_several_entries(catalog: &Catalog, query: &Query) -> bool {
    fn entries(catalog: &Catalog, query: &Query) -> usize {
        // PostgreSQL counts a source of the rows of INSERT, if there is none but one row of VALUES, too.
        let mut count = query.range_table.len() + usize::from(query.command == Command::Insert);
        for entry in &query.range_table {
            count += match &entry.kind {
                RangeKind::Subquery { query, .. } => entries(catalog, query),
                // Those of its children.
                RangeKind::Relation { oid, inherit, .. } => {
                    usize::from(catalog.relation(*oid).is_some_and(|r| member::is_family(catalog, r, *inherit)))
                }
                _ => 0,
            };
        }
        count += query.ctes.iter().map(|cte| entries(catalog, &cte.query)).sum::<usize>();
        query.visit(0, &mut |e, _| {
            if let Expr::Sublink(link) = e {
                count += entries(catalog, &link.query);
            }
            true
        });
        count
    }
    entries(catalog, query) > 1
}
