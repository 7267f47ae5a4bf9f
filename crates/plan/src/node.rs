//! The nodes of a plan: the operations to run, with every expression compiled against the rows of the node's input.

use std::ops::Range;
use std::sync::Arc;

use melba_engine::RelationLockMode;
use melba_fmgr::{MakeAggregate, SetFn, WindowFn};
use melba_types::{Datum, DbError, Kind, Oid, Result, TreeId};

pub use crate::index_node::*;
use crate::row_range::RowIdEnd;
use crate::shown::{ScannedName, ShownOutput};
use crate::zone_filter::ZoneFilter;
use melba_expression::Expression;
use melba_expression::key::KeyPart;
use melba_expression::{Call, JsonPath, Routine, has_effects};
use melba_tree::{Command, LockStrength, LockWait, OutputColumn, SetOperation, WindowFrame};

/// An immutable plan, shared by its executions.
#[derive(Debug)]
pub struct Plan {
    pub root: PlanNode,
    /// Visible output columns; the root may return more (junk comes last).
    pub columns: Vec<OutputColumn>,
    pub subplans: Vec<SubPlanNode>,
    pub ctes: Vec<CteNode>,
    /// Recursive unions' working tables.
    pub work_tables: usize,
    /// Filters that joins make for scans, numbered from 0.
    pub join_filters: usize,
    /// Filters that sorts of their first rows make for scans, numbered from 0.
    pub top_filters: usize,
    /// Nodes are numbered from 0.
    pub nodes: usize,
    /// The locks of the plan, in the order in which planning met them.
    pub relations: Vec<(Oid, RelationLockMode)>,
    pub command: PlanCommand,
    /// Some node reads the whole of a table that is not small.
    pub scans_tables: bool,
    /// Constants that cannot be computed, wherever they are: PostgreSQL computes them when it plans.
    pub constant_error: Option<DbError>,
    /// Parameters decide which partitions have rows. All are in the plan.
    pub prunes_by_parameters: bool,
    /// Rules have rewritten the statement: these run, and not the root.
    pub steps: Option<Arc<PlanSteps>>,
}

/// The commands of a rewritten statement, in the order in which they run.
#[derive(Debug)]
pub struct PlanSteps {
    pub steps: Vec<PlanStep>,
    /// The one whose rows the statement counts and returns.
    pub counted: Option<usize>,
    /// The kind of rules by which the statement is something else than one statement.
    pub not_one: Option<&'static str>,
}

#[derive(Debug)]
pub enum PlanStep {
    Run(Arc<Plan>),
    Notify { channel: Arc<str>, payload: Arc<str> },
}

impl PlanSteps {
    pub fn plans(&self) -> impl Iterator<Item = &Arc<Plan>> {
        self.steps.iter().filter_map(|step| if let PlanStep::Run(plan) = step { Some(plan) } else { None })
    }

    /// Of the step that counts.
    pub fn counted_plan(&self) -> Option<&Arc<Plan>> {
        match self.steps.get(self.counted?)? {
            PlanStep::Run(plan) => Some(plan),
            PlanStep::Notify { .. } => None,
        }
    }
}

impl Plan {
    /// To be called before the plan is run or shown: the error is raised even if no row needs the constant.
    pub fn check_constants(&self) -> Result<()> {
        self.constant_error.clone().map_or(Ok(()), Err)
    }

