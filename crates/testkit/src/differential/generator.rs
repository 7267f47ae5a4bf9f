//! The generator's state: random numbers, the schema, fresh names, and a budget that keeps statements small.

use melba_vfs::SeededRandom;

use super::schema::{RandomTable, Schema};
use super::tree::{Literal, Node, Part, Sort};
use super::types::{COLUMN_TYPES, Type};

/// Relations that a statement may scan; a table of many rows counts as several.
pub const BUDGET: usize = 6;

pub struct Generator<'a> {
    pub random: &'a SeededRandom,
    pub schema: &'a Schema,
    /// Queries of WITH that may be read here.
    pub common: Vec<Common>,
    /// Families of the tables that queries of WITH change here: which of two changes of one row stays is unspecified.
    pub changed: Vec<String>,
    names: usize,
    pub budget: usize,
    /// How deep queries nest here.
    pub nesting: usize,
}

/// A query of WITH.
#[derive(Clone)]
pub struct Common {
    pub name: String,
    pub columns: Vec<(String, Type)>,
}

/// Something that an expression may refer to: a column, a whole row, or a grouping expression.
#[derive(Clone)]
pub struct Atom {
    pub node: Node,
    pub ty: Type,
    /// A column of a table, so that sums over it are exact also for floats.
    pub exact: bool,
    /// A column, not an expression: queries below may refer to it.
    pub plain: bool,
}

/// The columns and values that an expression may refer to.
#[derive(Clone, Default)]
pub struct Scope {
    pub atoms: Vec<Atom>,
    /// Of the queries around this one.
    pub outer: Vec<Atom>,
    /// Items that make any order of this scope's rows total, except for rows that are equal in everything.
    pub order: Vec<Node>,
    /// In a grouped query the scope of arguments of aggregates; `atoms` are the grouping expressions then.
    pub arguments: Option<Box<Scope>>,
    /// Window functions may be called; those that depend on the order of equal rows all by this window, because two windows may
    /// order equal rows differently.
    pub windows: Option<TotalWindow>,
}

/// A window whose order is total, except for rows that are equal in everything.
#[derive(Clone)]
pub struct TotalWindow {
    pub partition: Vec<Node>,
    pub order: Vec<Node>,
}

impl Scope {
    /// The scope of a sub-query here.
    pub fn visible(&self) -> Vec<Atom> {
        self.atoms.iter().filter(|a| a.plain).chain(&self.outer).cloned().collect()
    }
}

impl Atom {
    pub fn column(alias: &str, column: &str, ty: Type, exact: bool) -> Atom {
        let node = Node::text(Sort::Value(ty), format!("{alias}.{column}"));
        Atom { node, ty, exact: exact || ty != Type::Float8, plain: true }
    }

    pub fn row(alias: &str) -> Atom {
        Atom { node: Node::text(Sort::Value(Type::Record), alias), ty: Type::Record, exact: false, plain: true }
    }
}

impl<'a> Generator<'a> {
    pub fn new(random: &'a SeededRandom, schema: &'a Schema) -> Generator<'a> {
        Generator { random, schema, common: Vec::new(), changed: Vec::new(), names: 0, budget: BUDGET, nesting: 0 }
    }

    pub fn chance(&self, percent: usize) -> bool {
        self.random.chance(percent)
    }

    pub fn below(&self, n: usize) -> usize {
        self.random.below(n)
    }

    pub fn pick<'t, T>(&self, of: &'t [T]) -> &'t T {
        &of[self.below(of.len())]
    }

    pub fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    /// A table or view to read, paid from the budget; one of few rows when little is left.
    pub fn table(&mut self) -> &'a RandomTable {
        let cheap: Vec<&RandomTable> = self.schema.tables.iter().filter(|t| t.cost <= self.budget.max(1)).collect();
        let table = cheap.get(self.below(cheap.len().max(1))).copied().unwrap_or(&self.schema.tables[0]);
        self.budget = self.budget.saturating_sub(table.cost);
        table
    }

    pub fn literal(&self, ty: Type) -> Node {
        if ty == Type::Record {
            return Node::text(Sort::Value(ty), "row(1, null)");
        }
        let values = ty.values();
        let text = if self.chance(8) { None } else { Some((*self.pick(values)).to_owned()) };
        let bare = match (&text, ty) {
            (Some(text), Type::Int4 | Type::Numeric) => self.chance(70) && text.bytes().all(|b| b.is_ascii_digit() || b == b'.'),
            (Some(_), Type::Text) => self.chance(50),
            _ => false,
        };
        Node::new(Sort::Value(ty), vec![Part::Literal(Literal { ty, text, bare })])
    }

    /// A type for which expressions over `scope` exist.
    pub fn some_type(&self, scope: &Scope) -> Type {
        let inner = scope.arguments.as_deref().unwrap_or(scope);
        let atoms = if scope.atoms.is_empty() { &inner.atoms } else { &scope.atoms };
        let types: Vec<Type> = atoms.iter().map(|a| a.ty).filter(|t| *t != Type::Record).collect();
        if types.is_empty() || self.chance(15) { *self.pick(COLUMN_TYPES) } else { *self.pick(&types) }
    }

    /// A column or a literal.
    pub fn leaf(&mut self, ty: Type, scope: &Scope) -> Node {
        let of = |atoms: &[Atom]| -> Vec<Node> { atoms.iter().filter(|a| a.ty == ty).map(|a| a.node.clone()).collect() };
        let (here, outer) = (of(&scope.atoms), of(&scope.outer));
        if !outer.is_empty() && self.chance(if here.is_empty() { 70 } else { 25 }) {
            return self.pick(&outer).clone();
        }
        if !here.is_empty() && self.chance(85) {
            return self.pick(&here).clone();
        }
        if let (Some(inner), true) = (&scope.arguments, self.chance(60))
            && let Some(aggregate) = self.aggregate(ty, inner, 0)
        {
            return aggregate;
        }
        // Another type of the family, cast: its implicit conversions meet that way.
        let kin: Vec<Node> =
            scope.atoms.iter().filter(|a| a.ty != ty && ty.family().contains(&a.ty)).map(|a| a.node.clone()).collect();
        if !kin.is_empty() && self.chance(40) {
            let node = self.pick(&kin).clone();
            return Node::form(Sort::Value(ty), &format!("$1::{}", ty.name()), &[node]).fallible(true);
        }
        self.literal(ty)
    }
}
