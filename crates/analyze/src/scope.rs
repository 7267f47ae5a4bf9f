//! Scopes: query levels, their range tables and namespaces, and the kinds of places of expressions.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use melba_catalog::Relation;
use melba_types::{DbError, Oid, Result, err};
use pg_query::protobuf as pb;

use melba_tree::*;
use melba_types::oids;

/// Where an expression stands: decides whether aggregates, window functions, sublinks and the like may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExprKind {
    None,
    Other,
    JoinOn,
    JoinUsing,
    FromSubselect,
    FromFunction,
    Where,
    Having,
    Filter,
    WindowPartition,
    WindowOrder,
    WindowFrameRange,
    WindowFrameRows,
    WindowFrameGroups,
    SelectTarget,
    InsertTarget,
    UpdateSource,
    UpdateTarget,
    MergeWhen,
    GroupBy,
    OrderBy,
    DistinctOn,
    Limit,
    Offset,
    Returning,
    MergeReturning,
    Values,
    ValuesSingle,
    CheckConstraint,
    DomainCheck,
    ColumnDefault,
    FunctionDefault,
    IndexExpression,
    IndexPredicate,
    AlterColumnTransform,
    ExecuteParameter,
    TriggerWhen,
    PartitionBound,
    PartitionExpression,
    StatisticsExpression,
    CallArgument,
    CopyWhere,
    GeneratedColumn,
    CycleMark,
    Policy,
}

impl ExprKind {
    /// How messages call the place.
    pub fn name(self) -> &'static str {
        match self {
            ExprKind::None => "invalid expression context",
            ExprKind::Other => "extension expression",
            ExprKind::JoinOn => "JOIN/ON",
            ExprKind::JoinUsing => "JOIN/USING",
            ExprKind::FromSubselect => "sub-SELECT in FROM",
            ExprKind::FromFunction => "function in FROM",
            ExprKind::Where => "WHERE",
            ExprKind::Policy => "POLICY",
            ExprKind::Having => "HAVING",
            ExprKind::Filter => "FILTER",
            ExprKind::WindowPartition => "window PARTITION BY",
            ExprKind::WindowOrder => "window ORDER BY",
            ExprKind::WindowFrameRange => "window RANGE",
            ExprKind::WindowFrameRows => "window ROWS",
            ExprKind::WindowFrameGroups => "window GROUPS",
            ExprKind::SelectTarget => "SELECT",
            ExprKind::InsertTarget => "INSERT",
            ExprKind::UpdateSource | ExprKind::UpdateTarget => "UPDATE",
            ExprKind::MergeWhen => "MERGE WHEN",
            ExprKind::GroupBy => "GROUP BY",
            ExprKind::OrderBy => "ORDER BY",
            ExprKind::DistinctOn => "DISTINCT ON",
            ExprKind::Limit => "LIMIT",
            ExprKind::Offset => "OFFSET",
            ExprKind::Returning | ExprKind::MergeReturning => "RETURNING",
            ExprKind::Values | ExprKind::ValuesSingle => "VALUES",
            ExprKind::CheckConstraint | ExprKind::DomainCheck => "CHECK",
            ExprKind::ColumnDefault | ExprKind::FunctionDefault => "DEFAULT",
            ExprKind::IndexExpression => "index expression",
            ExprKind::IndexPredicate => "index predicate",
            ExprKind::AlterColumnTransform => "USING",
            ExprKind::ExecuteParameter => "EXECUTE",
            ExprKind::TriggerWhen => "WHEN",
            ExprKind::PartitionBound => "partition bound",
            ExprKind::PartitionExpression => "PARTITION BY",
            ExprKind::StatisticsExpression => "statistics expression",
            ExprKind::CallArgument => "CALL",
            ExprKind::CopyWhere => "WHERE",
            ExprKind::GeneratedColumn => "GENERATED AS",
            ExprKind::CycleMark => "CYCLE",
        }
    }
}

/// A column as a join or other namespace item offers it.
#[derive(Clone, Debug)]
pub struct NsColumn {
    pub entry: usize,
    /// Column of `entry`; 0: not available (dropped).
    pub column: i16,
    pub ty: Oid,
    pub typmod: i32,
    pub collation: Oid,
    /// Part of the left or right side merged by USING: not in `*` of the unqualified kind.
    pub merged_away: bool,
}

/// A range entry as seen by names.
#[derive(Clone, Debug)]
pub struct NsItem {
    pub entry: usize,
    pub name: Arc<str>,
    /// Joins only; for other entries column i is column i of the entry.
    pub columns: Option<Arc<[NsColumn]>>,
    /// JOIN USING's alias covers only the first columns.
    pub visible_columns: Option<usize>,
    /// `name.column` works.
    pub relation_visible: bool,
    /// Unqualified `column` works.
    pub columns_visible: bool,
    /// Visible to LATERAL references only.
    pub lateral_only: bool,
    /// LATERAL references are allowed (not from the nullable side).
    pub lateral_ok: bool,
    pub version: RowVersion,
    /// It has system columns, if its entry has.
    pub system_columns: bool,
    /// Where the columns of a wide entry are, once one was looked for.
    pub names: OnceCell<Rc<HashMap<Arc<str>, Vec<usize>>>>,
}

