//! The columns, constraints and sequences of a table that is being created.

use melba_catalog::Column;
use melba_types::{Oid, Result, err};
use pg_query::protobuf::{ConstrType, Constraint};

use crate::sequence::SequenceOptions;

/// A table being put together.
#[derive(Default)]
pub struct TableBuilder {
    /// The name of the table.
    pub table: String,
    pub columns: Vec<Column>,
    /// Constraints to add once the table exists, with the column they were written at.
    pub constraints: Vec<(Option<usize>, Constraint)>,
    /// Columns with a sequence to create: (column, options, identity).
    pub sequences: Vec<(usize, SequenceOptions, bool)>,
    /// Constraints copied by LIKE: (kind, text or index) are added by `constraint`.
    pub likes: Vec<(Oid, u32)>,
    /// Columns whose STORAGE is written.
    pub explicit_storage: Vec<usize>,
}

/// TableLikeOption bits as the grammar numbers them.
pub mod like {
    pub const COMMENTS: u32 = 1;
    pub const COMPRESSION: u32 = 2;
    pub const CONSTRAINTS: u32 = 4;
    pub const DEFAULTS: u32 = 8;
    pub const GENERATED: u32 = 16;
    pub const IDENTITY: u32 = 32;
    pub const INDEXES: u32 = 64;
    pub const STATISTICS: u32 = 128;
    pub const STORAGE: u32 = 256;
}

/// The constraint that an attribute node (DEFERRABLE, ...) follows.
pub fn last_of<'b>(builder: &'b mut TableBuilder, column: usize, attribute: &Constraint) -> Result<&'b mut Constraint> {
    let last = builder.constraints.iter_mut().rev().find(|(at, _)| *at == Some(column)).map(|(_, c)| c);
    use ConstrType::*;
    let is_enforcement = matches!(attribute.contype(), ConstrAttrEnforced | ConstrAttrNotEnforced);
    let allowed = |c: &&mut Constraint| match c.contype() {
        ConstrForeign => true,
        ConstrCheck => is_enforcement,
        ConstrPrimary | ConstrUnique | ConstrExclusion => !is_enforcement,
        _ => false,
    };
    let clause = match attribute.contype() {
        ConstrType::ConstrAttrDeferrable => "DEFERRABLE",
        ConstrType::ConstrAttrNotDeferrable => "NOT DEFERRABLE",
        ConstrType::ConstrAttrDeferred => "INITIALLY DEFERRED",
        ConstrType::ConstrAttrImmediate => "INITIALLY IMMEDIATE",
        ConstrType::ConstrAttrEnforced => "ENFORCED",
        _ => "NOT ENFORCED",
    };
    last.filter(allowed).ok_or_else(|| err!(SYNTAX_ERROR, "misplaced {clause} clause").at(attribute.location))
}

/// An implicit NOT NULL constraint.
pub fn not_null() -> Constraint {
    Constraint {
        contype: ConstrType::ConstrNotnull as i32,
        is_enforced: true,
        initially_valid: true,
        location: -1,
        ..Constraint::default()
    }
}
