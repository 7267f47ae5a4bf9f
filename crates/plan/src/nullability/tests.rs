//! Random conditions over two relations, evaluated with one of them all NULL: outcomes that the table rules out must not happen.

use std::sync::Arc;

use melba_catalog::classes;
use melba_fmgr::testing::FixedSession;
use melba_types::DbError;

use super::*;
use melba_analyze::{Context, analyze};
use melba_expression::{Compiler, Resolved, Scope};
use melba_tree::{Const, Var};

/// The columns of both relations, with the values that each is tried with.
const COLUMNS: [(&str, &str, [&str; 3]); 5] = [
    ("i", "int", ["0", "1", "-2"]),
    ("n", "numeric", ["0", "1.5", "-2"]),
    ("t", "text", ["''", "'a'", "'b'"]),
    ("b", "boolean", ["true", "false", "true"]),
    ("x", "int[]", ["'{}'", "'{1,NULL}'", "'{NULL}'"]),
];

struct Choice(u64);

impl Choice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }

    fn of<'a>(&mut self, items: &[&'a str]) -> &'a str {
        items[self.below(items.len() as u64) as usize]
    }

    fn side(&mut self) -> &'static str {
        if self.below(2) == 0 { "l" } else { "r" }
    }

    fn int(&mut self, depth: u32) -> String {
        match self.below(if depth == 0 { 4 } else { 9 }) {
            0 | 1 => format!("{}.i", self.side()),
            2 => self.of(&["0", "1", "null::int"]).to_string(),
            3 => format!("length({}.t)", self.side()),
            4 => format!("({} + {})", self.int(depth - 1), self.int(depth - 1)),
            5 => format!("coalesce({}, {})", self.int(depth - 1), self.int(depth - 1)),
            6 => format!("greatest({}, {})", self.int(depth - 1), self.int(depth - 1)),
            7 => format!(
                "case when {} then {} else {} end",
                self.bool(depth - 1),
                self.int(depth - 1),
                self.of(&["null", "1", "l.i", "r.i"])
            ),
            _ => format!("nullif({}, {})", self.int(depth - 1), self.int(depth - 1)),
        }
    }

    fn array(&mut self) -> String {
        match self.below(3) {
            0 => self.of(&["'{}'::int[]", "'{1}'::int[]", "null::int[]", "'{NULL,0}'::int[]"]).to_string(),
            1 => format!("array[{}, {}]", self.int(0), self.int(0)),
            _ => format!("{}.x", self.side()),
        }
    }

    fn bool(&mut self, depth: u32) -> String {
        let comparison = self.of(&["=", "<", "<>", ">="]);
        match self.below(if depth == 0 { 6 } else { 16 }) {
            0 => format!("{}.b", self.side()),
            1 => self.of(&["true", "false", "null::boolean"]).to_string(),
            2 => format!("{} {comparison} {}", self.int(depth.saturating_sub(1)), self.int(0)),
            3 => format!("{}.n {comparison} {}.n", self.side(), self.side()),
            4 => format!("{}.{} is null", self.side(), self.of(&["i", "n", "t", "b", "x"])),
            5 => format!("{}.{} is not null", self.side(), self.of(&["i", "n", "t", "b", "x"])),
            6..=8 => format!("({} and {})", self.bool(depth - 1), self.bool(depth - 1)),
            9 | 10 => format!("({} or {})", self.bool(depth - 1), self.bool(depth - 1)),
            11 | 12 => format!("(not {})", self.bool(depth - 1)),
            13 => {
                let test = self.of(&["true", "not true", "false", "not false", "unknown", "not unknown"]);
                format!("({}) is {test}", self.bool(depth - 1))
            }
            14 => format!("{} {comparison} {} ({})", self.int(depth - 1), self.of(&["any", "all"]), self.array()),
            _ => match self.below(4) {
                0 => format!("coalesce({}, {})", self.bool(depth - 1), self.bool(depth - 1)),
                1 => format!("({} is distinct from {})", self.int(depth - 1), self.int(depth - 1)),
                2 => format!("({})::text::boolean", self.bool(depth - 1)),
                _ => {
                    format!("case when {} then {} else {} end", self.bool(depth - 1), self.bool(depth - 1), self.bool(depth - 1))
                }
            },
        }
    }
}

struct Nothing;

impl Scope for Nothing {
    fn var(&mut self, _: &Var) -> melba_types::Result<Resolved> {
        Err(DbError::internal("a column in a constant"))
    }
}