/// The CTE whose query is being analyzed one level further in.
#[derive(Default)]
pub struct CurrentCte {
    pub name: Arc<str>,
    pub recursive: bool,
    pub aliases: Vec<Arc<str>>,
    /// Known once the non-recursive term is.
    pub columns: Option<Vec<OutputColumn>>,
}

/// The view that a statement names as its target.
pub struct ViewTarget {
    pub view: Arc<Relation>,
    /// The view and the views in it; conditions are over the table's entry.
    pub layers: Vec<Layer>,
    pub command: Command,
}

/// A view on the way to the table that is changed.
pub struct Layer {
    pub view: Arc<Relation>,
    /// Its WHERE, over the table.
    pub filter: Option<Expr>,
    /// For every column the index of the table's column, or why it is none.
    pub columns: Vec<Result<usize, Blocked>>,
}

/// A column of a view that nothing can be assigned to.
#[derive(Clone)]
pub struct Blocked {
    pub view: Arc<str>,
    pub column: Arc<str>,
    pub reason: &'static str,
}

impl Blocked {
    pub fn error(&self, does: &str) -> DbError {
        let (column, view) = (&self.column, &self.view);
        err!(FEATURE_NOT_SUPPORTED, "cannot {does} column \"{column}\" of view \"{view}\"").detail(self.reason)
    }
}

/// Working state for one query level.
#[derive(Default)]
pub struct QueryLevel<'p> {
    pub range_table: Vec<RangeEntry>,
    pub namespace: Vec<NsItem>,
    pub lateral_active: bool,
    /// CTEs of this level's WITH analyzed so far (or being analyzed).
    pub ctes: Vec<Cte>,
    /// Names of CTEs that are not visible yet, for the hint.
    pub future_ctes: Vec<Arc<str>>,
    /// The CTE of this level's WITH that is being analyzed.
    pub current_cte: Option<CurrentCte>,
    pub kind: ExprKindCell,
    pub window_definitions: Vec<WindowSource<'p>>,
    pub has_aggregates: bool,
    pub has_windows: bool,
    pub has_set_returning: bool,
    pub has_sublinks: bool,
    pub has_modifying_cte: bool,
    /// Reference handles assigned for `Target::reference`.
    pub next_reference: u32,
    /// The target relation's namespace item of INSERT, UPDATE, DELETE, MERGE.
    pub target: Option<NsItem>,
    /// The target is a view over a table.
    pub view_target: Option<ViewTarget>,
    pub is_insert_select: bool,
    /// The first two entries are the rows of a rule's event.
    pub has_rule_rows: bool,
    /// Location of the last set-returning function, to find nested ones.
    pub last_srf: i32,
    pub multi_assign: Vec<Expr>,
    /// The value a domain's check refers to as VALUE.
    pub domain_value: Option<(Oid, i32, Oid)>,
}

/// `ExprKind` with a default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExprKindCell(pub ExprKind);

impl Default for ExprKindCell {
    fn default() -> Self {
        ExprKindCell(ExprKind::None)
    }
}

/// A WINDOW definition not yet analyzed: named, or written in OVER.
#[derive(Clone)]
pub struct WindowSource<'p> {
    pub definition: &'p pb::WindowDef,
    /// OVER (...): not referable by name.
    pub anonymous: bool,
}

/// The system columns: name, number, type.
pub const SYSTEM_COLUMNS: [(&str, i16, Oid); 6] = [
    ("tableoid", -6, oids::OID),
    ("cmax", -5, oids::CID),
    ("xmax", -4, oids::XID),
    ("cmin", -3, oids::CID),
    ("xmin", -2, oids::XID),
    ("ctid", -1, oids::TID),
];

/// A system column of a range entry.
pub fn system_var(entry: usize, column: i16, ty: Oid) -> Expr {
    Expr::Var(Var::new(entry, column, ty, -1, Oid::INVALID))
}

/// Records that the statement reads a column.
pub fn note_selected(entry: &mut RangeEntry, column: i16) {
    let required = &mut entry.required;
    required.select = true;
    if !required.selected.contains(&column) {
        required.selected.push(column);
    }
}

/// The result of a FROM item: its place in the join tree, its range item, and the columns it makes visible.
pub struct FromResult {
    pub item: FromItem,
    pub own: NsItem,
    pub namespace: Vec<NsItem>,
}

pub fn set_lateral(namespace: &mut [NsItem], only: bool, ok: bool) {
    for item in namespace {
        item.lateral_only = only;
        item.lateral_ok = ok;
    }
}