    /// It changes rows, in WITH or itself: all of that must happen, however many of its rows are wanted.
    pub fn must_complete(&self) -> bool {
        self.command != PlanCommand::Select || self.ctes.iter().any(|c| c.modifying)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanCommand {
    Select,
    Insert,
    Update,
    Delete,
    Merge,
}

impl From<Command> for PlanCommand {
    fn from(command: Command) -> PlanCommand {
        match command {
            Command::Select => PlanCommand::Select,
            Command::Insert => PlanCommand::Insert,
            Command::Update => PlanCommand::Update,
            Command::Delete => PlanCommand::Delete,
            Command::Merge => PlanCommand::Merge,
        }
    }
}

impl PlanCommand {
    pub fn name(self) -> &'static str {
        match self {
            PlanCommand::Select => "SELECT",
            PlanCommand::Insert => "INSERT",
            PlanCommand::Update => "UPDATE",
            PlanCommand::Delete => "DELETE",
            PlanCommand::Merge => "MERGE",
        }
    }
}

/// A plan that expressions run.
#[derive(Debug)]
pub struct SubPlanNode {
    pub node: PlanNode,
    /// Executor parameters it depends on.
    pub parameters: Vec<usize>,
    /// IN by hash: how the columns are compared; empty when it is not.
    pub probe_keys: Arc<[KeyPart]>,
    /// For EXPLAIN.
    pub name: String,
}

/// A WITH query whose rows are shared by its readers.
#[derive(Debug)]
pub struct CteNode {
    pub name: Arc<str>,
    pub node: PlanNode,
    pub parameters: Vec<usize>,
    /// Changes data: runs to its end exactly once, read or not.
    pub modifying: bool,
}

#[derive(Debug)]
pub struct PlanNode {
    /// Place in the plan, for EXPLAIN ANALYZE.
    pub id: usize,
    pub op: Op,
    /// How the output columns are held.
    pub kinds: Arc<[Kind]>,
    pub estimate: Estimate,
    /// Lines of EXPLAIN below the node, when the plan was made for EXPLAIN.
    pub details: Vec<(&'static str, String)>,
    /// What EXPLAIN names in the node's title.
    pub scanned: Option<Box<ScannedName>>,
    /// The columns that the node computes itself, for EXPLAIN VERBOSE. The others are those of its inputs.
    pub outputs: Option<Vec<ShownOutput>>,
}

impl PlanNode {
    /// The scan whose rows this node processes one by one and independently: it lies below filters, projections, and the left
    /// sides of joins that do not need all left rows together: hash joins, and loops that find each row's partners by an index.
    pub fn driving_scan(&self) -> Option<&Arc<TableScanNode>> {
        match &self.op {
            Op::TableScan(scan) => Some(scan).filter(|scan| scan.row.is_none()),
            Op::Filter(n) => n.input.driving_scan(),
            Op::Project(n) => n.input.driving_scan(),
            Op::HashJoin(n) => n.left.driving_scan(),
            Op::NestedLoop(n) if !n.join.gives_right_last() && n.right.index_scan().is_some() => n.left.driving_scan(),
            _ => None,
        }
    }

