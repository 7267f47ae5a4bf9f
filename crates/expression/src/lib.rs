//! Compiled expressions: a `tree::Expr` compiled against the shape of an input row.
//!
//! An `Expression` is immutable and shared by every execution of a plan; state that changes lives in `Evaluation`. `eval_row`
//! serves one row, `eval_batch` a batch: both give the same values and raise the same errors, and neither evaluates an operand on
//! a row that SQL says is not evaluated (AND, OR, CASE, COALESCE).
//!
//! This crate lies below plans and operators: a plan holds expressions, and their caller passes an `Evaluation`, which runs
//! sub-plans through the trait `SubPlans`. Row writes use expressions too: checks, defaults, generated columns, index
//! expressions. `key` makes the keys that indexes store and sorting compares; `expand` turns values in stored form into values.

mod array;
mod array_change;
mod batch;
mod call;
pub mod compile;
mod condition;
mod evaluation;
pub mod expand;
mod json;
pub mod key;
mod members;
mod order_label;
mod pieces;
mod routine;
mod row;
mod scalar_array;
mod sqlvalue;
mod stored;
mod subplan;
mod user_aggregate;

use std::sync::Arc;

use melba_types::{Datum, Kind, Oid, Result, oids};

pub use array::array_of;
pub use batch::{Vector, filter, filter_rows, has_effects, in_row_order, repeat};
pub use call::{Call, CallTarget};
pub use compile::{Compiler, Resolved, Scope, TableScope, compile_domain_check, compile_for_table, is_io_immutable};
pub use evaluation::{Evaluation, NoSubPlans, SubPlans};
pub use json::{JsonPath, JsonQuery};
pub use order_label::OrderLabel;
pub use pieces::{Pieces, Weight};
pub use routine::{Routine, is_routine};
pub use subplan::{SubPlan, SubPlanKind, SubPlanTest};
pub use user_aggregate::user_aggregate;

use melba_tree::{BooleanTest, Comparison, SqlValueFunction};

/// A compiled expression with the type of its value.
#[derive(Clone, Debug)]
pub struct Expression {
    pub node: Node,
    pub ty: Oid,
    /// How values of `ty` are held.
    pub kind: Kind,
}

#[derive(Clone, Debug)]
pub enum Node {
    Const(Datum),
    /// Column of the input row.
    Column(usize),
    /// `$n`, counted from 0.
    Parameter(usize),
    /// Executor parameter.
    Executor(usize),
    /// Value of an enclosing CASE, array cast or domain check, counted from the innermost.
    Local(usize),
    Call(Box<Call>),
    /// A function that a user wrote.
    Routine(Box<Routine>),
    And(Vec<Expression>),
    Or(Vec<Expression>),
    Not(Box<Expression>),
    /// IS DISTINCT FROM; the call is the equality.
    Distinct(Box<Call>),
    NullIf(Box<Call>),
    ScalarArray(Box<ScalarArray>),
    Case(Box<Case>),
    Coalesce(Vec<Expression>),
    MinMax(Box<MinMax>),
    NullTest {
        arg: Box<Expression>,
        is_null: bool,
        row: bool,
    },
    BooleanTest {
        arg: Box<Expression>,
        test: BooleanTest,
    },
    /// Another type held the same way, or int4 held as oid and back.
    Relabel(Box<Expression>),
    CoerceIo(Box<Expression>),
    ArrayCoerce {
        arg: Box<Expression>,
        element: Box<Expression>,
        element_type: Oid,
    },
    ConvertRow {
        arg: Box<Expression>,
        /// For each field of the result, the argument's; `None`: they are the same.
        fields: Option<Arc<[usize]>>,
    },
    Domain {
        arg: Box<Expression>,
    },
    Array {
        elements: Vec<Expression>,
        element_type: Oid,
        multidimensional: bool,
    },
    Row {
        fields: Vec<Expression>,
        types: Arc<[Oid]>,
        names: Arc<[Arc<str>]>,
    },
    RowCompare(Box<RowCompare>),
    FieldSelect {
        arg: Box<Expression>,
        field: usize,
    },
    FieldStore {
        arg: Box<Expression>,
        values: Vec<(usize, Expression)>,
        types: Arc<[Oid]>,
    },
    Subscript(Box<Subscript>),
    SqlValue {
        function: SqlValueFunction,
        typmod: i32,
    },
    NextValue {
        sequence: Oid,
    },
    SubPlan(Box<SubPlan>),
    /// `body` with the value of `arg` as the innermost local.
    Let {
        arg: Box<Expression>,
        body: Box<Expression>,
    },
    JsonQuery(Box<JsonQuery>),
    /// MERGE_ACTION().
    MergeAction,
    /// The ctid of the table's row that a cursor stands on.
    CursorRow {
        cursor: Box<Expression>,
        table: Oid,
    },
    /// Whether the cursor of a name stands on the row of that ctid and tableoid.
    CurrentOf(Vec<Expression>),
    /// Bytes in the order of a value that functions of users order.
    OrderLabel(Box<OrderLabel>),
}

