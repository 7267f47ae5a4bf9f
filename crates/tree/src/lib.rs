//! Analyzed statements: what `analyze` produces, `deparse` prints and `plan` consumes.
//!
//! The shape follows PostgreSQL's Query and primnodes, because PostgreSQL's rules (and its printed form of views) are stated in
//! those terms. Every expression has a type; every function, operator and relation is an OID. Invariants:
//! 1. A tree holds no names that must be looked up again, except aliases and output column names.
//! 2. `Expr::Var` of level 0 refers to `Query::range_table` of its own query; level n to the n-th query outwards.

mod dependencies;
mod json;
mod leakproof;
pub mod permissions;
mod privileges;
mod props;
mod row_check;
mod target;
mod var;
mod walk;
mod window;

use std::sync::Arc;

use melba_types::{Datum, Oid};

pub use json::*;
pub use privileges::Privileges;
pub use props::{C_COLLATION, DEFAULT_COLLATION, equal, shape};
pub use row_check::{RowCheck, RowCheckKind};
pub use target::{SortGroup, Target, places_of_targets};
pub use var::{Param, ParamKind, RowVersion, Var, put_on_entry};
pub use window::{FrameBound, FrameExclusion, FrameMode, Window, WindowFrame};

/// A statement's command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    Select,
    Insert,
    Update,
    Delete,
    Merge,
}

/// An analyzed SELECT, INSERT, UPDATE, DELETE or MERGE (or one arm of a set operation, a subquery, a CTE).
#[derive(Clone, Debug)]
pub struct Query {
    pub command: Command,
    pub ctes: Vec<Cte>,
    pub recursive: bool,
    pub range_table: Vec<RangeEntry>,
    pub from: Vec<FromItem>,
    pub filter: Option<Expr>,
    /// Output columns; for INSERT and UPDATE the assigned columns (`Target::column`).
    pub targets: Vec<Target>,
    /// Target table of INSERT, UPDATE, DELETE, MERGE.
    pub result: Option<usize>,
    pub insert: Option<InsertInfo>,
    pub merge_actions: Vec<MergeAction>,
    /// MERGE's ON.
    pub merge_condition: Option<Expr>,
    pub returning: Vec<Target>,
    /// The conditions on written rows, besides the constraints of their table.
    pub row_checks: Vec<RowCheck>,
    /// RETURNING WITH (OLD AS o, NEW AS n): aliases.
    pub returning_old_alias: Option<Arc<str>>,
    pub returning_new_alias: Option<Arc<str>>,
    pub group_by: Vec<SortGroup>,
    /// With GROUPING SETS, CUBE or ROLLUP: the expanded list of sets, each of indices into `group_by`.
    pub grouping_sets: Option<Vec<Vec<usize>>>,
    pub group_distinct: bool,
    /// The grouping clause as written, for deparse.
    pub grouping_text: Option<Vec<GroupingNode>>,
    pub having: Option<Expr>,
    /// Primary keys by which columns that are not grouped by are determined.
    pub relied_on: Vec<Oid>,
    pub windows: Vec<Window>,
    pub distinct: Distinct,
    pub order_by: Vec<SortGroup>,
    pub offset: Option<Expr>,
    pub limit: Option<Expr>,
    pub with_ties: bool,
    pub locking: Vec<Locking>,
    /// A query of set operations: the leaves are subquery range entries, `targets` are Vars of the first.
    pub set_operation: Option<SetTree>,
    pub has_aggregates: bool,
    pub has_windows: bool,
    pub has_set_returning: bool,
}

/// GROUP BY as written.
#[derive(Clone, Debug)]
pub enum GroupingNode {
    Empty,
    /// Indices into `group_by`.
    Simple(Vec<usize>),
    Rollup(Vec<GroupingNode>),
    Cube(Vec<GroupingNode>),
    Sets(Vec<GroupingNode>),
}

#[derive(Clone, Debug)]
pub enum Distinct {
    None,
    All(Vec<SortGroup>),
    On(Vec<SortGroup>),
}

#[derive(Clone, Debug)]
pub struct Cte {
    pub name: Arc<str>,
    pub column_aliases: Vec<Arc<str>>,
    pub query: Box<Query>,
    pub recursive: bool,
    /// Some(true): MATERIALIZED; Some(false): NOT MATERIALIZED.
    pub materialized: Option<bool>,
    pub columns: Vec<OutputColumn>,
    /// Number of references, for inlining.
    pub references: usize,
    pub search: Option<Search>,
    pub cycle: Option<Cycle>,
}