    pub fn index_scan(&self) -> Option<&IndexScanNode> {
        if let Op::IndexScan(scan) = &self.op { Some(scan) } else { None }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Estimate {
    pub startup: f64,
    pub total: f64,
    pub rows: f64,
}

#[derive(Debug)]
pub enum Op {
    Result(Arc<ResultNode>),
    Values(Arc<Vec<Vec<Expression>>>),
    TableScan(Arc<TableScanNode>),
    IndexScan(Arc<IndexScanNode>),
    BitmapScan(Arc<BitmapScanNode>),
    SystemScan(Arc<SystemScanNode>),
    FunctionScan(Arc<FunctionScanNode>),
    FileScan(Arc<crate::file_scan::FileScanNode>),
    JsonTable(Arc<JsonTableNode>),
    CteScan { cte: usize },
    WorkTableScan { table: usize },
    Filter(Arc<FilterNode>),
    Project(Arc<ProjectNode>),
    ProjectSet(Arc<ProjectSetNode>),
    HashJoin(Arc<HashJoinNode>),
    NestedLoop(Arc<NestedLoopNode>),
    Aggregate(Arc<AggregateNode>),
    Window(Arc<WindowNode>),
    Sort(Arc<SortNode>),
    Distinct(Arc<DistinctNode>),
    Limit(Arc<LimitNode>),
    SetOp(Arc<SetOpNode>),
    Append(Arc<AppendNode>),
    RecursiveUnion(Arc<RecursiveUnionNode>),
    LockRows(Arc<LockRowsNode>),
    Modify(Arc<super::modify_node::ModifyNode>),
}

/// The rows of all inputs.
#[derive(Debug)]
pub struct AppendNode {
    pub inputs: Vec<PlanNode>,
    /// Over the columns of each: the order that all have, and in which their rows are merged. Without keys they come one after the other.
    pub merge: Vec<SortKey>,
    /// Which of the inputs, partitions of a table, need to be read.
    pub pruning: Option<super::pruning::Pruning>,
}

/// The input's rows, or one row without columns, if constant conditions hold.
#[derive(Debug)]
pub struct ResultNode {
    pub input: Option<PlanNode>,
    pub conditions: Vec<Expression>,
}

/// Where a scanned row's output columns come from.
#[derive(Clone, Debug)]
pub enum ScanOutput {
    /// Index into the projection.
    Column(usize),
    /// ctid.
    RowId,
    /// xmin: the transaction that has made the version.
    Maker,
    Const(Datum),
    /// The row as a composite value; the columns are indices into the projection, `None` for dropped ones.
    WholeRow {
        ty: Oid,
        columns: Vec<Option<usize>>,
        types: Arc<[Oid]>,
        names: Arc<[Arc<str>]>,
    },
}

/// A stored table as a scan reads it.
#[derive(Clone, Debug)]
pub struct TableSource {
    pub relation: Oid,
    pub name: Arc<str>,
    pub alias: Arc<str>,
    pub tree: TreeId,
    /// Columns read, by position in the table.
    pub projection: Vec<usize>,
    /// By position in the table: the values of columns that are newer than a row.
    pub missing: Vec<Datum>,
    pub outputs: Vec<ScanOutput>,
    /// Of the outputs.
    pub kinds: Arc<[Kind]>,
    /// Virtual columns, computed from the projection; they count as further columns of it.
    pub virtuals: Vec<Expression>,
    /// The outputs are the first columns of the projection, in order, and nothing is computed. Conditions read those behind.
    pub plain: bool,
}

#[derive(Debug)]
pub struct TableScanNode {
    pub source: TableSource,
    pub zones: Vec<ZoneFilter>,
    pub filter: Vec<Expression>,
    /// It raises no error for any row.
    pub never_fails: bool,
    /// The ctid of the only row that is wanted.
    pub row: Option<Expression>,
    /// The range of ctids whose rows are wanted: within all of these ends.
    pub ends: Vec<RowIdEnd>,
    /// Which columns of the projection joins above have filters for, and their numbers.
    pub join_filters: Vec<(usize, usize)>,
    /// The same for a sort above that keeps its first rows.
    pub top_filter: Option<(usize, usize)>,
    /// Only the least and the greatest value of each column are needed, and there is no condition.
    pub extremes: bool,
    /// Columns of strings that may be returned with their dictionaries (`ColumnData::Coded`).
    pub coded: Vec<usize>,
}

impl TableScanNode {
    /// No column is wanted and no row left out: only their number counts.
    pub fn only_counts(&self) -> bool {
        let source = &self.source;
        source.plain && source.projection.is_empty() && self.filter.is_empty() && self.join_filters.is_empty()
    }
}

#[derive(Debug)]
pub struct SystemScanNode {
    pub relation: Oid,
    pub name: Arc<str>,
    pub alias: Arc<str>,
    /// Columns of the relation, by position.
    pub outputs: Vec<ScanOutput>,
    pub column_kinds: Vec<Kind>,
    /// Column position = value, to hand to the relation's generator.
    pub equal: Vec<(usize, Expression)>,
    /// Column position = ANY (array), for columns that the generator finds rows by; the filter has them, too.
    pub any_of: Vec<(usize, Expression)>,
    /// (output, number): filters that joins make, as for `TableScanNode`.
    pub join_filters: Vec<(usize, usize)>,
    /// Comparisons of the first column of a relation whose rows are `Synthesized`, which make the scan shorter; the filter has them, too.
    pub ranges: Vec<(melba_engine::ZoneOp, Expression)>,
    pub filter: Vec<Expression>,
}

/// A set-returning (or any) function as a source of rows.
#[derive(Clone, Debug)]
pub struct SetCall {
    pub source: SetSource,
    /// Number of columns the function returns, and their kinds.
    pub kinds: Vec<Kind>,
    pub types: Vec<Oid>,
    /// A composite or record result is spread over the columns.
    pub spread: bool,
    /// The row type of several columns as one value, where that is needed.
    pub row: Option<RowShape>,
}

impl SetCall {
    /// Adds the input columns that the arguments read.
    pub fn columns(&self, out: &mut Vec<usize>) {
        match &self.source {
            SetSource::Set { call, .. } | SetSource::System { call } => call.args.iter().for_each(|arg| arg.columns(out)),
            SetSource::Routine(routine) => routine.args.iter().for_each(|arg| arg.columns(out)),
            SetSource::Transition(_) => {}
            SetSource::Scalar(expression) => expression.columns(out),
        }
    }
}

/// The type and the columns of rows that a function returns column by column.
#[derive(Clone, Debug)]
pub struct RowShape {
    pub type_oid: Oid,
    pub types: Arc<[Oid]>,
    pub names: Arc<[Arc<str>]>,
}

#[derive(Clone)]
pub enum SetSource {
    Set {
        function: SetFn,
        call: Call,
    },
    /// By name through the session, as an array of rows.
    System {
        call: Call,
    },
    /// A function that a user wrote.
    Routine(Box<Routine>),
    /// The rows that a trigger's statement has changed, by name.
    Transition(Arc<str>),
    /// One value, one row.
    Scalar(Expression),
}

impl std::fmt::Debug for SetSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            SetSource::Set { .. } => "Set",
            SetSource::System { .. } => "System",
            SetSource::Routine(_) => "Routine",
            SetSource::Transition(_) => "Transition",
            SetSource::Scalar(_) => "Scalar",
        })
    }
}

