//! LIMIT, OFFSET and FETCH FIRST.

use melba_tree::{Expr, Query};
use melba_types::{Result, err, oids};
use pg_query::protobuf as pb;

use super::analyzer::Analyzer;
use super::coerce;
use super::coerce::How;
use super::scope::ExprKind;

pub fn limits<'p>(analyzer: &mut Analyzer<'_, 'p>, s: &'p pb::SelectStmt, q: &mut Query) -> Result<()> {
    if let Some(node) = &s.limit_offset {
        q.offset = Some(limit_expression(analyzer, node, ExprKind::Offset)?);
    }
    if let Some(node) = &s.limit_count {
        q.with_ties = s.limit_option == pb::LimitOption::WithTies as i32;
        let e = limit_expression(analyzer, node, ExprKind::Limit)?;
        if q.with_ties && e.is_null_const() {
            return Err(err!(INVALID_ROW_COUNT_IN_LIMIT_CLAUSE, "row count cannot be null in FETCH FIRST ... WITH TIES clause"));
        }
        // LIMIT ALL is a null constant.
        q.limit = Some(e);
    }
    Ok(())
}

/// LIMIT, OFFSET and the like take no variables.
pub fn limit_expression<'p>(analyzer: &mut Analyzer<'_, 'p>, node: &'p pb::Node, kind: ExprKind) -> Result<Expr> {
    let name = kind.name();
    let e = analyzer.expression(node, kind)?;
    let from = e.ty();
    let e = if from == oids::UNKNOWN {
        coerce::to_type(analyzer, e, oids::INT8, -1, How::implicit())?
    } else {
        coerce::to_specific(analyzer, e, oids::INT8, name)?
    };
    if e.has_vars() {
        return Err(err!(INVALID_COLUMN_REFERENCE, "argument of {name} must not contain variables").at(e.location()));
    }
    Ok(e)
}
