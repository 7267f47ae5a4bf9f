//! The identity of a statement without its constants: a number (queryid), and the text that is shown.
//!
//! The number of a query is a hash of its analyzed form as text (`melba_deparse::identifying_text`): all names are qualified in
//! it, so that it says which tables are meant, and a constant is only its type. It is the same after a restart, and on every
//! server of a version. Other statements are identified by their words (`Statement::fingerprint`).

use melba_analyze::{Context, LiteralUse};
use melba_parse::Statement;
use melba_parse::fingerprint::{self, end_of_constant, tokens};
use melba_tree::{Expr, ParamKind, Query};

/// Where a constant stands in the source text; of a list of constants, which is shown as its first one, where the last one stands.
#[derive(Clone, Copy, Debug)]
struct ConstantPlace {
    first: usize,
    last: usize,
}

/// A constant that `$n` stands for, and where the list ends that it stands for as well.
struct Shown {
    start: usize,
    end: usize,
    list_end: Option<usize>,
}

/// See the module.
#[derive(Debug)]
pub struct Identity {
    pub number: i64,
    constants: Vec<ConstantPlace>,
    /// The greatest `$n` of the text.
    parameters: usize,
}

impl Identity {
    /// Of a query before anything in it was replaced. `has_literals`: its parameters are literals of the text.
    pub fn of(cx: &Context<'_>, query: &Query, has_literals: bool) -> Identity {
        let text = melba_deparse::identifying_text(cx, query, has_literals);
        let hash = xxhash_rust::xxh3::xxh3_64(text.as_bytes()) as i64;
        let (mut constants, mut parameters) = (Vec::new(), 0);
        query.visit(0, &mut |e, _| {
            match e {
                Expr::Const(c) => constants.extend(place(c.location, c.location)),
                Expr::Param(p) if p.kind == ParamKind::External && !has_literals => parameters = parameters.max(p.number),
                Expr::Array(a) if melba_deparse::is_list_of_constants(a, has_literals) => {
                    let locations = || a.elements.iter().filter_map(Expr::constant_location).filter(|l| *l >= 0);
                    if let (Some(first), Some(last)) = (locations().min(), locations().max()) {
                        constants.extend(place(first, last));
                    }
                    return false;
                }
                _ => {}
            }
            true
        });
        // 0 says that there is none.
        Identity { number: if hash == 0 { 1 } else { hash }, constants, parameters }
    }

    /// The statement's text with `$n` for each constant. `uses`: how its literals became parameters.
    pub fn text(&self, statement: &Statement, uses: &[LiteralUse]) -> String {
        let is_scanned = statement.literals.is_empty() || !self.constants.is_empty();
        let tokens = if is_scanned { tokens(statement) } else { Vec::new() };
        let literal_at = |start: usize| statement.literals.iter().find(|l| l.range.start == start);
        let end_of = |at: usize| match literal_at(at) {
            Some(literal) => Some(literal.range.end),
            None => end_of_constant(statement, &tokens, at),
        };
        let mut constants: Vec<Shown> = Vec::with_capacity(self.constants.len() + statement.literals.len());
        for place in &self.constants {
            let list_end = if place.last > place.first { end_of(place.last) } else { None };
            constants.extend(end_of(place.first).map(|end| Shown { start: place.first, end, list_end }));
        }
        for (at, literal) in statement.literals.iter().enumerate() {
            let minus = literal.minus.filter(|_| uses.get(at) == Some(&LiteralUse::Negated));
            constants.push(Shown { start: minus.unwrap_or(literal.range.start), end: literal.range.end, list_end: None });
        }
        constants.sort_unstable_by_key(|c| (c.start, c.end));
        // A literal with its sign, or a list that begins with it, comes first.
        constants.dedup_by(|next, kept| {
            let is_same = next.end == kept.end;
            if is_same {
                kept.list_end = kept.list_end.or(next.list_end);
            }
            is_same
        });
        let mut out = Replacing::new(statement, self.parameters);
        for Shown { start, end, list_end } in constants.into_iter().filter(|c| c.start >= statement.start) {
            if start < out.at {
                continue;
            }
            out.constant(start, end);
            if let Some(last) = list_end {
                out.rest_of_list(last);
            }
        }
        if statement.row_literals > 0 {
            // The second row of VALUES stands for all that follow.
            return out.finish() + " /*, ... */";
        }
        out.finish()
    }
}

fn place(first: i32, last: i32) -> Option<ConstantPlace> {
    Some(ConstantPlace { first: usize::try_from(first).ok()?, last: usize::try_from(last).ok()? })
}

/// A text, copied with constants replaced.
struct Replacing<'a> {
    statement: &'a Statement,
    number: usize,
    at: usize,
    out: String,
}

impl<'a> Replacing<'a> {
    fn new(statement: &'a Statement, number: usize) -> Replacing<'a> {
        Replacing { statement, number, at: statement.start, out: String::new() }
    }

    fn constant(&mut self, start: usize, end: usize) {
        let Some(before) = self.statement.source.get(self.at..start).filter(|_| end <= self.statement.end) else { return };
        self.number += 1;
        self.out.push_str(before);
        self.out.push_str(&format!("${}", self.number));
        self.at = end;
    }

    fn rest_of_list(&mut self, end: usize) {
        self.out.push_str(" /*, ... */");
        self.at = end;
    }

    fn finish(mut self) -> String {
        self.out.push_str(self.statement.source.get(self.at..self.statement.end).unwrap_or_default());
        self.out.trim().to_owned()
    }
}

/// The text of a statement that is no query, without its constants.
pub fn text_of_utility(statement: &Statement) -> String {
    let mut out = Replacing::new(statement, 0);
    for constant in fingerprint::constants(statement) {
        out.constant(constant.start, constant.end);
    }
    out.finish()
}
