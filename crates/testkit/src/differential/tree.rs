//! A statement as a tree of pieces of text, so that the generator can build it and the reducer can shrink it.
//!
//! The tree knows of SQL only the needs of reducing: which pieces may be removed (items of a list with more than `least`), which
//! may replace others (nodes of one sort), and which literals may be sent as parameters.

use super::types::Type;

/// The sort of a node: another of the same sort may replace it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Statements that run one after another.
    Script,
    Statement,
    Query,
    Value(Type),
    Relation,
    /// An item of an ORDER BY that makes an order total: it is removed with the relation of this alias, and only then.
    Order(String),
    Other,
}

#[derive(Clone, Debug)]
pub struct Node {
    pub sort: Sort,
    pub parts: Vec<Part>,
    /// The alias that a relation defines.
    pub defines: Option<String>,
    /// It may raise a data error that another plan would not meet.
    pub fallible: bool,
}

#[derive(Clone, Debug)]
pub enum Part {
    Text(String),
    Node(Node),
    List(List),
    Literal(Literal),
    /// `1, 2, ..., n` for the n columns of the query that this part belongs to: a total order.
    Positions,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal {
    pub ty: Type,
    /// `None` is NULL.
    pub text: Option<String>,
    /// Written without its type.
    pub bare: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Plain,
    /// The output columns of a query.
    Targets,
    /// The queries of WITH.
    With,
    /// Rows of VALUES or columns whose number must not change.
    Rigid,
}

/// Items between `open` and `close`, both left out when there is no item.
#[derive(Clone, Debug)]
pub struct List {
    pub role: Role,
    pub open: &'static str,
    pub separator: &'static str,
    pub close: &'static str,
    pub least: usize,
    pub items: Vec<Node>,
}

impl Node {
    pub fn new(sort: Sort, parts: Vec<Part>) -> Node {
        Node { sort, parts, defines: None, fallible: false }
    }

    pub fn text(sort: Sort, text: impl Into<String>) -> Node {
        Node::new(sort, vec![Part::Text(text.into())])
    }

    /// `form` with `$1`, `$2`, ... replaced by `nodes`; one that is named twice is written twice.
    pub fn form(sort: Sort, form: &str, nodes: &[Node]) -> Node {
        let mut parts = Vec::new();
        for (i, piece) in form.split('$').enumerate() {
            let number = piece.chars().next().and_then(|c| c.to_digit(10)).filter(|_| i > 0);
            let rest = match number {
                Some(n) => {
                    parts.push(Part::Node(nodes[n as usize - 1].clone()));
                    &piece[1..]
                }
                None if i > 0 => {
                    parts.push(Part::Text("$".to_owned()));
                    piece
                }
                None => piece,
            };
            if !rest.is_empty() {
                parts.push(Part::Text(rest.to_owned()));
            }
        }
        Node::new(sort, parts)
    }

    pub fn fallible(mut self, fallible: bool) -> Node {
        self.fallible |= fallible;
        self
    }

    pub fn sql(&self) -> String {
        let mut writer = Writer { sql: String::new(), parameters: None };
        writer.node(self);
        writer.sql
    }

    /// The statement with its literals as parameters, each sent as text.
    pub fn prepared(&self) -> (String, Vec<Literal>) {
        let mut writer = Writer { sql: String::new(), parameters: Some(Vec::new()) };
        writer.node(self);
        (writer.sql, writer.parameters.unwrap_or_default())
    }

    /// True for this node or any below.
    pub fn any(&self, test: &dyn Fn(&Node) -> bool) -> bool {
        test(self) || self.children().any(|n| n.any(test))
    }

    pub fn children(&self) -> impl Iterator<Item = &Node> {
        self.parts.iter().flat_map(|part| match part {
            Part::Node(node) => std::slice::from_ref(node).iter(),
            Part::List(list) => list.items.iter(),
            _ => [].iter(),
        })
    }

    /// The unit that is run: the statements of a script, or this one.
    pub fn statements(&self) -> Vec<&Node> {
        if self.sort == Sort::Script { self.children().collect() } else { vec![self] }
    }

    /// The number of output columns: the first list of targets that is not in WITH.
    fn width(&self) -> Option<usize> {
        self.parts.iter().find_map(|part| match part {
            Part::List(list) if list.role == Role::Targets => Some(list.items.len()),
            Part::List(list) if list.role == Role::With => None,
            Part::List(list) => list.items.iter().find_map(Node::width),
            Part::Node(node) => node.width(),
            _ => None,
        })
    }

    /// True when the rows of the whole statement come in a total order.
    pub fn is_ordered(&self) -> bool {
        let has = |node: &Node| node.parts.iter().any(|p| matches!(p, Part::Positions));
        self.parts.iter().any(|part| match part {
            Part::List(list) if list.role == Role::Plain => list.items.iter().any(has),
            Part::Node(node) if node.sort == Sort::Query && self.sort == Sort::Statement => node.is_ordered(),
            _ => false,
        })
    }