#[derive(Debug)]
pub struct FunctionScanNode {
    pub name: String,
    pub alias: Arc<str>,
    pub functions: Vec<SetCall>,
    pub ordinality: bool,
    pub filter: Vec<Expression>,
    /// The columns that are returned.
    pub outputs: Vec<usize>,
}

/// JSON_TABLE.
#[derive(Debug)]
pub struct JsonTableNode {
    /// The document, PASSING and the root's path, of which all items are read.
    pub rows: JsonPath,
    /// Errors of the paths of rows are raised.
    pub throws: bool,
    /// The root first.
    pub paths: Vec<JsonTableStep>,
    /// Over the item of their path as a local; `None`: its number.
    pub columns: Vec<Option<Expression>>,
}

/// A path that supplies rows, and its own columns.
#[derive(Debug)]
pub struct JsonTableStep {
    pub path: Datum,
    pub columns: Range<usize>,
    /// Paths over its items: their rows follow each other.
    pub nested: Vec<usize>,
}

#[derive(Debug)]
pub struct FilterNode {
    pub input: PlanNode,
    pub conditions: Vec<Expression>,
}

#[derive(Debug)]
pub struct ProjectNode {
    pub input: PlanNode,
    pub expressions: Vec<Expression>,
}

/// Targets with set-returning functions: the input's columns, followed by one column a function.
#[derive(Debug)]
pub struct ProjectSetNode {
    pub input: PlanNode,
    pub functions: Vec<SetCall>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinType {
    Inner,
    Left,
    Right,
    Full,
    /// Left rows with a match.
    Semi,
    /// Left rows with a match, beside the first one.
    SemiPair,
    /// Left rows without one.
    Anti,
    /// `NOT IN`, by hash only and by one key: like `Anti`, but a NULL is perhaps equal to anything. So no row passes where the right side
    /// has one, and none whose own key is NULL, unless the right side has no rows.
    NotIn,
    /// Right rows with a match. For hash joins, like the next one: the built rows are returned.
    RightSemi,
    /// Right rows without one.
    RightAnti,
}

impl JoinType {
    /// The output has the columns of the left side.
    pub fn keeps_left(self) -> bool {
        !matches!(self, JoinType::RightSemi | JoinType::RightAnti)
    }

    /// The output has the columns of the right side.
    pub fn keeps_right(self) -> bool {
        !matches!(self, JoinType::Semi | JoinType::Anti | JoinType::NotIn)
    }

    /// The join with exchanged sides that returns the same rows, where there is one that builds on the former left side.
    pub fn built_on_left(self) -> Option<JoinType> {
        match self {
            JoinType::Left => Some(JoinType::Right),
            JoinType::Semi => Some(JoinType::RightSemi),
            JoinType::Anti => Some(JoinType::RightAnti),
            _ => None,
        }
    }

