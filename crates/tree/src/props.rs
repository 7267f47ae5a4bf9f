//! Properties of every expression: type, type modifier, collation, place in the statement.

mod equal;

use melba_types::oids;

pub use equal::{equal, shape};

use super::*;

impl Expr {
    pub fn ty(&self) -> Oid {
        match self {
            Expr::Const(c) => c.ty,
            Expr::Var(v) => v.ty,
            Expr::Param(p) => p.ty,
            Expr::Function(f) => f.ty,
            Expr::Operator(o) | Expr::NullIf(o) => o.ty,
            Expr::Distinct(_)
            | Expr::ScalarArray(_)
            | Expr::And(_)
            | Expr::Or(_)
            | Expr::Not(_)
            | Expr::NullTest { .. }
            | Expr::BooleanTest { .. }
            | Expr::RowCompare(_)
            | Expr::IsJson(_)
            | Expr::Sampled { .. }
            | Expr::CurrentOf { .. } => oids::BOOL,
            Expr::Case(c) => c.ty,
            Expr::Coalesce { ty, .. }
            | Expr::MinMax { ty, .. }
            | Expr::Relabel { ty, .. }
            | Expr::CoerceViaIo { ty, .. }
            | Expr::ArrayCoerce { ty, .. }
            | Expr::ConvertRowtype { ty, .. }
            | Expr::CoerceToDomain { ty, .. }
            | Expr::DomainValue { ty, .. }
            | Expr::FieldSelect { ty, .. }
            | Expr::FieldStore { ty, .. }
            | Expr::SqlValue { ty, .. }
            | Expr::Default { ty, .. }
            | Expr::CaseTest { ty, .. }
            | Expr::NextValue { ty, .. } => *ty,
            Expr::Collate { arg, .. } => arg.ty(),
            Expr::Array(a) => a.ty,
            Expr::Row(r) => r.ty,
            Expr::Subscript(s) => s.ty,
            Expr::Aggregate(a) => a.ty,
            Expr::Grouping { .. } => oids::INT4,
            Expr::Window(w) => w.ty,
            Expr::Sublink(s) => s.ty,
            Expr::MergeAction => oids::TEXT,
            Expr::JsonValue(v) => v.formatting.ty(),
            Expr::JsonConstructor(c) => c.returning.ty,
            Expr::Json(j) => j.returning.ty,
        }
    }

    pub fn typmod(&self) -> i32 {
        match self {
            Expr::Const(c) => c.typmod,
            Expr::Var(v) => v.typmod,
            Expr::Param(p) => p.typmod,
            Expr::Function(f) => f.typmod,
            Expr::NullIf(o) => o.args.first().map_or(-1, Expr::typmod),
            Expr::Case(c) => c.typmod,
            Expr::Coalesce { args, ty, .. } | Expr::MinMax { args, ty, .. } => common_typmod(args, *ty),
            Expr::Relabel { typmod, .. }
            | Expr::ArrayCoerce { typmod, .. }
            | Expr::CoerceToDomain { typmod, .. }
            | Expr::DomainValue { typmod, .. }
            | Expr::FieldSelect { typmod, .. }
            | Expr::SqlValue { typmod, .. }
            | Expr::Default { typmod, .. }
            | Expr::CaseTest { typmod, .. } => *typmod,
            Expr::Collate { arg, .. } => arg.typmod(),
            Expr::Array(a) => array_typmod(a),
            Expr::Subscript(s) => s.typmod,
            Expr::Sublink(s) => s.typmod,
            Expr::JsonValue(v) => v.formatting.typmod(),
            Expr::JsonConstructor(c) => c.returning.typmod,
            Expr::Json(j) => j.returning.typmod,
            _ => -1,
        }
    }

    /// The collation of the value, 0 when its type has none or it is indeterminate.
    pub fn collation(&self) -> Oid {
        match self {
            Expr::Const(c) => c.collation,
            Expr::Var(v) => v.collation,
            Expr::Param(p) => p.collation,
            Expr::Function(f) => f.collation,
            Expr::Operator(o) | Expr::NullIf(o) => o.collation,
            Expr::Case(c) => c.collation,
            Expr::Coalesce { collation, .. }
            | Expr::MinMax { collation, .. }
            | Expr::Relabel { collation, .. }
            | Expr::CoerceViaIo { collation, .. }
            | Expr::ArrayCoerce { collation, .. }
            | Expr::CoerceToDomain { collation, .. }
            | Expr::DomainValue { collation, .. }
            | Expr::Collate { collation, .. }
            | Expr::FieldSelect { collation, .. }
            | Expr::CaseTest { collation, .. } => *collation,
            Expr::Array(a) => a.collation,
            Expr::Subscript(s) => s.collation,
            Expr::Aggregate(a) => a.collation,
            Expr::Window(w) => w.collation,
            Expr::Sublink(s) => s.collation,
            Expr::JsonValue(v) => v.formatting.collation(),
            Expr::JsonConstructor(c) => c.collation,
            Expr::Json(j) => j.collation,
            Expr::SqlValue { ty, .. } if *ty == oids::NAME => C_COLLATION,
            Expr::MergeAction => DEFAULT_COLLATION,
            _ => Oid::INVALID,
        }
    }

