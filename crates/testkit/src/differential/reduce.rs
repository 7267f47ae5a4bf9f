//! Makes a statement smaller while it still differs in the same way.
//!
//! Candidates come from the tree: a list without an item, a node in place of its parent (of the same sort), a literal in place of
//! an expression. The first that still differs is taken, and the search continues from there.

use super::tree::{Literal, Node, Part, Role, Sort};
use super::types::Type;

/// Statements that a reduction may try.
const TRIALS: usize = 700;

/// The smallest statement found for which `differs` holds.
pub fn reduce(statement: &Node, differs: &mut dyn FnMut(&Node) -> bool) -> Node {
    let mut best = statement.clone();
    let mut trials = 0;
    loop {
        let size = (best.size(), best.sql().len());
        let mut candidates = candidates(&best);
        candidates.retain(|c| (c.size(), c.sql().len()) < size);
        // The boldest first.
        candidates.sort_by_key(|c| (c.size(), c.sql().len()));
        let mut found = None;
        for candidate in candidates {
            trials += 1;
            if trials > TRIALS {
                return best;
            }
            if differs(&candidate) {
                found = Some(candidate);
                break;
            }
        }
        match found {
            Some(smaller) => best = smaller,
            None => return best,
        }
    }
}

/// The fewest items found for which `differs` still holds: halves are removed first, then quarters, at last single ones.
pub fn fewest<T: Clone>(items: &[T], differs: &mut dyn FnMut(&[T]) -> bool) -> Vec<T> {
    let mut best = items.to_vec();
    let mut size = best.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < best.len() {
            let mut candidate = best.clone();
            candidate.drain(at..(at + size).min(best.len()));
            if differs(&candidate) {
                best = candidate;
            } else {
                at += size;
            }
        }
        size = if size == 1 { 0 } else { size.div_ceil(2) };
    }
    best
}

/// Every tree that is one step smaller.
fn candidates(statement: &Node) -> Vec<Node> {
    let mut found = Vec::new();
    let mut path = Vec::new();
    visit(statement, statement, &mut path, &mut found);
    for candidate in &mut found {
        let mut aliases = Vec::new();
        defined(candidate, &mut aliases);
        forget(candidate, &aliases);
    }
    found
}

/// A child by its part and its place in it.
type Step = (usize, usize);

fn visit(root: &Node, node: &Node, path: &mut Vec<Step>, found: &mut Vec<Node>) {
    if let Sort::Order(_) = node.sort {
        return;
    }
    for replacement in replacements(node) {
        found.push(with(root, path, &mut |target| *target = replacement.clone()));
    }
    for (p, part) in node.parts.iter().enumerate() {
        match part {
            Part::Node(child) => {
                path.push((p, 0));
                visit(root, child, path, found);
                path.pop();
            }
            Part::List(list) => {
                let count = list.items.len();
                let total = list.items.iter().any(|i| matches!(i.sort, Sort::Order(_)));
                if count > list.least.max(1) + 1 && list.role != Role::Rigid && !total {
                    for half in [0..count / 2, count / 2..count] {
                        found.push(with(root, path, &mut |target| drop_items(target, p, half.clone())));
                    }
                }
                for (i, child) in list.items.iter().enumerate() {
                    let fixed = matches!(child.sort, Sort::Order(_));
                    if count > list.least && !fixed {
                        found.push(with(root, path, &mut |target| drop_items(target, p, i..i + 1)));
                    }
                    path.push((p, i));
                    visit(root, child, path, found);
                    path.pop();
                }
            }
            _ => {}
        }
    }
}

fn drop_items(node: &mut Node, part: usize, which: std::ops::Range<usize>) {
    if let Some(Part::List(list)) = node.parts.get_mut(part)
        && list.items.len() - which.len() >= list.least
    {
        list.items.drain(which);
    }
}

