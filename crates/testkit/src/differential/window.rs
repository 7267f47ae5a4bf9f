//! Window functions. A function that depends on the order of equal rows gets a total order, or a frame that does not see it.

use super::generator::{Generator, Scope, TotalWindow};
use super::operators::{PEERS, WINDOW_FUNCTIONS};
use super::tree::{Node, Part, Sort, list};
use super::types::Type;

const STARTS: [&str; 4] = ["unbounded preceding", "2 preceding", "current row", "1 following"];
const ENDS: [&str; 4] = ["1 preceding", "current row", "1 following", "unbounded following"];
const EXCLUSIONS: [&str; 5] = ["", "", " exclude current row", " exclude group", " exclude ties"];

impl Generator<'_> {
    /// A window function with result type `ty`, where there is one.
    pub fn window(&mut self, ty: Type, scope: &Scope) -> Option<Node> {
        let total = scope.windows.clone()?;
        let scope = &Scope { windows: None, ..scope.clone() };
        let (call, peers) = match self.below(10) {
            0..3 => {
                let giving: Vec<_> = PEERS.iter().filter(|f| f.0 == ty).collect();
                (Node::text(Sort::Other, giving.get(self.below(giving.len().max(1)))?.1), true)
            }
            3..6 => {
                let giving: Vec<_> = WINDOW_FUNCTIONS.iter().filter(|f| f.0 == ty).collect();
                let (_, form, takes) = giving.get(self.below(giving.len().max(1)))?;
                let arguments: Vec<Node> = takes.iter().map(|t| self.value(*t, scope, 1)).collect();
                (Node::form(Sort::Other, form, &arguments), false)
            }
            _ => {
                // Over groups the arguments would be aggregates: `sum(sum(x)) over ()`.
                let call = match &scope.arguments {
                    Some(_) => Node::form(Sort::Other, "count($1)", &[self.value(Type::Int4, scope, 1)]),
                    None => self.aggregate_call(ty, scope, 1, |a| a.window)?,
                };
                if scope.arguments.is_some() && ty != Type::Int8 {
                    return None;
                }
                (self.filtered(call, scope), self.chance(50))
            }
        };
        Some(self.over(ty, call, scope, (!peers).then_some(total)))
    }

    fn filtered(&mut self, call: Node, scope: &Scope) -> Node {
        if !self.chance(15) {
            return call;
        }
        let filter = self.condition(scope, 1);
        Node::form(Sort::Other, "$1 filter (where $2)", &[call, filter])
    }

    /// `call over (...)`; without a total window rows that are equal in its order have the same answer.
    fn over(&mut self, ty: Type, call: Node, scope: &Scope, total: Option<TotalWindow>) -> Node {
        let mut parts: Vec<Part> = vec![call.into(), " over (".into()];
        if let Some(TotalWindow { partition, order }) = total {
            parts.push(list("partition by ", ", ", "", 0, partition));
            parts.push(list(" order by ", ", ", "", 0, order));
            let frame = self.frame("rows");
            parts.push(list(" ", "", "", 0, frame.into_iter().collect()));
            parts.push(")".into());
            return Node::new(Sort::Value(ty), parts);
        }
        let partition = self.partition(scope);
        parts.push(list("partition by ", ", ", "", 0, partition));
        if self.chance(40) {
            parts.extend(self.range(scope));
        } else {
            let order: Vec<Node> = (0..1 + self.below(2)).map(|_| self.sort_item(scope)).collect();
            parts.push(list(" order by ", ", ", "", 1, order));
            let mode = *self.pick(&["groups", "range"]);
            let frame = if mode == "range" { None } else { self.frame(mode) };
            parts.push(list(" ", "", "", 0, frame.into_iter().collect()));
        }
        parts.push(")".into());
        Node::new(Sort::Value(ty), parts)
    }

    fn partition(&mut self, scope: &Scope) -> Vec<Node> {
        (0..self.below(3)).map(|_| self.key(scope).0).collect()
    }

    pub fn total_window(&mut self, scope: &Scope) -> TotalWindow {
        let partition = self.partition(scope);
        let mut order: Vec<Node> = (0..self.below(2)).map(|_| self.sort_item(scope)).collect();
        order.extend(scope.order.iter().cloned());
        TotalWindow { partition, order }
    }

    /// An ORDER BY and a RANGE frame that measures in it.
    fn range(&mut self, scope: &Scope) -> Vec<Part> {
        let measured: Vec<_> = scope.atoms.iter().filter(|a| a.ty.distance().is_some()).cloned().collect();
        if measured.is_empty() {
            return Vec::new();
        }
        let atom = self.pick(&measured).clone();
        let distances = atom.ty.distance().unwrap_or(&[]);
        let direction = *self.pick(&["", " desc", " nulls first", " desc nulls last"]);
        let start = match self.below(3) {
            0 => "unbounded preceding".to_owned(),
            1 => "current row".to_owned(),
            _ => format!("{} preceding", self.pick(distances)),
        };
        let end = match self.below(3) {
            0 => "unbounded following".to_owned(),
            1 => "current row".to_owned(),
            _ => format!("{} following", self.pick(distances)),
        };
        // Whether a distance beyond the type's range is an error depends on the rows read.
        let order = Node::form(Sort::Other, &format!("$1{direction}"), &[atom.node]).fallible(true);
        let frame = Node::text(Sort::Other, format!("range between {start} and {end}{}", self.pick(&EXCLUSIONS)));
        vec![list(" order by ", ", ", "", 1, vec![order]), list(" ", "", "", 0, vec![frame])]
    }

    fn frame(&mut self, mode: &str) -> Option<Node> {
        if self.chance(40) {
            return None;
        }
        let start = self.below(STARTS.len());
        let end = start.max(1) - 1 + self.below(ENDS.len() + 1 - start.max(1));
        let end = if start == 2 { end.max(1) } else { end };
        let end = if start == 3 { end.max(2) } else { end };
        let exclusion = match *self.pick(&EXCLUSIONS) {
            // Without the current row in the frame PostgreSQL's first_value and its like mistake it for the first of the ties.
            " exclude ties" if start == 3 || end == 0 => "",
            exclusion => exclusion,
        };
        Some(Node::text(Sort::Other, format!("{mode} between {} and {}{exclusion}", STARTS[start], ENDS[end])))
    }

    pub fn sort_item(&mut self, scope: &Scope) -> Node {
        let (key, _) = self.key(scope);
        let direction = *self.pick(&["", "", " desc", " asc nulls first", " desc nulls last"]);
        Node::form(Sort::Other, &format!("$1{direction}"), &[key])
    }

    /// An expression to group, partition or sort by: no constant, which would be a column's number.
    pub fn key(&mut self, scope: &Scope) -> (Node, Type) {
        let atoms: Vec<_> = scope.atoms.iter().filter(|a| a.ty != Type::Record).cloned().collect();
        if atoms.is_empty() {
            return (Node::text(Sort::Value(Type::Int4), "null::int4"), Type::Int4);
        }
        let atom = self.pick(&atoms).clone();
        let (ty, form) = match (atom.ty, self.below(8)) {
            (Type::Int4, 0) => (Type::Int4, "($1 % 3)"),
            (Type::Text, 0) => (Type::Text, "lower($1)"),
            (Type::Timestamp, 0) => (Type::Timestamp, "date_trunc('year', $1)"),
            (_, 1) => (Type::Bool, "($1 is null)"),
            (ty, 2) => (ty, "coalesce($1, $2)"),
            (ty, _) => return (atom.node, ty),
        };
        let literal = self.literal(ty);
        (Node::form(Sort::Value(ty), form, &[atom.node, literal]), ty)
    }
}