#[derive(Clone, Debug)]
pub struct ScalarArray {
    /// The comparison; `args` are the scalar and the array.
    pub call: Call,
    pub any: bool,
    /// Members of a constant array, as equality keys, when there are many.
    pub members: Option<Arc<members::Members>>,
    /// An array that is known when the statement begins, whose members may be equality keys, too.
    pub fixed: Option<Arc<members::FixedArray>>,
}

#[derive(Clone, Debug)]
pub struct Case {
    /// Pushed as a local for the conditions.
    pub arg: Option<Expression>,
    pub whens: Vec<(Expression, Expression)>,
    pub default: Expression,
}

#[derive(Clone, Debug)]
pub struct MinMax {
    pub greatest: bool,
    /// `<` of the type; its `args` are the candidates.
    pub less: Call,
}

#[derive(Clone, Debug)]
pub struct RowCompare {
    pub comparison: Comparison,
    /// For each pair of columns: `<` or `>` in the comparison's direction, and `=`.
    pub pairs: Vec<RowComparePair>,
}

#[derive(Clone, Debug)]
pub struct RowComparePair {
    /// The ordering operator as written, with its two operands.
    pub order: Call,
    /// Equality of the same operands.
    pub equal: Call,
}

#[derive(Clone, Debug)]
pub struct Subscript {
    pub container: Expression,
    pub container_type: Oid,
    pub element_type: Oid,
    pub slice: bool,
    pub lower: Vec<Option<Expression>>,
    pub upper: Vec<Option<Expression>>,
    pub assign: Option<Expression>,
    pub scheme: SubscriptScheme,
}

/// The kinds of subscripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubscriptScheme {
    /// Places in an array.
    Array,
    /// A path of text keys and integer places.
    Jsonb,
    /// One text key.
    Hstore,
}

impl SubscriptScheme {
    pub fn of(base: Oid) -> SubscriptScheme {
        match base {
            oids::JSONB => SubscriptScheme::Jsonb,
            oids::HSTORE => SubscriptScheme::Hstore,
            _ => SubscriptScheme::Array,
        }
    }
}

impl Expression {
    pub fn new(node: Node, ty: Oid, kind: Kind) -> Expression {
        Expression { node, ty, kind }
    }

    pub fn as_const(&self) -> Option<&Datum> {
        match &self.node {
            Node::Const(value) => Some(value),
            _ => None,
        }
    }

    /// The value that a label stands for; otherwise the expression itself.
    pub fn unlabelled(&self) -> &Expression {
        match &self.node {
            Node::OrderLabel(label) => &label.arg,
            _ => self,
        }
    }

    pub fn is_null_const(&self) -> bool {
        matches!(&self.node, Node::Const(Datum::Null))
    }

    /// The value for one input row.
    pub fn eval_row(&self, ctx: &Evaluation, row: &[Datum]) -> Result<Datum> {
        // Before the many kinds, whose evaluation needs a large frame of the stack.
        if let Node::Call(call) = &self.node
            && let Some(quick) = call.quick
        {
            return call.eval_quickly(quick, ctx, row);
        }
        row::eval(self, ctx, row)
    }

    /// Computes a number and puts it into the row itself, where it has one of the same type; false: it is to be evaluated.
    #[inline]
    pub fn put_number(&self, row: &mut [Datum], to: usize) -> bool {
        match &self.node {
            Node::Call(call) => call.put_quickly(row, to),
            _ => false,
        }
    }

    /// A condition for one input row: true only when the value is true.
    pub fn holds(&self, ctx: &Evaluation, row: &[Datum]) -> Result<bool> {
        Ok(matches!(self.eval_row(ctx, row)?, Datum::Bool(true)))
    }

    /// Appends the numbers of the input columns that the expression reads.
    pub fn columns(&self, out: &mut Vec<usize>) {
        if let Node::Column(i) = &self.node
            && !out.contains(i)
        {
            out.push(*i);
        }
        self.for_each_child(&mut |child| child.columns(out));
    }

    /// Whether the expression reads a column of the input.
    pub fn reads(&self, column: usize) -> bool {
        self.any(&mut |e| matches!(e.node, Node::Column(i) if i == column))
    }

