//! The node that changes rows of a table.

use std::sync::Arc;

use melba_types::{Oid, Result};

use super::node::{PlanCommand, PlanNode, Recheck, TableSource};
use melba_expression::{Evaluation, Expression, Routine, has_effects};
use melba_table::{ColumnMap, RowChecks, TableTarget};
use melba_tree::MergeMatch;

/// Changes rows of one table.
#[derive(Debug)]
pub struct ModifyNode {
    pub command: PlanCommand,
    pub target: Arc<TableTarget>,
    /// A command tag counts only the changes of the outermost statement, not those of rules and RETURNING.
    pub counts: bool,
    /// Without one, a single row of no columns.
    pub input: Option<PlanNode>,
    /// UPDATE, DELETE, MERGE: where the target's row is found in the input.
    pub existing: Option<Existing>,
    /// The same, of a table with children: the tables that its rows are in.
    pub family: Option<Family>,
    pub action: Action,
    pub returning: Option<Returning>,
    pub row_checks: Arc<RowChecks>,
    /// The volatile functions of users that compute the rows: they may read the table.
    pub routines: Routines,
}

/// Volatile functions of users that an expression calls.
#[derive(Debug, Default)]
pub struct Routines {
    functions: Vec<Routine>,
    /// Others are called by operators and casts.
    has_others: bool,
}

impl Routines {
    pub fn add(&mut self, routine: Option<&Routine>) {
        match routine {
            Some(routine) => self.functions.push(routine.clone()),
            None => self.has_others = true,
        }
    }

    /// Adds those of another list.
    pub fn append(&mut self, mut other: Routines) {
        self.functions.append(&mut other.functions);
        self.has_others |= other.has_others;
    }

    /// Whether none of them reads or changes the database.
    pub fn are_pure(&self, ctx: &Evaluation) -> Result<bool> {
        for routine in &self.functions {
            if routine.pure(ctx)?.is_none() {
                return Ok(false);
            }
        }
        Ok(!self.has_others)
    }
}

/// The target's row within the input's rows.
#[derive(Debug)]
pub struct Existing {
    /// Of a table without children.
    pub source: Option<TableSource>,
    pub row_id: usize,
    /// For each column of the table, its place in the input.
    pub columns: Vec<Option<usize>>,
    /// Places of the scan's outputs, for a newer version: (column of the row, index into outputs).
    pub replace: Vec<(usize, usize)>,
    /// The conditions that a newer version must satisfy.
    pub recheck: Vec<Recheck>,
}

/// The tables that the rows of a table with children are in. Rows to change are read again from theirs: it may have columns that
/// the parent has not.
#[derive(Debug)]
pub struct Family {
    /// Column of the input with the OID of the row's table.
    pub table: usize,
    pub members: Vec<FamilyMember>,
}

#[derive(Debug)]
pub struct FamilyMember {
    pub source: TableSource,
    pub target: Arc<TableTarget>,
    pub columns: ColumnMap,
}

#[derive(Debug)]
pub enum Action {
    Insert { values: Vec<Option<Expression>>, on_conflict: Option<ConflictNode> },
    Update(Assignments),
    Delete,
    Merge { actions: Vec<MergeNode>, condition: Vec<Expression>, source_marker: Option<usize> },
}

/// SET.
#[derive(Debug)]
pub struct Assignments {
    /// Position in the table and new value.
    pub columns: Vec<(usize, Expression)>,
    /// A column of some key that a foreign key may refer to, or of a partition key, is assigned, or generated and may change.
    pub key: bool,
}

#[derive(Debug)]
pub struct ConflictNode {
    /// Empty: any unique index.
    pub arbiters: Vec<Oid>,
    /// DO UPDATE: over the existing row's columns followed by the proposed row's.
    pub update: Option<(Assignments, Option<Expression>)>,
}

#[derive(Debug)]
pub struct MergeNode {
    pub matched: MergeMatch,
    pub condition: Option<Expression>,
    pub command: MergeActionNode,
}

#[derive(Debug)]
pub enum MergeActionNode {
    Insert(Vec<Option<Expression>>),
    Update(Assignments),
    Delete,
    Nothing,
}

/// The system columns of a row that RETURNING reads, in the order in which they are given to it; its composite value follows.
pub const RETURNED_SYSTEM_COLUMNS: [i16; 6] = [-1, -2, -3, -4, -5, -6];

/// RETURNING, over: the input's columns, the old row, the new row (and the latest), then for each of them its system columns
/// from ctid to tableoid and its value as a composite.
#[derive(Debug)]
pub struct Returning {
    pub expressions: Vec<Expression>,
    /// MERGE: a column without a version is that of the new row, or of the old one if there is no new one.
    pub latest: bool,
    /// An expression reads xmin of some version.
    pub reads_xmin: bool,
    pub row_type: Oid,
    pub field_types: Arc<[Oid]>,
    pub field_names: Arc<[Arc<str>]>,
    /// Positions of the columns that are not dropped.
    pub live: Vec<usize>,
}

impl ModifyNode {
    pub fn title(&self) -> &'static str {
        match self.command {
            PlanCommand::Insert => "Insert",
            PlanCommand::Update => "Update",
            PlanCommand::Delete => "Delete",
            _ => "Merge",
        }
    }

    pub fn name(&self) -> &str {
        &self.target.relation.name
    }

    pub fn input(&self) -> Option<&PlanNode> {
        self.input.as_ref()
    }

    /// Whether the conditions of a row may have side effects: those of the next row are evaluated when this row is changed.
    pub fn has_effects(&self) -> bool {
        let joins = match &self.action {
            Action::Merge { condition, .. } => has_effects(condition.iter()),
            _ => false,
        };
        joins || self.existing.iter().flat_map(|existing| &existing.recheck).any(Recheck::has_effects)
    }
}