struct World {
    catalog: Arc<Catalog>,
    session: FixedSession,
    /// By column and choice.
    values: Vec<Vec<Const>>,
}

impl World {
    fn new() -> World {
        let mut world = World { catalog: Arc::default(), session: melba_builtins::test_session(), values: Vec::new() };
        let of_column = |(_, ty, texts): &(_, &str, [&str; 3])| texts.map(|text| world.constant(&format!("{text}::{ty}")));
        world.values = COLUMNS.iter().map(|column| of_column(column).to_vec()).collect();
        world
    }

    fn analyze(&self, sql: &str) -> melba_tree::Query {
        let path = [classes::PG_CATALOG, classes::PUBLIC];
        let cx = Context {
            catalog: &self.catalog,
            session: &self.session,
            search_path: &path,
            temp_namespace: Oid::INVALID,
            database: "postgres",
            user: Oid(10),
        };
        let parsed = melba_parse::parse(sql).expect("parses");
        let statement = parsed.statements.first().expect("a statement");
        analyze(&cx, &statement.node, None).unwrap_or_else(|e| panic!("{sql}: {e}")).query
    }

    fn constant(&self, text: &str) -> Const {
        let query = self.analyze(&format!("select {text}"));
        let expr = &query.targets[0].expr;
        let (ty, typmod, collation) = (expr.ty(), expr.typmod(), expr.collation());
        Const { value: self.fold(expr).expect("a constant"), ty, typmod, collation, location: -1 }
    }

    fn condition(&self, sql: &str) -> Expr {
        self.analyze(sql).filter.expect("a WHERE clause")
    }

    fn fold(&self, expr: &Expr) -> Option<Datum> {
        let compiled = Compiler::new(&self.catalog, Some(&self.session), &mut Nothing).compile(expr).expect("compiles");
        compiled.as_const().cloned()
    }

    /// The condition's value with relation `nulls` all NULL and the other's columns as chosen.
    fn value(&self, condition: &Expr, nulls: usize, choice: usize) -> Option<Datum> {
        let mut bound = condition.clone();
        bound.visit_mut(0, &mut |e, _| {
            let Expr::Var(v) = e else { return true };
            let column = v.column as usize - 1;
            *e = match v.entry == nulls {
                true => Expr::null(v.ty, v.typmod, v.collation),
                // Each column walks through its values at its own pace.
                false => Expr::Const(self.values[column][choice / 3usize.pow(column as u32 % 3) % 3].clone()),
            };
            false
        });
        self.finish(&mut bound);
        self.fold(&bound)
    }

    /// Replaces expressions that the compiler does not fold by their values.
    fn finish(&self, expr: &mut Expr) {
        expr.children_mut(&mut |child| self.finish(child));
        let null = |e: &Expr| matches!(self.fold(e), Some(Datum::Null));
        let holds =
            |op: &melba_tree::OperatorCall| matches!(self.fold(&Expr::Operator(Box::new(op.clone()))), Some(Datum::Bool(true)));
        *expr = match expr {
            Expr::NullIf(op) if holds(op) => Expr::null(op.ty, -1, op.collation),
            Expr::NullIf(op) => op.args[0].clone(),
            Expr::Distinct(op) => {
                let nulls = op.args.iter().filter(|a| null(a)).count();
                let value = Datum::Bool(if nulls > 0 { nulls == 1 } else { !holds(op) });
                Expr::Const(Const { value, ty: melba_types::oids::BOOL, typmod: -1, collation: Oid::INVALID, location: -1 })
            }
            Expr::MinMax { args, ty, .. } => {
                let int = |e: &Expr| self.fold(e).and_then(|d| if let Datum::Int4(v) = d { Some(v) } else { None });
                match args.iter().filter_map(int).max() {
                    Some(v) => {
                        Expr::Const(Const { value: Datum::Int4(v), ty: *ty, typmod: -1, collation: Oid::INVALID, location: -1 })
                    }
                    None => Expr::null(*ty, -1, Oid::INVALID),
                }
            }
            Expr::ScalarArray(s) => {
                let Some(Datum::Array(array)) = self.fold(&s.array) else { return };
                let ty = self.catalog.array_element(s.array.ty()).expect("an array type");
                let element = |value: &Datum| {
                    let value = Const { value: value.clone(), ty, typmod: -1, collation: Oid::INVALID, location: -1 };
                    self.fold(&Expr::Operator(Box::new(melba_tree::OperatorCall {
                        operator: s.operator,
                        function: s.function,
                        args: vec![s.scalar.clone(), Expr::Const(value)],
                        ty: melba_types::oids::BOOL,
                        collation: Oid::INVALID,
                        input_collation: s.input_collation,
                        returns_set: false,
                        location: -1,
                    })))
                };
                decided(s.any, array.elements.iter().map(element))
            }
            Expr::And(args) => decided(false, args.iter().map(|a| self.fold(a))),
            Expr::Or(args) => decided(true, args.iter().map(|a| self.fold(a))),
            _ => return,
        };
    }
}

