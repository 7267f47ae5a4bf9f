//! RETURNING, with OLD and NEW.

use std::sync::Arc;

use melba_types::{Result, err};
use pg_query::NodeEnum;
use pg_query::protobuf as pb;

use super::analyzer::Analyzer;
use super::scope::ExprKind;
use super::targets;
use melba_tree::*;

pub fn returning_clause<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    clause: Option<&'p pb::ReturningClause>,
    q: &mut Query,
    kind: ExprKind,
) -> Result<()> {
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
    let saved = analyzer.level().namespace.len();
    for (alias, default, version) in [(old, "old", RowVersion::Old), (new, "new", RowVersion::New)] {
        let explicit = alias.is_some();
        let name = alias.unwrap_or_else(|| default.into());
        let taken = analyzer.level().namespace.iter().any(|i| i.relation_visible && i.name == name);
        if taken && explicit {
            return Err(err!(DUPLICATE_ALIAS, "table name \"{name}\" specified more than once"));
        }
        if taken {
            continue;
        }
        if let Some(target) = &analyzer.level().target {
            let mut item = target.clone();
            item.name = name;
            item.columns_visible = false;
            item.relation_visible = true;
            item.version = version;
            analyzer.level_mut().namespace.push(item);
        }
    }
    let targets = targets::target_list(analyzer, &clause.exprs, kind);
    analyzer.level_mut().namespace.truncate(saved);
    q.returning = targets?;
    if q.returning.is_empty() {
        return Err(err!(SYNTAX_ERROR, "RETURNING must have at least one column"));
    }
    let mut returning = std::mem::take(&mut q.returning);
    targets::mark_origins(analyzer, &mut returning);
    targets::resolve_unknown_targets(analyzer, &mut returning)?;
    q.returning = returning;
    Ok(())
}
