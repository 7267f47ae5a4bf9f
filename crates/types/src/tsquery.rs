//! tsquery: a condition on the lexemes of a document.
//!
//! ```text
//! node       u8 kind, then
//!    1 operand  u8 weights (bit 0 is D, bit 3 is A) | 16 for a prefix; u16 length, bytes
//!    2 NOT      node
//!    3 AND      u32 bytes of the right node, right node, left node
//!    4 OR       the same
//!    5 PHRASE   u16 distance, then the same
//! ```
//!
//! Numbers are little-endian. Right nodes stand before left ones, as in PostgreSQL's binary form. These bytes are stored: the form
//! must not change. The empty query has no bytes.
//!
//! Invariants:
//! 1. Queries are built and written without recursion, so their depth has no limit here.
//! 2. Malformed bytes read as operands that match nothing.

use crate::{Result, err, limits};

const OPERAND: u8 = 1;
const NOT: u8 = 2;
const AND: u8 = 3;
const OR: u8 = 4;
const PHRASE: u8 = 5;

const PREFIX: u8 = 16;
const WEIGHTS: u8 = 15;
/// Places between the operands of a phrase at most (PostgreSQL's MAXENTRYPOS).
pub const DISTANCE_MAX: u16 = 1 << 14;
/// Bytes of nodes and operands at most, as PostgreSQL holds them (its MaxAllocSize).
const BYTES_MAX: usize = 0x3fff_ffff;

/// A lexeme that a document must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TsOperand<'a> {
    pub text: &'a [u8],
    /// Those that count; 0: all.
    pub weights: u8,
    pub prefix: bool,
}

impl<'a> TsOperand<'a> {
    pub fn str(self) -> &'a str {
        std::str::from_utf8(self.text).unwrap_or_default()
    }

    pub fn has_weight(self, weight: u8) -> bool {
        self.weights == 0 || self.weights & 1 << weight != 0
    }
}

/// An operator with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    And,
    Or,
    /// The right operand ends this number of places behind the left one.
    Phrase(u16),
}

/// A node of a query.
#[derive(Clone, Copy, Debug)]
pub enum TsNode<'a> {
    Operand(TsOperand<'a>),
    Not(TsQuery<'a>),
    Binary(Binary, TsQuery<'a>, TsQuery<'a>),
}

/// A query, or a part of one, that is not empty.
#[derive(Clone, Copy, Debug)]
pub struct TsQuery<'a>(&'a [u8]);

const NOTHING: TsNode<'static> = TsNode::Operand(TsOperand { text: &[], weights: 0, prefix: false });

impl<'a> TsQuery<'a> {
    /// `None`: the empty query.
    pub fn new(bytes: &'a [u8]) -> Option<TsQuery<'a>> {
        if bytes.is_empty() { None } else { Some(TsQuery(bytes)) }
    }

    /// The first node; of a binary operator the left part comes first.
    #[inline]
    pub fn node(self) -> TsNode<'a> {
        self.read().unwrap_or(NOTHING)
    }