    /// Whether any part of the expression satisfies `test`.
    pub fn any(&self, test: &mut dyn FnMut(&Expression) -> bool) -> bool {
        if test(self) {
            return true;
        }
        let mut found = false;
        self.for_each_child(&mut |child| found = found || child.any(test));
        found
    }

    /// Whether it reads a parameter with this number, counted from 0, or one beyond.
    pub fn reads_parameter_from(&self, first: usize) -> bool {
        self.any(&mut |e| matches!(e.node, Node::Parameter(i) if i >= first))
    }

    /// Whether evaluating it again may return another value.
    pub fn is_volatile(&self) -> bool {
        self.any(&mut |e| e.is_volatile_itself() || matches!(e.node, Node::SubPlan(_)))
    }

    /// Whether it may be evaluated again for a row: nothing else happens than before.
    pub fn is_repeatable(&self) -> bool {
        !self.any(&mut |e| match &e.node {
            Node::SubPlan(subplan) => !subplan.is_repeatable,
            _ => e.is_volatile_itself(),
        })
    }

    fn is_volatile_itself(&self) -> bool {
        match &self.node {
            Node::Call(call) | Node::Distinct(call) | Node::NullIf(call) => call.volatile,
            Node::Routine(routine) => routine.volatile,
            Node::NextValue { .. } => true,
            _ => false,
        }
    }

    /// Whether threads of one statement may evaluate it for different rows.
    pub fn is_parallel_safe(&self) -> bool {
        !self.any(&mut |e| match &e.node {
            Node::Call(call) | Node::Distinct(call) | Node::NullIf(call) => call.volatile || !call.parallel_safe,
            Node::ScalarArray(s) => !s.call.parallel_safe,
            Node::Routine(_) | Node::NextValue { .. } | Node::SubPlan(_) | Node::MergeAction => true,
            Node::CurrentOf(_) | Node::CursorRow { .. } => true,
            // All labels of a statement are of one order.
            Node::OrderLabel(_) => true,
            _ => false,
        })
    }

    fn for_each_child(&self, f: &mut dyn FnMut(&Expression)) {
        match &self.node {
            Node::Const(_)
            | Node::Column(_)
            | Node::Parameter(_)
            | Node::Executor(_)
            | Node::Local(_)
            | Node::SqlValue { .. }
            | Node::NextValue { .. }
            | Node::MergeAction => {}
            Node::CursorRow { cursor, .. } => f(cursor),
            Node::OrderLabel(label) => f(&label.arg),
            Node::Call(call) | Node::Distinct(call) | Node::NullIf(call) => call.args.iter().for_each(f),
            Node::Routine(routine) => routine.args.iter().for_each(f),
            Node::And(args) | Node::Or(args) | Node::Coalesce(args) | Node::CurrentOf(args) => args.iter().for_each(f),
            Node::Not(arg)
            | Node::Relabel(arg)
            | Node::CoerceIo(arg)
            | Node::ConvertRow { arg, .. }
            | Node::Domain { arg }
            | Node::NullTest { arg, .. }
            | Node::BooleanTest { arg, .. }
            | Node::FieldSelect { arg, .. } => f(arg),
            Node::ArrayCoerce { arg, element, .. } => {
                f(arg);
                f(element);
            }
            Node::Let { arg, body } => {
                f(arg);
                f(body);
            }
            Node::JsonQuery(query) => query.for_each_child(f),
            Node::ScalarArray(s) => s.call.args.iter().for_each(f),
            Node::Case(case) => {
                case.arg.iter().for_each(&mut *f);
                for (when, then) in &case.whens {
                    f(when);
                    f(then);
                }
                f(&case.default);
            }
            Node::MinMax(m) => m.less.args.iter().for_each(f),
            Node::Array { elements, .. } => elements.iter().for_each(f),
            Node::Row { fields, .. } => fields.iter().for_each(f),
            Node::RowCompare(compare) => {
                for pair in &compare.pairs {
                    pair.order.args.iter().for_each(&mut *f);
                }
            }
            Node::FieldStore { arg, values, .. } => {
                f(arg);
                values.iter().for_each(|(_, v)| f(v));
            }
            Node::Subscript(s) => {
                f(&s.container);
                s.lower.iter().chain(&s.upper).flatten().for_each(&mut *f);
                s.assign.iter().for_each(f);
            }
            Node::SubPlan(s) => {
                s.args.iter().for_each(|(_, arg)| f(arg));
                if let Some(test) = &s.test {
                    f(&test.condition);
                }
            }
        }
    }
}