/// SEARCH ... FIRST BY ... SET.
#[derive(Clone, Debug)]
pub struct Search {
    pub breadth_first: bool,
    pub columns: Vec<Arc<str>>,
    pub set_column: Arc<str>,
}

/// CYCLE ... SET ... USING.
#[derive(Clone, Debug)]
pub struct Cycle {
    pub columns: Vec<Arc<str>>,
    pub mark_column: Arc<str>,
    pub mark_value: Box<Expr>,
    pub mark_default: Box<Expr>,
    pub path_column: Arc<str>,
}

/// Name and type of a column of anything row-shaped.
#[derive(Clone, Debug)]
pub struct OutputColumn {
    pub name: Arc<str>,
    pub ty: Oid,
    pub typmod: i32,
    pub collation: Oid,
}

/// One entry of the range table.
#[derive(Clone, Debug)]
pub struct RangeEntry {
    pub kind: RangeKind,
    /// The alias as written.
    pub alias: Option<Arc<str>>,
    /// The name columns are qualified with.
    pub name: Arc<str>,
    /// All columns by attribute number - 1. Dropped columns of tables keep their place with type 0.
    pub columns: Vec<OutputColumn>,
    pub lateral: bool,
    /// Entry can be referred to (false: hidden behind a join's alias).
    pub in_from: bool,
    /// Column privileges to check: relation entries only.
    pub required: Privileges,
    /// Of a relation: conditions on its rows by which others are hidden. Expressions that may leak see only the rows that pass them.
    pub security: Vec<Expr>,
}

#[derive(Clone, Debug)]
pub enum RangeKind {
    /// Table, partitioned table, materialized view, sequence or system relation. ONLY: `inherit` is false.
    Relation {
        oid: Oid,
        inherit: bool,
        sample: Option<Box<TableSample>>,
    },
    /// Subquery in FROM, a view's query (`view` is its OID), or a set operation's leaf.
    Subquery {
        query: Box<Query>,
        view: Oid,
    },
    /// Functions in FROM, ROWS FROM; `ordinality` adds the last column.
    Function {
        functions: Vec<RangeFunction>,
        ordinality: bool,
    },
    /// VALUES lists.
    Values {
        rows: Vec<Vec<Expr>>,
    },
    /// Reference to a CTE `levels` queries outwards; `self_reference` inside its own recursive term.
    Cte {
        name: Arc<str>,
        levels: usize,
        self_reference: bool,
    },
    /// The rows of `table` that a statement has changed, by the name in REFERENCING of the trigger whose function reads them.
    Transition {
        name: Arc<str>,
        table: Oid,
    },
    /// A join as seen by names, for each column its merged expression; also a view whose table is changed, which is in no FROM.
    Join {
        kind: JoinKind,
        merged: Vec<Expr>,
        using_columns: usize,
        using_alias: Option<Arc<str>>,
    },
    JsonTable(Box<JsonTable>),
    /// FROM-less SELECT's grouping of nothing, and INSERT ... DEFAULT VALUES.
    Result,
}

#[derive(Clone, Debug)]
pub struct TableSample {
    pub method: Arc<str>,
    pub args: Vec<Expr>,
    pub repeatable: Option<Expr>,
}

#[derive(Clone, Debug)]
pub struct RangeFunction {
    pub expr: Expr,
    /// Columns of this function's result.
    pub columns: Vec<OutputColumn>,
    /// A column definition list was given (for record-returning functions).
    pub column_definitions: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    Inner,
    Left,
    Right,
    Full,
}

/// The join tree: leaves are indices into the range table.
#[derive(Clone, Debug)]
pub enum FromItem {
    Range(usize),
    Join(Box<Join>),
}

#[derive(Clone, Debug)]
pub struct Join {
    pub kind: JoinKind,
    pub left: FromItem,
    pub right: FromItem,
    /// The ON condition, or the equalities that USING and NATURAL stand for.
    pub condition: Option<Expr>,
    /// Columns of USING or NATURAL, for deparse.
    pub using: Vec<Arc<str>>,
    pub natural: bool,
    pub alias: Option<Arc<str>>,
    /// The join's own range entry.
    pub entry: usize,
}

/// Every arm already has the types of `columns`.
#[derive(Clone, Debug)]
pub struct SetTree {
    pub operation: SetOperation,
    pub all: bool,
    pub left: SetInput,
    pub right: SetInput,
    pub columns: Vec<OutputColumn>,
    /// How rows are compared (absent for UNION ALL).
    pub keys: Vec<SortGroup>,
}