    #[inline]
    fn read(self) -> Option<TsNode<'a>> {
        let (&kind, rest) = self.0.split_first()?;
        Some(match kind {
            OPERAND => {
                let (&flags, rest) = rest.split_first()?;
                let (length, rest) = rest.split_first_chunk::<2>()?;
                let text = rest.get(..usize::from(u16::from_le_bytes(*length)))?;
                TsNode::Operand(TsOperand { text, weights: flags & WEIGHTS, prefix: flags & PREFIX != 0 })
            }
            NOT => TsNode::Not(TsQuery(rest)),
            _ => {
                let (operator, rest) = match kind {
                    AND => (Binary::And, rest),
                    OR => (Binary::Or, rest),
                    _ => {
                        let (distance, rest) = rest.split_first_chunk::<2>()?;
                        (Binary::Phrase(u16::from_le_bytes(*distance)), rest)
                    }
                };
                let (bytes, rest) = rest.split_first_chunk::<4>()?;
                let (right, left) = rest.split_at_checked(u32::from_le_bytes(*bytes) as usize)?;
                TsNode::Binary(operator, TsQuery(left), TsQuery(right))
            }
        })
    }

    /// All nodes in the order of PostgreSQL's binary form: an operator, its right part, its left part.
    pub fn items(self) -> impl Iterator<Item = TsItem<'a>> {
        let mut waiting = vec![self];
        std::iter::from_fn(move || {
            Some(match waiting.pop()?.node() {
                TsNode::Operand(operand) => TsItem::Operand(operand),
                TsNode::Not(of) => {
                    waiting.push(of);
                    TsItem::Not
                }
                TsNode::Binary(operator, left, right) => {
                    waiting.extend([left, right]);
                    TsItem::Binary(operator)
                }
            })
        })
    }

    /// The operands in that order.
    pub fn operands(self) -> impl Iterator<Item = TsOperand<'a>> {
        self.items().filter_map(|item| match item {
            TsItem::Operand(operand) => Some(operand),
            _ => None,
        })
    }

    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// NOT of a query.
    pub fn negated(self) -> Vec<u8> {
        [&[NOT], self.0].concat()
    }

    /// Two queries with an operator between.
    pub fn join(self, operator: Binary, right: TsQuery<'_>) -> Result<Vec<u8>> {
        limits::check_request(self.0.len() + right.0.len())?;
        let mut out = Vec::with_capacity(self.0.len() + right.0.len() + 7);
        put_operator(operator, right.0.len(), &mut out);
        out.extend_from_slice(right.0);
        out.extend_from_slice(self.0);
        Ok(out)
    }
}

fn put_operator(operator: Binary, right_bytes: usize, out: &mut Vec<u8>) {
    match operator {
        Binary::And => out.push(AND),
        Binary::Or => out.push(OR),
        Binary::Phrase(distance) => {
            out.push(PHRASE);
            out.extend_from_slice(&distance.to_le_bytes());
        }
    }
    out.extend_from_slice(&(right_bytes as u32).to_le_bytes());
}

/// A node without its parts.
#[derive(Clone, Copy, Debug)]
pub enum TsItem<'a> {
    Operand(TsOperand<'a>),
    Not,
    Binary(Binary),
}

/// Makes a query of nodes, each behind its parts (Polish notation, reversed).
#[derive(Default)]
pub struct QueryBuilder {
    items: Vec<BuiltItem>,
    texts: Vec<u8>,
}

#[derive(Clone, Copy)]
enum BuiltItem {
    Operand { start: u32, length: u16, flags: u8 },
    Stop,
    Not,
    Binary(Binary),
}

/// A part of a query as stop words are removed from it.
struct Cleaned {
    is_empty: bool,
    /// What a phrase to the left, and one to the right, is to be wider by.
    left: u32,
    right: u32,
}

impl QueryBuilder {
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub fn operand(&mut self, operand: TsOperand<'_>) {
        let start = self.texts.len() as u32;
        self.texts.extend_from_slice(operand.text);
        let flags = operand.weights & WEIGHTS | if operand.prefix { PREFIX } else { 0 };
        self.items.push(BuiltItem::Operand { start, length: operand.text.len() as u16, flags });
    }

    /// Appends a part that `remove_stops` takes away.
    pub fn stop(&mut self) {
        self.items.push(BuiltItem::Stop);
    }

    pub fn not(&mut self) {
        self.items.push(BuiltItem::Not);
    }

    pub fn binary(&mut self, operator: Binary) {
        self.items.push(BuiltItem::Binary(operator));
    }

    pub fn has_stops(&self) -> bool {
        self.items.iter().any(|item| matches!(item, BuiltItem::Stop))
    }

    /// Takes away stop words, and operators that have no operands left. Phrases around them become wider (the rules are those of
    /// PostgreSQL's clean_stopword_intree).
    pub fn remove_stops(&mut self) {
        let mut kept = Vec::with_capacity(self.items.len());
        let mut parts: Vec<Cleaned> = Vec::new();
        for item in std::mem::take(&mut self.items) {
            let cleaned = match item {
                BuiltItem::Operand { .. } => Cleaned { is_empty: false, left: 0, right: 0 },
                BuiltItem::Stop => Cleaned { is_empty: true, left: 0, right: 0 },
                BuiltItem::Not => match parts.pop() {
                    Some(part) => part,
                    None => continue,
                },
                BuiltItem::Binary(operator) => match (parts.pop(), parts.pop()) {
                    (Some(right), Some(left)) => {
                        let (operator, cleaned) = clean(operator, &left, &right);
                        kept.extend(operator.map(BuiltItem::Binary));
                        parts.push(cleaned);
                        continue;
                    }
                    _ => continue,
                },
            };
            if !cleaned.is_empty {
                kept.push(item);
            }
            parts.push(cleaned);
        }
        self.items = kept;
    }