    /// Leftmost byte offset in the statement, -1 unknown.
    pub fn location(&self) -> i32 {
        match self {
            Expr::Const(c) => c.location,
            Expr::Var(v) => v.location,
            Expr::Param(p) => p.location,
            Expr::Function(f) => leftmost(f.location, &f.args),
            Expr::Operator(o) | Expr::Distinct(o) | Expr::NullIf(o) => leftmost(o.location, &o.args),
            Expr::ScalarArray(s) => earlier(s.location, s.scalar.location()),
            Expr::And(args) | Expr::Or(args) => leftmost(-1, args),
            Expr::Aggregate(a) => a.location,
            Expr::Array(a) => a.location,
            Expr::Row(r) if r.location >= 0 => r.location,
            Expr::Case(c) => c.location,
            Expr::Coalesce { location, .. } | Expr::Grouping { location, .. } => *location,
            Expr::Window(w) => w.location,
            Expr::Sublink(s) => match &s.test {
                Some(test) => earlier(s.location, test.location()),
                None => s.location,
            },
            Expr::JsonConstructor(c) => c.location,
            Expr::IsJson(p) => p.location,
            Expr::Json(j) => j.location,
            _ => {
                let mut location = -1;
                self.children(&mut |child| {
                    if location < 0 {
                        location = child.location();
                    }
                });
                location
            }
        }
    }

    /// A NULL constant of the given type.
    pub fn null(ty: Oid, typmod: i32, collation: Oid) -> Expr {
        Expr::Const(Const { value: melba_types::Datum::Null, ty, typmod, collation, location: -1 })
    }

    /// A constant text.
    pub fn text(value: &str) -> Expr {
        let value = melba_types::Datum::text(value);
        Expr::Const(Const { value, ty: oids::TEXT, typmod: -1, collation: DEFAULT_COLLATION, location: -1 })
    }

    pub fn is_null_const(&self) -> bool {
        matches!(self, Expr::Const(c) if c.value.is_null())
    }
}

/// pg_collation "default".
pub const DEFAULT_COLLATION: Oid = Oid(100);
/// pg_collation "C".
pub const C_COLLATION: Oid = Oid(950);

fn common_typmod(args: &[Expr], ty: Oid) -> i32 {
    let Some(first) = args.first() else { return -1 };
    let typmod = first.typmod();
    if args.iter().all(|a| a.ty() == ty && a.typmod() == typmod) { typmod } else { -1 }
}

fn array_typmod(a: &ArrayExpr) -> i32 {
    let Some(first) = a.elements.first() else { return -1 };
    let typmod = first.typmod();
    let ty = if a.multidimensional { a.ty } else { a.element_type };
    if typmod >= 0 && a.elements.iter().all(|e| e.ty() == ty && e.typmod() == typmod) { typmod } else { -1 }
}

fn earlier(a: i32, b: i32) -> i32 {
    match (a < 0, b < 0) {
        (true, _) => b,
        (_, true) => a,
        _ => a.min(b),
    }
}

fn leftmost(location: i32, args: &[Expr]) -> i32 {
    args.iter().fold(location, |l, a| earlier(l, a.location()))
}

impl Query {
    /// An empty SELECT.
    pub fn new(command: Command) -> Query {
        Query {
            command,
            ctes: Vec::new(),
            recursive: false,
            range_table: Vec::new(),
            from: Vec::new(),
            filter: None,
            targets: Vec::new(),
            result: None,
            insert: None,
            merge_actions: Vec::new(),
            merge_condition: None,
            returning: Vec::new(),
            returning_old_alias: None,
            row_checks: Vec::new(),
            returning_new_alias: None,
            group_by: Vec::new(),
            grouping_sets: None,
            group_distinct: false,
            grouping_text: None,
            having: None,
            relied_on: Vec::new(),
            windows: Vec::new(),
            distinct: Distinct::None,
            order_by: Vec::new(),
            offset: None,
            limit: None,
            with_ties: false,
            locking: Vec::new(),
            set_operation: None,
            has_aggregates: false,
            has_windows: false,
            has_set_returning: false,
        }
    }

    /// Adds conditions that each row of WHERE must pass, after those that are there.
    pub fn add_conditions(&mut self, conditions: impl IntoIterator<Item = Expr>) {
        let mut all = match self.filter.take() {
            None => Vec::new(),
            Some(Expr::And(all)) => all,
            Some(one) => vec![one],
        };
        all.extend(conditions);
        self.filter = if all.len() > 1 { Some(Expr::And(all)) } else { all.pop() };
    }

    /// The columns the statement returns: the select list, or RETURNING's.
    pub fn output(&self) -> &[Target] {
        if self.command == Command::Select { &self.targets } else { &self.returning }
    }

    /// Name and type of the visible output columns.
    pub fn output_columns(&self) -> Vec<OutputColumn> {
        let visible = self.output().iter().filter(|t| !t.junk);
        visible
            .map(|t| OutputColumn {
                name: t.name.clone(),
                ty: t.expr.ty(),
                typmod: t.expr.typmod(),
                collation: t.expr.collation(),
            })
            .collect()
    }
}

impl Default for RangeEntry {
    /// An entry of FROM without columns and alias, of which nothing is required.
    fn default() -> RangeEntry {
        RangeEntry {
            kind: RangeKind::Result,
            alias: None,
            name: "".into(),
            columns: Vec::new(),
            lateral: false,
            in_from: true,
            required: Privileges::default(),
            security: Vec::new(),
        }
    }
}