/// The possible replacements of a node.
fn replacements(node: &Node) -> Vec<Node> {
    let mut found = Vec::new();
    match &node.sort {
        Sort::Value(ty) if *ty != Type::Record => {
            within(node, &node.sort, &mut found);
            let literal = |text: Option<&str>| {
                let literal = Literal { ty: *ty, text: text.map(str::to_owned), bare: false };
                Node::new(Sort::Value(*ty), vec![Part::Literal(literal)])
            };
            if *ty == Type::Bool {
                found.extend(["true", "false"].map(|t| Node::text(Sort::Value(Type::Bool), t)));
            }
            found.push(literal(None));
            found.extend(ty.values().iter().take(2).map(|v| literal(Some(*v))));
        }
        Sort::Query | Sort::Relation => within(node, &node.sort, &mut found),
        _ => {}
    }
    found
}

/// The nearest nodes below of the sort; those below them follow in later steps.
fn within(node: &Node, sort: &Sort, found: &mut Vec<Node>) {
    for child in node.children() {
        if child.sort == *sort {
            found.push(child.clone());
        } else {
            within(child, sort, found);
        }
    }
}

/// A copy of the tree, changed at `path`.
fn with(root: &Node, path: &[Step], change: &mut dyn FnMut(&mut Node)) -> Node {
    let mut copy = root.clone();
    let mut node = &mut copy;
    for (part, item) in path {
        node = match &mut node.parts[*part] {
            Part::Node(child) => child,
            Part::List(list) => &mut list.items[*item],
            _ => unreachable!("paths lead through nodes and lists"),
        };
    }
    change(node);
    copy
}

fn defined(node: &Node, aliases: &mut Vec<String>) {
    aliases.extend(node.defines.clone());
    node.children().for_each(|child| defined(child, aliases));
}

/// Drops the items of total orders whose relation was removed.
fn forget(node: &mut Node, aliases: &[String]) {
    for part in &mut node.parts {
        match part {
            Part::Node(child) => forget(child, aliases),
            Part::List(list) => {
                list.items.retain(|i| !matches!(&i.sort, Sort::Order(alias) if !aliases.contains(alias)));
                list.items.iter_mut().for_each(|child| forget(child, aliases));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::{list, optional};
    use super::*;

    fn condition(text: &str) -> Node {
        Node::text(Sort::Value(Type::Bool), text)
    }

    #[test]
    fn what_does_not_matter_goes() {
        let and = Node::new(
            Sort::Value(Type::Bool),
            vec![list("(", " and ", ")", 1, vec![condition("a"), condition("bug"), condition("b")])],
        );
        let not = Node::form(Sort::Value(Type::Bool), "(not $1)", &[and]);
        let statement = Node::new(
            Sort::Statement,
            vec!["select 1".into(), optional(" where ", Some(not)), optional(" limit ", Some(condition("1")))],
        );
        let reduced = reduce(&statement, &mut |s| s.sql().contains("bug"));
        assert_eq!(reduced.sql(), "select 1 where bug");
    }

    #[test]
    fn items_that_matter_stay() {
        let items: Vec<u32> = (0..50).collect();
        let mut trials = 0;
        let found = fewest(&items, &mut |items| {
            trials += 1;
            items.contains(&17) && items.contains(&42)
        });
        assert_eq!(found, [17, 42]);
        assert!(trials < 60, "{trials}");
    }

    #[test]
    fn orders_lose_the_columns_of_relations_that_go() {
        let relation = |alias: &str| Node { defines: Some(alias.to_owned()), ..Node::text(Sort::Relation, alias) };
        let order = |alias: &str| Node::text(Sort::Order(alias.to_owned()), format!("{alias}.id"));
        let statement = Node::new(
            Sort::Statement,
            vec![
                "select bug".into(),
                list(" from ", ", ", "", 0, vec![relation("a"), relation("b")]),
                list(" order by ", ", ", "", 1, vec![order("a"), order("b")]),
            ],
        );
        let reduced = reduce(&statement, &mut |s| s.sql().contains("bug") && s.sql().contains("from b"));
        assert_eq!(reduced.sql(), "select bug from b order by b.id");
    }
}