    /// The bytes of the query.
    ///
    /// # Errors
    /// 54000 when it is too large.
    pub fn finish(self) -> Result<Vec<u8>> {
        if 12 * self.items.len() + self.texts.len() > BYTES_MAX {
            return Err(err!(PROGRAM_LIMIT_EXCEEDED, "tsquery is too large"));
        }
        let mut right_bytes = vec![0; self.items.len()];
        let mut parts = Vec::new();
        for (item, right_bytes) in self.items.iter().zip(&mut right_bytes) {
            let bytes = match item {
                BuiltItem::Operand { length, .. } => 4 + usize::from(*length),
                BuiltItem::Stop => 0,
                BuiltItem::Not => 1 + parts.pop().unwrap_or(0),
                BuiltItem::Binary(operator) => {
                    *right_bytes = parts.pop().unwrap_or(0);
                    5 + if matches!(operator, Binary::Phrase(_)) { 2 } else { 0 } + *right_bytes + parts.pop().unwrap_or(0)
                }
            };
            parts.push(bytes);
        }
        let bytes = parts.pop().unwrap_or(0);
        limits::check_request(bytes)?;
        let mut out = Vec::with_capacity(bytes);
        for (item, right_bytes) in self.items.iter().zip(right_bytes).rev() {
            match *item {
                BuiltItem::Operand { start, length, flags } => {
                    out.extend_from_slice(&[OPERAND, flags]);
                    out.extend_from_slice(&length.to_le_bytes());
                    out.extend_from_slice(&self.texts[start as usize..][..usize::from(length)]);
                }
                BuiltItem::Stop => {}
                BuiltItem::Not => out.push(NOT),
                BuiltItem::Binary(operator) => put_operator(operator, right_bytes, &mut out),
            }
        }
        Ok(out)
    }
}

/// An operator whose parts were cleaned: what is left of it.
fn clean(operator: Binary, left: &Cleaned, right: &Cleaned) -> (Option<Binary>, Cleaned) {
    let is_empty = left.is_empty && right.is_empty;
    let Binary::Phrase(distance) = operator else {
        // What is inside an operator that stays does not move what is outside.
        let (l, r) = match (left.is_empty, right.is_empty) {
            (true, true) => (left.left.max(right.left), left.left.max(right.left)),
            (true, false) => (right.left, right.right),
            (false, true) => (left.left, left.right),
            (false, false) => return (Some(operator), Cleaned { is_empty, left: 0, right: 0 }),
        };
        return (None, Cleaned { is_empty, left: l, right: r });
    };
    let wide = u32::from(distance);
    let sum = |a: u32, b: u32| a.saturating_add(wide).saturating_add(b);
    let (l, r) = match (left.is_empty, right.is_empty) {
        (true, true) => (sum(left.left, right.left), sum(left.left, right.left)),
        (true, false) => (sum(left.left, right.left), right.right),
        (false, true) => (left.left, sum(left.right, right.right)),
        (false, false) => {
            let distance = sum(left.right, right.left).min(u32::from(DISTANCE_MAX.max(distance))) as u16;
            return (Some(Binary::Phrase(distance)), Cleaned { is_empty, left: left.left, right: right.right });
        }
    };
    (None, Cleaned { is_empty, left: l, right: r })
}

/// PostgreSQL's legacy CRC of an operand, by which it sorts them.
pub fn operand_crc(text: &[u8]) -> i32 {
    const TABLE: [u32; 256] = crc_table();
    let crc = text.iter().fold(u32::MAX, |crc, byte| TABLE[(crc >> 24 ^ u32::from(*byte)) as usize & 255] ^ crc << 8);
    !crc as i32
}

