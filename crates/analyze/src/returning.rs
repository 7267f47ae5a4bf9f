//! RETURNING, with OLD and NEW.

use std::sync::Arc;

use melba_types::{Result, err};
use pg_query::NodeEnum;
use pg_query::protobuf as pb;

use super::Analyzer;
use super::scope::ExprKind;
use melba_tree::*;

impl<'p> Analyzer<'_, 'p> {
    pub fn returning_clause(&mut self, clause: Option<&'p pb::ReturningClause>, q: &mut Query, kind: ExprKind) -> Result<()> {
        let Some(clause) = clause else { return Ok(()) };
        let (mut old, mut new): (Option<Arc<str>>, Option<Arc<str>>) = (None, None);
        for node in &clause.options {
            let Some(NodeEnum::ReturningOption(option)) = &node.node else { continue };
            let (slot, name) = if option.option == pb::ReturningOptionKind::ReturningOptionOld as i32 {
                (&mut old, "OLD")
            } else {
                (&mut new, "NEW")
            };
            if slot.is_some() {
                return Err(err!(SYNTAX_ERROR, "{name} cannot be specified multiple times").at(option.location));
            }
            *slot = Some(option.value.as_str().into());
        }
        q.returning_old_alias = old.clone();
        q.returning_new_alias = new.clone();
        let saved = self.level().namespace.len();
        for (alias, default, version) in [(old, "old", RowVersion::Old), (new, "new", RowVersion::New)] {
            let explicit = alias.is_some();
            let name = alias.unwrap_or_else(|| default.into());
            let taken = self.level().namespace.iter().any(|i| i.relation_visible && i.name == name);
            if taken && explicit {
                return Err(err!(DUPLICATE_ALIAS, "table name \"{name}\" specified more than once"));
            }
            if taken {
                continue;
            }
            if let Some(target) = &self.level().target {
                let mut item = target.clone();
                item.name = name;
                item.columns_visible = false;
                item.relation_visible = true;
                item.version = version;
                self.level_mut().namespace.push(item);
            }
        }
        let targets = self.target_list(&clause.exprs, kind);
        self.level_mut().namespace.truncate(saved);
        q.returning = targets?;
        if q.returning.is_empty() {
            return Err(err!(SYNTAX_ERROR, "RETURNING must have at least one column"));
        }
        let mut returning = std::mem::take(&mut q.returning);
        self.mark_origins(&mut returning);
        self.resolve_unknown_targets(&mut returning)?;
        q.returning = returning;
        Ok(())
    }
}