    /// Left rows without a partner are returned, too.
    pub fn keeps_unmatched_left(self) -> bool {
        matches!(self, JoinType::Left | JoinType::Full | JoinType::Anti | JoinType::NotIn)
    }

    /// Right rows without a partner are returned, too.
    pub fn keeps_unmatched_right(self) -> bool {
        matches!(self, JoinType::Right | JoinType::Full | JoinType::RightAnti)
    }

    /// Rows of the right side come once all left rows are read.
    pub fn gives_right_last(self) -> bool {
        matches!(self, JoinType::Right | JoinType::Full | JoinType::RightSemi | JoinType::RightAnti)
    }
}

/// The right side is built into a hash table, the left side probes it.
#[derive(Debug)]
pub struct HashJoinNode {
    pub join: JoinType,
    pub left: PlanNode,
    pub right: PlanNode,
    pub left_keys: Vec<Expression>,
    pub right_keys: Vec<Expression>,
    pub parts: Vec<KeyPart>,
    /// Over the columns of both sides.
    pub residual: Vec<Expression>,
    /// Which keys of the built rows make filters for scans of the left side, and their numbers.
    pub filters: Vec<(usize, usize)>,
    /// Threads that may read parts of the right side beside the statement's own.
    pub workers: usize,
    /// Columns of strings of the right side that may be returned as codes of the built rows (`ColumnData::Coded`).
    pub coded: Vec<usize>,
}

#[derive(Debug)]
pub struct NestedLoopNode {
    pub join: JoinType,
    pub left: PlanNode,
    pub right: PlanNode,
    /// Executor parameters set from left columns before the right side is run; without any it is run once and kept.
    pub parameters: Vec<(usize, usize)>,
    pub conditions: Vec<Expression>,
}

#[derive(Debug)]
pub struct AggregateNode {
    pub input: PlanNode,
    pub groups: Vec<Expression>,
    pub parts: Vec<KeyPart>,
    /// Sets of groups (indices); one set of all groups without GROUPING SETS.
    pub sets: Vec<Vec<usize>>,
    /// Of each set, those that tell its groups apart: the others have one value for all rows of a group.
    pub keys: Vec<Vec<usize>>,
    /// Groups that functions of users order, and the groups behind all others that are their labels.
    pub labels: Vec<(usize, usize)>,
    pub aggregates: Vec<AggregateSpec>,
    /// GROUPING(...): the groups each is about.
    pub groupings: Vec<Vec<usize>>,
    /// Over groups, aggregates, groupings.
    pub having: Vec<Expression>,
    /// PostgreSQL would sort the rows, for aggregates with DISTINCT or ORDER BY: the groups come in the order of their keys.
    pub sorted: bool,
    /// Threads that may collect parts of the input beside the statement's own.
    pub workers: usize,
    /// Into how many parts they split the rows by their keys before they aggregate these; 0: not at all.
    pub scatters: usize,
}

/// One aggregate function call.
#[derive(Clone)]
pub struct AggregateSpec {
    pub make: MakeAggregate,
    pub call: Call,
    pub kind: Kind,
    /// Rows with a NULL argument are left out.
    pub strict: bool,
    pub filter: Option<Expression>,
    /// DISTINCT: keys over the arguments, none where they are in `order`.
    pub distinct: Option<Vec<KeyPart>>,
    pub order: Vec<(Expression, KeyPart)>,
    /// Direct arguments of ordered-set aggregates, over the groups: evaluated once a group.
    pub direct: Vec<Expression>,
    /// The direct arguments are a row with which each row is compared.
    pub hypothetical: bool,
}

impl std::fmt::Debug for AggregateSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AggregateSpec").field("call", &self.call).finish_non_exhaustive()
    }
}

/// The input comes sorted by partition and order columns. Output: the input's columns, then one a function.
#[derive(Debug)]
pub struct WindowNode {
    pub input: PlanNode,
    pub partition: Vec<(Expression, KeyPart)>,
    pub order: Vec<(Expression, KeyPart)>,
    pub frame: WindowFrame,
    pub start_offset: Option<Expression>,
    pub end_offset: Option<Expression>,
    /// RANGE with offsets: the in_range function of the order column's type.
    pub in_range_start: Option<Call>,
    pub in_range_end: Option<Call>,
    pub functions: Vec<WindowSpec>,
}

