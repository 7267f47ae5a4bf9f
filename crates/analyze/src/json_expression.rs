//! SQL/JSON expressions by kind of parse node.

use melba_types::{DbError, Result};
use pg_query::NodeEnum;

use super::analyzer::Analyzer;
use super::json::WantedJson;
use super::{coerce, json, json_aggregate, json_query};
use melba_tree::*;

pub fn json_expression<'p>(analyzer: &mut Analyzer<'_, 'p>, node: &'p NodeEnum) -> Result<Expr> {
    match node {
        NodeEnum::JsonIsPredicate(n) => json::is_json(analyzer, n),
        NodeEnum::JsonParseExpr(n) => json::json_parse(analyzer, n),
        NodeEnum::JsonScalarExpr(n) => {
            let arg = analyzer.boxed(&n.expr)?;
            let returning = json::json_or_jsonb(analyzer.cx(), n.output.as_ref(), "JSON_SCALAR()")?;
            let arg = coerce::resolve_unknown(analyzer, arg)?;
            json::json_constructor(analyzer, JsonConstructorKind::Scalar, vec![arg], returning, n.location)
        }
        NodeEnum::JsonSerializeExpr(n) => json::json_serialize(analyzer, n),
        NodeEnum::JsonObjectConstructor(n) => json::json_object(analyzer, n),
        NodeEnum::JsonArrayConstructor(n) => {
            let mut args = Vec::with_capacity(n.exprs.len());
            for e in &n.exprs {
                let Some(NodeEnum::JsonValueExpr(v)) = &e.node else { continue };
                args.push(json::value(analyzer, Some(v), WantedJson::ARGUMENT)?);
            }
            let returning = json::constructor_returning(analyzer.cx(), n.output.as_ref(), &args)?;
            let mut made = json::constructor(analyzer, JsonConstructorKind::Array, args, None, returning, n.location)?;
            made.absent_on_null = n.absent_on_null;
            Ok(Expr::JsonConstructor(Box::new(made)))
        }
        NodeEnum::JsonArrayQueryConstructor(n) => json_aggregate::json_array_of_query(analyzer, n),
        NodeEnum::JsonObjectAgg(n) => json_aggregate::json_object_aggregate(analyzer, n),
        NodeEnum::JsonArrayAgg(n) => json_aggregate::json_array_aggregate(analyzer, n),
        NodeEnum::JsonFuncExpr(n) => json_query::json_function(analyzer, n),
        _ => Err(DbError::internal("unrecognized SQL/JSON expression")),
    }
}
