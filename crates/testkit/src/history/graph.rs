//! Dependencies between transactions, and the cycles among them.

use std::collections::VecDeque;

use super::{Anomaly, AnomalyKind, ListTransaction};

/// How one transaction comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    /// ww: its value is followed by the other's.
    Overwrites,
    /// wr: its value is the last that the other read.
    IsRead,
    /// rw: the other's value follows the one it read.
    IsOverwritten,
    /// It had ended before the other began.
    Before,
}

/// This many cycles are compared to find a short one.
const CYCLES_COMPARED: usize = 50;

/// Transactions, and behind them nodes for moments in time.
pub(crate) struct Graph {
    transactions: usize,
    edges: Vec<Vec<(Edge, usize)>>,
}

impl Graph {
    pub fn new(transactions: usize) -> Graph {
        Graph { transactions, edges: vec![Vec::new(); transactions] }
    }

    pub fn add(&mut self, from: usize, edge: Edge, to: usize) {
        if from != to && !self.edges[from].contains(&(edge, to)) {
            self.edges[from].push((edge, to));
        }
    }

    /// Adds the order of ends and beginnings: a chain of moments, from each end to the next, and from the last one before a
    /// transaction's beginning to it.
    pub fn add_times(&mut self, transactions: &[ListTransaction]) {
        let mut ends: Vec<(u64, usize)> = transactions.iter().enumerate().map(|(t, x)| (x.ended, t)).collect();
        ends.sort_unstable();
        let first = self.edges.len();
        self.edges.resize(first + ends.len(), Vec::new());
        for (i, (_, t)) in ends.iter().enumerate() {
            self.edges[*t].push((Edge::Before, first + i));
            if i > 0 {
                self.edges[first + i - 1].push((Edge::Before, first + i));
            }
        }
        for (t, transaction) in transactions.iter().enumerate() {
            let before = ends.partition_point(|(end, _)| *end < transaction.began);
            if before > 0 {
                self.edges[first + before - 1].push((Edge::Before, t));
            }
        }
    }

    /// Forgets the transactions that did not commit.
    pub fn keep(&mut self, committed: &[bool]) {
        let is_kept = |node: usize| committed.get(node).copied().unwrap_or(true);
        for (node, edges) in self.edges.iter_mut().enumerate() {
            if is_kept(node) {
                edges.retain(|(_, to)| is_kept(*to));
            } else {
                edges.clear();
            }
        }
    }

    /// One cycle of each kind, if there is any. A cycle is named by the strongest kind that it is.
    pub fn cycles(&self, found: &mut Vec<Anomaly>) {
        let mut report = |kind, cycle: Option<Vec<usize>>| {
            if let Some(cycle) = cycle {
                found.push(Anomaly { kind, text: self.describe(&cycle) });
            }
        };
        report(AnomalyKind::G0, self.cycle(|e| e == Edge::Overwrites, |e| e == Edge::Overwrites));
        report(AnomalyKind::G1c, self.cycle(|e| e == Edge::IsRead, |e| e == Edge::Overwrites || e == Edge::IsRead));
        match self.cycle_of_snapshots() {
            Some((anti_dependencies, cycle)) => {
                report(if anti_dependencies == 1 { AnomalyKind::GSingle } else { AnomalyKind::GNonadjacent }, Some(cycle));
            }
            None => report(AnomalyKind::G2Item, self.cycle(|e| e == Edge::IsOverwritten, |_| true)),
        }
    }

    fn successors(&self, is_used: impl Fn(Edge) -> bool) -> Vec<Vec<usize>> {
        let of = |edges: &Vec<(Edge, usize)>| edges.iter().filter(|(e, _)| is_used(*e)).map(|(_, to)| *to).collect();
        self.edges.iter().map(of).collect()
    }

    /// A short cycle that has an edge of a sort, and others of that or another.
    fn cycle(&self, has: impl Fn(Edge) -> bool, may_have: impl Fn(Edge) -> bool) -> Option<Vec<usize>> {
        let successors = self.successors(|e| has(e) || may_have(e));
        let components = components(&successors);
        let edges = self.edges.iter().enumerate().flat_map(|(from, edges)| edges.iter().map(move |(e, to)| (from, *e, *to)));
        let inside = edges.filter(|(from, e, to)| has(*e) && components[*from] == components[*to]);
        // Every such edge lies on a cycle.
        let cycles = inside.take(CYCLES_COMPARED).filter_map(|(from, _, to)| shortest(&successors, to, from));
        cycles.min_by_key(Vec::len)
    }

