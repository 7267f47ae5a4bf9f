//! CREATE of the kinds of objects that share a node, and statements that are always refused.

use melba_parse::command::object_word;
use melba_types::{DbError, Result, bail};
use pg_query::protobuf::{AlterExtensionContentsStmt, DefineStmt, ObjectType, SecLabelStmt};

use super::Ddl;

impl Ddl<'_> {
    pub fn define(&self, s: &DefineStmt) -> Result<()> {
        match s.kind() {
            ObjectType::ObjectAggregate => self.create_aggregate(s),
            ObjectType::ObjectCollation => self.create_collation(s),
            ObjectType::ObjectOperator => self.create_operator(s),
            kind => Err(DbError::unsupported(format!("CREATE {}", object_word(kind)))),
        }
    }

    pub fn label(&self, s: &SecLabelStmt) -> Result<()> {
        match s.provider.as_str() {
            "" => bail!(INVALID_PARAMETER_VALUE, "no security label providers have been loaded"),
            name => bail!(INVALID_PARAMETER_VALUE, "security label provider \"{name}\" is not loaded"),
        }
    }

    pub fn change_extension_members(&self, _: &AlterExtensionContentsStmt) -> Result<()> {
        Err(DbError::unsupported("changing the members of an extension"))
    }
}
