//! ROW(...).

use melba_types::{Result, err, oids};
use pg_query::{NodeEnum, protobuf as pb};

use super::analyzer::Analyzer;
use super::context::Context;
use super::nodes;
use melba_tree::*;

pub fn row_expression<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::RowExpr, allow_default: bool) -> Result<Expr> {
    const FIELDS_MAX: usize = 1664;
    let fields = if allow_default {
        let mut fields = Vec::with_capacity(n.args.len());
        for arg in &n.args {
            if nodes::is_default(arg) {
                fields.push(Expr::Default { ty: oids::UNKNOWN, typmod: -1 });
            } else {
                // `t.*` is several fields.
                fields.extend(analyzer.expression_list(std::slice::from_ref(arg))?);
            }
        }
        fields
    } else {
        analyzer.expression_list(&n.args)?
    };
    if fields.len() > FIELDS_MAX {
        return Err(err!(TOO_MANY_COLUMNS, "ROW expressions can have at most {FIELDS_MAX} entries").at(n.location));
    }
    let names = (1..=fields.len()).map(|i| format!("f{i}").into()).collect();
    let explicit = n.row_format == pb::CoercionForm::CoerceExplicitCall as i32;
    let location = n.location;
    Ok(Expr::Row(Box::new(RowExpr { fields, names, ty: oids::RECORD, explicit, location })))
}

/// Whether a call in a stored text is a row of named fields, `pg_catalog."row"(name => value, ...)`: the row of a join, as it was when the text was
/// stored.
pub fn is_named_row(cx: &Context<'_>, n: &pb::FuncCall) -> bool {
    let is_named = |arg: &pb::Node| matches!(arg.node, Some(NodeEnum::NamedArgExpr(_)));
    cx.is_stored() && nodes::strings(&n.funcname)[..] == ["pg_catalog", "row"] && n.args.iter().all(is_named)
}

pub fn named_row<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::FuncCall) -> Result<Expr> {
    let (mut fields, mut names) = (Vec::with_capacity(n.args.len()), Vec::with_capacity(n.args.len()));
    for arg in &n.args {
        if let Some(NodeEnum::NamedArgExpr(named)) = &arg.node {
            fields.push(analyzer.boxed(&named.arg)?);
            names.push(named.name.as_str().into());
        }
    }
    Ok(Expr::Row(Box::new(RowExpr { fields, names, ty: oids::RECORD, explicit: false, location: n.location })))
}