    /// A closed walk with anti-dependencies of which no two follow each other, and how many those are. For that the nodes are
    /// doubled: the second of each is reached by anti-dependencies, and left by others.
    fn cycle_of_snapshots(&self) -> Option<(usize, Vec<usize>)> {
        let mut successors = vec![Vec::new(); self.edges.len() * 2];
        let mut anti_dependencies = Vec::new();
        for (from, edges) in self.edges.iter().enumerate() {
            for (edge, to) in edges {
                if *edge == Edge::IsOverwritten {
                    successors[from * 2].push(to * 2 + 1);
                    anti_dependencies.push((from * 2, to * 2 + 1));
                } else {
                    successors[from * 2].push(to * 2);
                    successors[from * 2 + 1].push(to * 2);
                }
            }
        }
        let components = components(&successors);
        let inside = anti_dependencies.iter().filter(|(from, to)| components[*from] == components[*to]);
        let walks = inside.take(CYCLES_COMPARED).filter_map(|(from, to)| shortest(&successors, *to, *from));
        let counted = walks.map(|walk| (walk.iter().filter(|state| **state % 2 == 1).count(), walk));
        let (count, walk) = counted.min_by_key(|(count, walk)| (*count, walk.len()))?;
        Some((count, walk.into_iter().map(|state| state / 2).collect()))
    }

    fn describe(&self, cycle: &[usize]) -> String {
        let mut text = String::new();
        for (i, node) in cycle.iter().enumerate() {
            let next = cycle[(i + 1) % cycle.len()];
            let edge = self.edges[*node].iter().find(|(_, to)| *to == next).map(|(e, _)| *e);
            if let (true, Some(edge)) = (*node < self.transactions, edge) {
                text.push_str(&format!("transaction {node} {edge:?}, "));
            }
        }
        text + "and so on"
    }
}

/// The strongly connected component of each node: nodes by the end of their visit, then the same backwards (Kosaraju).
fn components(successors: &[Vec<usize>]) -> Vec<usize> {
    let mut seen = vec![false; successors.len()];
    let mut by_end = Vec::new();
    for root in 0..successors.len() {
        if std::mem::replace(&mut seen[root], true) {
            continue;
        }
        let mut visits = vec![(root, 0)];
        while let Some((node, at)) = visits.last_mut() {
            let Some(&next) = successors[*node].get(*at) else {
                by_end.push(*node);
                visits.pop();
                continue;
            };
            *at += 1;
            if !std::mem::replace(&mut seen[next], true) {
                visits.push((next, 0));
            }
        }
    }
    let mut predecessors = vec![Vec::new(); successors.len()];
    for (from, to) in successors.iter().enumerate().flat_map(|(from, all)| all.iter().map(move |to| (from, *to))) {
        predecessors[to].push(from);
    }
    let mut component = vec![usize::MAX; successors.len()];
    for root in by_end.into_iter().rev() {
        let mut pending = vec![root];
        while let Some(node) = pending.pop() {
            if component[node] == usize::MAX {
                component[node] = root;
                pending.extend(&predecessors[node]);
            }
        }
    }
    component
}

/// The shortest way from a node to another, both included.
fn shortest(successors: &[Vec<usize>], from: usize, to: usize) -> Option<Vec<usize>> {
    let mut came_from = vec![usize::MAX; successors.len()];
    let mut queue = VecDeque::from([from]);
    came_from[from] = from;
    while let Some(node) = queue.pop_front() {
        if node == to {
            let mut path = vec![node];
            while let Some(last) = path.last().copied().filter(|last| *last != from) {
                path.push(came_from[last]);
            }
            path.reverse();
            return Some(path);
        }
        for next in &successors[node] {
            if came_from[*next] == usize::MAX {
                came_from[*next] = node;
                queue.push_back(*next);
            }
        }
    }
    None
}