    pub fn size(&self) -> usize {
        1 + self.children().map(Node::size).sum::<usize>()
    }
}

struct Writer {
    sql: String,
    /// Where literals are to become parameters.
    parameters: Option<Vec<Literal>>,
}

impl Writer {
    fn node(&mut self, node: &Node) {
        for part in &node.parts {
            match part {
                Part::Text(text) => self.sql.push_str(text),
                Part::Node(node) => self.node(node),
                Part::List(list) => self.list(list, node),
                Part::Literal(literal) => self.literal(literal),
                Part::Positions => self.sql.push('1'),
            }
        }
    }

    fn list(&mut self, list: &List, owner: &Node) {
        for (i, item) in list.items.iter().enumerate() {
            self.sql.push_str(if i == 0 { list.open } else { list.separator });
            for part in &item.parts {
                match part {
                    // The columns are the owner's, not the clause's.
                    Part::Positions => {
                        let positions: Vec<String> = (1..=owner.width().unwrap_or(1)).map(|n| n.to_string()).collect();
                        self.sql.push_str(&positions.join(", "));
                    }
                    part => self.node(&Node::new(Sort::Other, vec![part.clone()])),
                }
            }
        }
        if !list.items.is_empty() {
            self.sql.push_str(list.close);
        }
    }

    fn literal(&mut self, literal: &Literal) {
        let ty = literal.ty.name();
        if let Some(parameters) = &mut self.parameters {
            let place = parameters.iter().position(|p| p.ty == literal.ty && p.text == literal.text);
            let number = place.unwrap_or_else(|| {
                parameters.push(literal.clone());
                parameters.len() - 1
            });
            self.sql.push_str(&format!("(${}::{ty})", number + 1));
            return;
        }
        self.sql.push_str(&literal.sql());
    }
}

impl Literal {
    pub fn sql(&self) -> String {
        let ty = self.ty.name();
        match &self.text {
            None if self.bare => "null".to_owned(),
            None => format!("null::{ty}"),
            Some(text) if self.bare && self.ty.is_number() => text.clone(),
            Some(text) if self.bare => format!("'{}'", text.replace('\'', "''")),
            Some(text) => format!("'{}'::{ty}", text.replace('\'', "''")),
        }
    }
}

impl Literal {
    /// Another value of the type: a prepared statement is executed with each.
    pub fn following(&self) -> Literal {
        let values = self.ty.values();
        let place = self.text.as_ref().and_then(|text| values.iter().position(|v| v == text));
        let text = place.map_or(values.first(), |p| values.get(p + 1)).map(|v| (*v).to_owned());
        Literal { text, ..self.clone() }
    }
}

impl From<Node> for Part {
    fn from(node: Node) -> Part {
        Part::Node(node)
    }
}

impl From<&str> for Part {
    fn from(text: &str) -> Part {
        Part::Text(text.to_owned())
    }
}

impl From<String> for Part {
    fn from(text: String) -> Part {
        Part::Text(text)
    }
}

/// A list of which `least` items must stay.
pub fn list(open: &'static str, separator: &'static str, close: &'static str, least: usize, items: Vec<Node>) -> Part {
    Part::List(List { role: Role::Plain, open, separator, close, least, items })
}

/// A clause that may be removed.
pub fn optional(open: &'static str, node: Option<Node>) -> Part {
    list(open, "", "", 0, node.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Node {
        let literal = Literal { ty: Type::Int4, text: Some(text.to_owned()), bare: true };
        Node::new(Sort::Value(Type::Int4), vec![Part::Literal(literal)])
    }

    fn select() -> Node {
        let targets =
            List { role: Role::Targets, open: "", separator: ", ", close: "", least: 1, items: vec![number("7"), number("8")] };
        let order = Node::new(Sort::Other, vec![Part::Positions]);
        Node::new(Sort::Query, vec!["select ".into(), Part::List(targets), optional(" order by ", Some(order))])
    }

    #[test]
    fn positions_name_the_columns_of_their_query() {
        assert_eq!(select().sql(), "select 7, 8 order by 1, 2");
        assert!(select().is_ordered());
    }

    #[test]
    fn equal_literals_are_one_parameter() {
        let sum = Node::form(Sort::Value(Type::Int4), "($1 + $2 * $1)", &[number("7"), number("8")]);
        assert_eq!(sum.sql(), "(7 + 8 * 7)");
        let (sql, parameters) = sum.prepared();
        assert_eq!(sql, "(($1::int4) + ($2::int4) * ($1::int4))");
        assert_eq!(parameters.len(), 2);
    }

    #[test]
    fn clauses_without_items_are_not_written() {
        let node = Node::new(Sort::Query, vec!["select 1".into(), optional(" where ", None)]);
        assert_eq!(node.sql(), "select 1");
    }
}