#[derive(Debug)]
pub struct WindowSpec {
    pub function: WindowFunction,
    pub call: Call,
    pub kind: Kind,
    pub filter: Option<Expression>,
}

#[derive(Clone)]
pub enum WindowFunction {
    Window(WindowFn),
    Aggregate { make: MakeAggregate, strict: bool },
}

impl std::fmt::Debug for WindowFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WindowFunction")
    }
}

#[derive(Debug)]
pub struct SortNode {
    pub input: PlanNode,
    pub keys: Vec<SortKey>,
    /// The number of the first keys that the rows come in the order of.
    pub presorted: usize,
    /// Only this many rows will be read.
    pub bound: Option<SortBound>,
    /// The number of the filter that the first key makes for the scan below.
    pub top_filter: Option<usize>,
    /// Threads beside the statement's own that sort parts of the input.
    pub workers: usize,
}

/// LIMIT and OFFSET.
pub type SortBound = (Option<Expression>, Option<Expression>);

/// An expression to sort by, and how.
pub type SortKey = (Expression, KeyPart);

#[derive(Debug)]
pub struct DistinctNode {
    pub input: PlanNode,
    /// Over the row: what is compared.
    pub keys: Vec<SortKey>,
    /// Equal rows are adjacent: the first of each run is kept.
    pub sorted: bool,
}

#[derive(Debug)]
pub struct LimitNode {
    pub input: PlanNode,
    pub limit: Option<Expression>,
    pub offset: Option<Expression>,
    /// WITH TIES: the sort keys.
    pub ties: Option<Vec<(Expression, KeyPart)>>,
}

#[derive(Debug)]
pub struct SetOpNode {
    pub operation: SetOperation,
    pub all: bool,
    pub left: PlanNode,
    pub right: PlanNode,
    /// Over the rows of either side: what is compared.
    pub keys: Vec<SortKey>,
}

#[derive(Debug)]
pub struct RecursiveUnionNode {
    pub base: PlanNode,
    pub recursive: PlanNode,
    pub table: usize,
    /// Assigned whenever the working table changes.
    pub parameter: usize,
    /// UNION: duplicates are dropped, by these keys.
    pub distinct: Option<Vec<SortKey>>,
}

#[derive(Debug)]
pub struct LockRowsNode {
    pub input: PlanNode,
    pub locks: Vec<RowLock>,
    /// The conditions that a row changed meanwhile must still satisfy.
    pub recheck: Vec<Recheck>,
}

impl LockRowsNode {
    /// Whether the conditions of a row may have side effects: those of the next row are evaluated when this row is locked.
    pub fn has_effects(&self) -> bool {
        self.recheck.iter().any(Recheck::has_effects)
    }
}

/// One step of rechecking a joined row of which a part has changed during the wait for its lock. The other parts stay as they
/// are: PostgreSQL does not search for other partners either.
#[derive(Debug)]
pub enum Recheck {
    /// The row is dropped unless this holds.
    Condition(Expression),
    /// An outer join's partner is lost unless these hold: its columns become null.
    Outer { conditions: Vec<Expression>, columns: Vec<usize> },
}

impl Recheck {
    pub fn has_effects(&self) -> bool {
        match self {
            Recheck::Condition(condition) => has_effects(std::iter::once(condition)),
            Recheck::Outer { conditions, .. } => has_effects(conditions.iter()),
        }
    }
}

/// A locked table's place in the rows that pass.
#[derive(Debug)]
pub struct RowLock {
    /// One; of a table with children, all that have rows.
    pub tables: Vec<LockedTable>,
    /// Column with the table's OID, where there are several.
    pub table: Option<usize>,
    pub strength: LockStrength,
    pub wait: LockWait,
    /// Column with the row id.
    pub row_id: usize,
    /// Columns that hold the table's outputs, to be replaced by those of a newer version: (column, index into outputs).
    pub columns: Vec<(usize, usize)>,
}

#[derive(Debug)]
pub struct LockedTable {
    pub source: TableSource,
    /// The columns of the table's unique keys, by position.
    pub keys: Vec<usize>,
}
