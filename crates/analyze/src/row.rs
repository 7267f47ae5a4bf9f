//! ROW(...).

use melba_types::{Result, err, oids};
use pg_query::protobuf as pb;

use super::analyzer::Analyzer;
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