#[derive(Clone, Debug)]
pub enum SetInput {
    /// A subquery range entry.
    Leaf(usize),
    Tree(Box<SetTree>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOperation {
    Union,
    Intersect,
    Except,
}

/// FOR UPDATE and similar clauses.
#[derive(Clone, Debug)]
pub struct Locking {
    /// Range table entry.
    pub entry: usize,
    pub strength: LockStrength,
    pub wait: LockWait,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockStrength {
    KeyShare,
    Share,
    NoKeyUpdate,
    Update,
}

impl LockStrength {
    /// The clause that requests it.
    pub fn clause(self) -> &'static str {
        match self {
            LockStrength::KeyShare => "FOR KEY SHARE",
            LockStrength::Share => "FOR SHARE",
            LockStrength::NoKeyUpdate => "FOR NO KEY UPDATE",
            LockStrength::Update => "FOR UPDATE",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockWait {
    Block,
    SkipLocked,
    NoWait,
}

#[derive(Clone, Debug)]
pub struct InsertInfo {
    /// Where rows come from: a range entry (VALUES or subquery), or none for a single row in `targets`.
    pub source: Option<usize>,
    /// The columns that get a value from there, in the order in which they were written; the others get their defaults.
    pub written: Vec<i16>,
    pub overriding: Overriding,
    pub on_conflict: Option<OnConflict>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overriding {
    None,
    User,
    System,
}

#[derive(Clone, Debug)]
pub struct OnConflict {
    /// The inference clause: expressions over the target table, WHERE, or a constraint; without either DO NOTHING is for any
    /// unique violation.
    pub inference: Vec<Expr>,
    /// For each of these, the collation and the operator class that its index must have, or 0.
    pub inference_by: Vec<(Oid, Oid)>,
    pub inference_filter: Option<Expr>,
    pub constraint: Oid,
    /// None: DO NOTHING. EXCLUDED is the range entry `excluded`.
    pub update: Option<OnConflictUpdate>,
}

#[derive(Clone, Debug)]
pub struct OnConflictUpdate {
    pub targets: Vec<Target>,
    pub filter: Option<Expr>,
    pub excluded: usize,
}

#[derive(Clone, Debug)]
pub struct MergeAction {
    pub matched: MergeMatch,
    pub condition: Option<Expr>,
    pub command: MergeCommand,
    pub targets: Vec<Target>,
    pub overriding: Overriding,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeMatch {
    Matched,
    NotMatchedBySource,
    NotMatchedByTarget,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeCommand {
    Insert,
    Update,
    Delete,
    DoNothing,
}

/// How a cast or function call was written, for deparse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoercionForm {
    Call,
    ExplicitCast,
    ImplicitCast,
    /// SQL syntax such as EXTRACT(... FROM ...), POSITION, OVERLAY, TRIM.
    SqlSyntax,
}

/// A typed expression.
#[derive(Clone, Debug)]
pub enum Expr {
    Const(Const),
    Var(Var),
    Param(Param),
    /// A function call (plain, or a cast by function).
    Function(Box<FunctionCall>),
    Operator(Box<OperatorCall>),
    /// `a IS [NOT] DISTINCT FROM b`; `operator` is the = operator.
    Distinct(Box<OperatorCall>),
    /// NULLIF; `operator` is the = operator.
    NullIf(Box<OperatorCall>),
    /// `scalar op ANY/ALL (array)`.
    ScalarArray(Box<ScalarArrayExpr>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Not(Box<Expr>),
    Case(Box<CaseExpr>),
    Coalesce {
        args: Vec<Expr>,
        ty: Oid,
        collation: Oid,
        location: i32,
    },
    /// GREATEST / LEAST; `operator` is < of the type.
    MinMax {
        greatest: bool,
        args: Vec<Expr>,
        ty: Oid,
        operator: Oid,
        collation: Oid,
    },
    NullTest {
        arg: Box<Expr>,
        is_null: bool,
        row: bool,
    },
    BooleanTest {
        arg: Box<Expr>,
        test: BooleanTest,
    },
    /// Binary-compatible cast.
    Relabel {
        arg: Box<Expr>,
        ty: Oid,
        typmod: i32,
        collation: Oid,
        form: CoercionForm,
    },
    /// Cast through text output and input.
    CoerceViaIo {
        arg: Box<Expr>,
        ty: Oid,
        collation: Oid,
        form: CoercionForm,
    },
    /// Array cast: `element` is applied to each element, which it sees as `Expr::CaseTest`.
    ArrayCoerce {
        arg: Box<Expr>,
        element: Box<Expr>,
        ty: Oid,
        typmod: i32,
        collation: Oid,
        form: CoercionForm,
    },
    /// Row to named composite type of the same shape.
    ConvertRowtype {
        arg: Box<Expr>,
        ty: Oid,
        form: CoercionForm,
    },
    /// Value checked against a domain's constraints.
    CoerceToDomain {
        arg: Box<Expr>,
        ty: Oid,
        typmod: i32,
        collation: Oid,
        form: CoercionForm,
    },
    /// VALUE in a domain's check.
    DomainValue {
        ty: Oid,
        typmod: i32,
        collation: Oid,
    },
    Collate {
        arg: Box<Expr>,
        collation: Oid,
    },
    Array(Box<ArrayExpr>),
    Row(Box<RowExpr>),
    /// Row comparison other than = and <> (those become AND/OR of operators).
    RowCompare(Box<RowCompareExpr>),
    FieldSelect {
        arg: Box<Expr>,
        field: i16,
        ty: Oid,
        typmod: i32,
        collation: Oid,
    },
    /// Assignment to fields of a composite.
    FieldStore {
        arg: Box<Expr>,
        values: Vec<(i16, Expr)>,
        ty: Oid,
    },
    /// Array element, slice or jsonb key; with `assign`, the container with that part replaced.
    Subscript(Box<SubscriptExpr>),
    Aggregate(Box<AggregateCall>),
    /// GROUPING(...): references of the grouped targets; filled from `group_by`.
    Grouping {
        args: Vec<Expr>,
        references: Vec<usize>,
        levels_up: usize,
        location: i32,
    },
    Window(Box<WindowCall>),
    Sublink(Box<Sublink>),
    /// CURRENT_DATE, CURRENT_USER and the like.
    SqlValue {
        function: SqlValueFunction,
        ty: Oid,
        typmod: i32,
    },
    /// DEFAULT in INSERT and UPDATE; replaced before planning.
    Default {
        ty: Oid,
        typmod: i32,
    },
    /// The value under test of a simple CASE or an array cast.
    CaseTest {
        ty: Oid,
        typmod: i32,
        collation: Oid,
    },
    /// WHERE CURRENT OF: the cursor's name (a constant or variable), and the target's ctid and tableoid.
    CurrentOf {
        args: Vec<Expr>,
    },
    /// Whether TABLESAMPLE takes a row: its ctid, the percentage, the seed.
    Sampled {
        system: bool,
        args: Vec<Expr>,
    },
    /// MERGE_ACTION().
    MergeAction,
    /// A value with FORMAT JSON, or one that is made jsonb for a path.
    JsonValue(Box<JsonValue>),
    JsonConstructor(Box<JsonConstructor>),
    IsJson(Box<IsJson>),
    /// JSON_EXISTS, JSON_QUERY, JSON_VALUE.
    Json(Box<JsonExpr>),
    /// nextval of an identity or serial default: sequence OID.
    NextValue {
        sequence: Oid,
        ty: Oid,
    },
}

#[derive(Clone, Debug)]
pub struct Const {
    pub value: Datum,
    pub ty: Oid,
    pub typmod: i32,
    pub collation: Oid,
    /// Byte offset in the statement, -1 unknown.
    pub location: i32,
}

#[derive(Clone, Debug)]
pub struct FunctionCall {
    pub function: Oid,
    pub args: Vec<Expr>,
    /// The number of last arguments that were not written: the stored call omits them, because their defaults may change.
    pub defaulted: usize,
    pub ty: Oid,
    pub collation: Oid,
    /// Collation the function compares with.
    pub input_collation: Oid,
    pub returns_set: bool,
    /// VARIADIC was written.
    pub variadic: bool,
    pub form: CoercionForm,
    /// Type modifier of the result (casts such as varchar(5)), -1 none.
    pub typmod: i32,
    pub location: i32,
}

#[derive(Clone, Debug)]
pub struct OperatorCall {
    pub operator: Oid,
    pub function: Oid,
    /// One (prefix) or two.
    pub args: Vec<Expr>,
    pub ty: Oid,
    pub collation: Oid,
    pub input_collation: Oid,
    pub returns_set: bool,
    pub location: i32,
}

#[derive(Clone, Debug)]
pub struct ScalarArrayExpr {
    pub operator: Oid,
    pub function: Oid,
    pub any: bool,
    pub scalar: Expr,
    pub array: Expr,
    pub input_collation: Oid,
    pub location: i32,
}

#[derive(Clone, Debug)]
pub struct CaseExpr {
    /// CASE arg WHEN: conditions refer to it as `Expr::CaseTest`.
    pub arg: Option<Expr>,
    pub whens: Vec<(Expr, Expr)>,
    pub default: Expr,
    pub ty: Oid,
    pub typmod: i32,
    pub collation: Oid,
    /// Byte offset in the statement, -1 unknown.
    pub location: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BooleanTest {
    True,
    NotTrue,
    False,
    NotFalse,
    Unknown,
    NotUnknown,
}

#[derive(Clone, Debug)]
pub struct ArrayExpr {
    pub elements: Vec<Expr>,
    pub element_type: Oid,
    pub ty: Oid,
    pub collation: Oid,
    /// Elements are arrays themselves.
    pub multidimensional: bool,
    /// Byte offset in the statement, -1 unknown.
    pub location: i32,
}

#[derive(Clone, Debug)]
pub struct RowExpr {
    pub fields: Vec<Expr>,
    pub names: Vec<Arc<str>>,
    pub ty: Oid,
    /// ROW(...) was written, or it came from a whole-row reference.
    pub explicit: bool,
    /// Byte offset in the statement, -1 unknown.
    pub location: i32,
}

#[derive(Clone, Debug)]
pub struct RowCompareExpr {
    pub comparison: Comparison,
    pub operators: Vec<Oid>,
    pub left: Vec<Expr>,
    pub right: Vec<Expr>,
    pub input_collations: Vec<Oid>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Less,
    LessEqual,
    Equal,
    GreaterEqual,
    Greater,
    NotEqual,
}

#[derive(Clone, Debug)]
pub struct SubscriptExpr {
    pub container: Expr,
    pub container_type: Oid,
    /// Result (element or container) type.
    pub ty: Oid,
    pub typmod: i32,
    pub collation: Oid,
    /// A slice has (lower, upper) pairs, either may be missing; an element has only uppers.
    pub slice: bool,
    pub lower: Vec<Option<Expr>>,
    pub upper: Vec<Option<Expr>>,
    pub assign: Option<Expr>,
}

#[derive(Clone, Debug)]
pub struct AggregateCall {
    pub function: Oid,
    pub args: Vec<Expr>,
    /// Ordered-set aggregates: the direct arguments (`args` are the aggregated ones).
    pub direct_args: Vec<Expr>,
    pub star: bool,
    pub distinct: bool,
    pub order_by: Vec<AggregateOrder>,
    pub filter: Option<Expr>,
    pub ordered_set: bool,
    pub variadic: bool,
    pub ty: Oid,
    pub collation: Oid,
    pub input_collation: Oid,
    /// Query level the aggregate belongs to, counted outwards.
    pub levels_up: usize,
    pub location: i32,
}

#[derive(Clone, Debug)]
pub struct AggregateOrder {
    pub expr: Expr,
    pub sort: Oid,
    pub equal: Oid,
    pub descending: bool,
    pub nulls_first: bool,
}

#[derive(Clone, Debug)]
pub struct WindowCall {
    /// A window function or an aggregate.
    pub function: Oid,
    pub args: Vec<Expr>,
    pub star: bool,
    pub filter: Option<Expr>,
    /// Index into `Query::windows`.
    pub window: usize,
    pub aggregate: bool,
    pub ignore_nulls: bool,
    pub ty: Oid,
    pub collation: Oid,
    pub input_collation: Oid,
    pub location: i32,
}

#[derive(Clone, Debug)]
pub struct Sublink {
    pub kind: SublinkKind,
    pub query: Query,
    /// ANY, ALL, row comparison: the comparison with `Expr::Param(Executor, i)` standing for output column i.
    pub test: Option<Expr>,
    /// The operator name as written, for deparse.
    pub operator: Option<Arc<str>>,
    /// The view that the query came from, where that was merged: its privileges are those of that view's. Or 0.
    pub view: Oid,
    pub ty: Oid,
    pub typmod: i32,
    pub collation: Oid,
    pub location: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SublinkKind {
    Exists,
    Any,
    All,
    RowCompare,
    /// Scalar subquery.
    Expr,
    /// UPDATE SET (a, b) = (SELECT ...); the Vars that use it are `Expr::FieldSelect` over it.
    MultiExpr,
    Array,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqlValueFunction {
    CurrentDate,
    CurrentTime,
    CurrentTimestamp,
    LocalTime,
    LocalTimestamp,
    CurrentRole,
    CurrentUser,
    User,
    SessionUser,
    CurrentCatalog,
    CurrentSchema,
}