/// OR (`by` = true) and AND of values.
fn decided(by: bool, values: impl Iterator<Item = Option<Datum>>) -> Expr {
    let mut value = Datum::Bool(!by);
    for each in values {
        match each.expect("a constant") {
            Datum::Bool(v) if v == by => {
                value = Datum::Bool(by);
                break;
            }
            Datum::Bool(_) => {}
            _ => value = Datum::Null,
        }
    }
    Expr::Const(Const { value, ty: melba_types::oids::BOOL, typmod: -1, collation: Oid::INVALID, location: -1 })
}

#[test]
fn conditions_exclude_the_null_rows_they_claim_to() {
    let world = World::new();
    let list: Vec<String> = COLUMNS.iter().map(|(name, ty, _)| format!("null::{ty} as {name}")).collect();
    let from = format!("from (select {0}) l, (select {0}) r", list.join(", "));
    let mut choice = Choice(7);
    let (mut claims, mut unfolded, mut possible) = ([0; 3], 0, [0; 2]);
    for _ in 0..400 {
        let text = choice.bool(3);
        let condition = world.condition(&format!("select 1 {from} where {text}"));
        let outcome = Outcome::of(&world.catalog, &condition);
        for nulls in [0, 1] {
            let is = |rels: Rels| rels >> nulls & 1 != 0;
            let claimed = [is(outcome.null), is(outcome.not_true), is(outcome.not_false)];
            assert!(!claimed[0] || claimed[1] && claimed[2], "{text}: NULL is neither TRUE nor FALSE");
            claimed.iter().zip(&mut claims).for_each(|(claimed, count)| *count += u32::from(*claimed));
            for values in 0..27 {
                match world.value(&condition, nulls, values) {
                    None => unfolded += 1,
                    Some(Datum::Bool(true)) => {
                        assert!(!claimed[1], "{text}: is TRUE with relation {nulls} NULL, values {values}");
                        possible[0] += 1;
                    }
                    Some(Datum::Bool(false)) => {
                        assert!(!claimed[2], "{text}: is FALSE with relation {nulls} NULL, values {values}");
                        possible[1] += 1;
                    }
                    Some(_) => {}
                }
            }
        }
    }
    // The test is not empty: all claims are made often, and all values come up.
    assert!(claims.iter().all(|&n| n > 80), "claims {claims:?}");
    assert!(possible.iter().all(|&n| n > 1500), "values {possible:?}");
    assert_eq!(unfolded, 0, "conditions that are not evaluated");
}

#[test]
fn conditions_that_applications_write_reject_nulls() {
    let world = World::new();
    let from = "from (select null::int i, null::text t) l, (select null::int i, null::text t, null::int[] x) r";
    let rejects =
        |text: &str| rejected_nulls(&world.catalog, &world.condition(&format!("select 1 {from} where {text}"))) >> 1 & 1;
    for text in [
        "r.i = 1",
        "r.i + l.i > 3 and l.t = 'a'",
        "r.i in (1, 2)",
        "r.i = any('{}'::int[])",
        "r.i = 1 or r.t = 'a'",
        "r.i is not null",
        "not (r.i is null)",
        "not (r.i = 1)",
        "not (r.i = 1 or l.i = 2)",
        "r.t like 'a%' is true",
        "r.i::text = 'a'",
        "coalesce(r.i, r.x[1]) = 1",
        "r.i in (select 1)",
    ] {
        assert_eq!(rejects(text), 1, "{text}");
    }
    for text in [
        "r.i is null",
        "not (r.i is not null)",
        "not (r.t = 'x' and r.t is not null)",
        "not (r.i > 0 and l.i < 0)",
        "not (r.i = any('{}'::int[]))",
        "r.i <> all(r.x) is not false",
        "coalesce(r.i, 0) = 0",
        "r.i = 1 or l.i = 1",
        "r.i is distinct from 1",
        "r.i <> all(select l.i)",
        "not (r.i in (select 1))",
        "(r.i = 1) is not true",
        "case when l.i = 1 then r.i = 1 else true end",
    ] {
        assert_eq!(rejects(text), 0, "{text}");
    }
}
