//! CREATE of the kinds of objects that share a node, and statements that are always refused.

use melba_definition::context::Ddl;
use melba_parse::command::object_word;
use melba_routine::aggregate::create_aggregate;
use melba_routine::operator::create_operator;
use melba_types::{DbError, Result, bail};
use pg_query::protobuf::{DefineStmt, ObjectType, SecLabelStmt};

use crate::collation::create_collation;
use crate::text_search::{create_text_search, is_text_search};
use crate::types::base::create_base;

pub fn define(ddl: &Ddl<'_>, s: &DefineStmt) -> Result<()> {
    match s.kind() {
        ObjectType::ObjectAggregate => create_aggregate(ddl, s),
        ObjectType::ObjectCollation => create_collation(ddl, s),
        ObjectType::ObjectOperator => create_operator(ddl, s),
        ObjectType::ObjectType => create_base(ddl, s),
        kind if is_text_search(kind) => create_text_search(ddl, kind, s),
        kind => Err(DbError::unsupported(format!("CREATE {}", object_word(kind)))),
    }
}

pub fn label(_: &Ddl<'_>, s: &SecLabelStmt) -> Result<()> {
    match s.provider.as_str() {
        "" => bail!(INVALID_PARAMETER_VALUE, "no security label providers have been loaded"),
        name => bail!(INVALID_PARAMETER_VALUE, "security label provider \"{name}\" is not loaded"),
    }
}