/// The table of the reflected CRC-32.
const fn crc_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let mut crc = at as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
            bit += 1;
        }
        table[at] = crc;
        at += 1;
    }
    table
}

/// The sort key of a value, in the order of PostgreSQL's tsquery_cmp: by the number of nodes, by size, and by nodes.
/// Weights and prefixes do not count.
pub fn sort_key(bytes: &[u8], out: &mut Vec<u8>) {
    let Some(query) = TsQuery::new(bytes) else { return };
    let (nodes, texts) = query.items().fold((0u32, 0u32), |(nodes, texts), item| match item {
        TsItem::Operand(operand) => (nodes + 1, texts + operand.text.len() as u32 + 1),
        _ => (nodes + 1, texts),
    });
    out.extend_from_slice(&nodes.to_be_bytes());
    out.extend_from_slice(&texts.to_be_bytes());
    let mut waiting = vec![Waiting::Query(query)];
    while let Some(next) = waiting.pop() {
        let query = match next {
            Waiting::Query(query) => query,
            Waiting::Distance(distance) => {
                out.extend_from_slice(&(!distance).to_be_bytes());
                continue;
            }
        };
        match query.node() {
            TsNode::Binary(operator, left, right) => {
                out.push(match operator {
                    Binary::Phrase(_) => 0,
                    Binary::Or => 1,
                    Binary::And => 2,
                });
                if let Binary::Phrase(distance) = operator {
                    waiting.push(Waiting::Distance(distance));
                }
                waiting.extend([Waiting::Query(left), Waiting::Query(right)]);
            }
            TsNode::Not(of) => {
                out.push(3);
                waiting.push(Waiting::Query(of));
            }
            TsNode::Operand(operand) => {
                out.push(4);
                out.extend_from_slice(&(!(operand_crc(operand.text) as u32 ^ 1 << 31)).to_be_bytes());
                out.extend_from_slice(operand.text);
                out.push(0);
            }
        }
    }
}

/// What of a query is still to be written to its sort key.
enum Waiting<'a> {
    Query(TsQuery<'a>),
    /// Of a phrase whose parts were written.
    Distance(u16),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operand(text: &str) -> TsOperand<'_> {
        TsOperand { text: text.as_bytes(), weights: 0, prefix: false }
    }

    /// The bytes are on disk.
    #[test]
    fn form_of_bytes() {
        let mut builder = QueryBuilder::default();
        builder.operand(TsOperand { text: b"a", weights: 9, prefix: true });
        builder.operand(operand("bc"));
        builder.not();
        builder.binary(Binary::Phrase(3));
        let bytes = builder.finish().unwrap();
        assert_eq!(bytes, b"\x05\x03\0\x07\0\0\0\x02\x01\0\x02\0bc\x01\x19\x01\0a");
        let Some(TsNode::Binary(Binary::Phrase(3), left, _)) = TsQuery::new(&bytes).map(TsQuery::node) else {
            panic!("{bytes:?}")
        };
        assert_eq!(left.operands().map(TsOperand::str).collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn stop_words_leave_wider_phrases() {
        // b <-> (_ <-> _) <-> c
        let mut builder = QueryBuilder::default();
        builder.operand(operand("b"));
        builder.stop();
        builder.stop();
        builder.binary(Binary::Phrase(1));
        builder.binary(Binary::Phrase(1));
        builder.operand(operand("c"));
        builder.binary(Binary::Phrase(1));
        builder.remove_stops();
        let bytes = builder.finish().unwrap();
        let items: Vec<String> = TsQuery::new(&bytes).unwrap().items().map(|item| format!("{item:?}")).collect();
        assert_eq!(items[0], "Binary(Phrase(3))");
        assert_eq!(items.len(), 3);
    }

    #[test]
    fn a_phrase_widens_to_the_largest_distance() {
        let stop = || Cleaned { is_empty: true, left: u32::MAX, right: u32::MAX };
        let (_, around) = clean(Binary::Phrase(u16::MAX), &stop(), &stop());
        let word = Cleaned { is_empty: false, left: 0, right: around.right };
        let (operator, _) = clean(Binary::Phrase(1), &word, &Cleaned { is_empty: false, left: 9, right: 0 });
        assert_eq!(operator, Some(Binary::Phrase(1 << 14)));
    }
}
