//! tsquery: input and output.

use melba_fmgr::type_io::{received, send_text};
use melba_fmgr::{TypeContext, TypeIo};
use melba_types::tsquery::{Binary, QueryBuilder, TsItem, TsNode, TsOperand, TsQuery};
use melba_types::tsvector::{LEXEME_BYTES_MAX, STRING_BYTES_MAX};
use melba_types::{Datum, DbError, Oid, Result, limits, oids};

use crate::query_parser::{Syntax, parse};
use crate::vector_io::{Message, put_quoted};
use crate::words::weight_letter;

pub const TYPES: &[(Oid, TypeIo)] = &[(
    oids::TSQUERY,
    TypeIo {
        input: |c, text| {
            parse(Some(c.session), text, Syntax::Standard, &mut |parser, word, weights, prefix| {
                parser.operand(word, weights, prefix)
            })
        },
        output: |_, value, out| query(value).map_or(Ok(()), |query| put(query, out)),
        receive,
        send,
    },
)];

/// A query of a datum; `None`: the empty one.
pub fn query(datum: &Datum) -> Option<TsQuery<'_>> {
    TsQuery::new(datum.as_bytes())
}

/// Numbers of operators in the binary form.
const NOT: u8 = 1;
const AND: u8 = 2;
const OR: u8 = 3;
const PHRASE: u8 = 4;
/// Numbers of nodes there.
const OPERAND: u8 = 1;
const OPERATOR: u8 = 2;

/// Appends the text of a query.
///
/// # Errors
/// 54001 for one that nests too deeply.
pub fn put(query: TsQuery<'_>, out: &mut Vec<u8>) -> Result<()> {
    put_node(query, 0, false, out)
}

/// `around`: the priority of the operator around; `is_right_of_phrase`: of whose right operand this is.
fn put_node(query: TsQuery<'_>, around: u8, is_right_of_phrase: bool, out: &mut Vec<u8>) -> Result<()> {
    limits::check_stack()?;
    match query.node() {
        TsNode::Operand(operand) => put_operand(operand, out),
        TsNode::Not(of) => {
            // No operator binds more.
            out.push(b'!');
            put_node(of, priority(None), false, out)?;
        }
        TsNode::Binary(operator, left, right) => {
            let is_phrase = matches!(operator, Binary::Phrase(_));
            let own = priority(Some(operator));
            let parentheses = own < around || (is_phrase && is_right_of_phrase);
            if parentheses {
                out.extend_from_slice(b"( ");
            }
            put_node(left, own, false, out)?;
            match operator {
                Binary::Or => out.extend_from_slice(b" | "),
                Binary::And => out.extend_from_slice(b" & "),
                Binary::Phrase(1) => out.extend_from_slice(b" <-> "),
                Binary::Phrase(distance) => out.extend_from_slice(format!(" <{distance}> ").as_bytes()),
            }
            put_node(right, own, is_phrase, out)?;
            if parentheses {
                out.extend_from_slice(b" )");
            }
        }
    }
    Ok(())
}

/// `None`: NOT.
fn priority(operator: Option<Binary>) -> u8 {
    match operator {
        Some(Binary::Or) => 1,
        Some(Binary::And) => 2,
        Some(Binary::Phrase(_)) => 3,
        None => 4,
    }
}

fn put_operand(operand: TsOperand<'_>, out: &mut Vec<u8>) {
    put_quoted(operand.str(), out);
    if operand.weights != 0 || operand.prefix {
        out.push(b':');
    }
    if operand.prefix {
        out.push(b'*');
    }
    for weight in (0..4).rev().filter(|weight| operand.weights & 1 << weight != 0) {
        out.push(weight_letter(weight) as u8);
    }
}

fn send(context: &TypeContext<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    let items = || query(value).into_iter().flat_map(TsQuery::items);
    out.extend_from_slice(&(items().count() as u32).to_be_bytes());
    for item in items() {
        match item {
            TsItem::Operand(operand) => {
                out.extend_from_slice(&[OPERAND, operand.weights, u8::from(operand.prefix)]);
                send_text(context, operand.str(), out)?;
                out.push(0);
            }
            TsItem::Not => out.extend_from_slice(&[OPERATOR, NOT]),
            TsItem::Binary(Binary::And) => out.extend_from_slice(&[OPERATOR, AND]),
            TsItem::Binary(Binary::Or) => out.extend_from_slice(&[OPERATOR, OR]),
            TsItem::Binary(Binary::Phrase(distance)) => {
                out.extend_from_slice(&[OPERATOR, PHRASE]);
                out.extend_from_slice(&distance.to_be_bytes());
            }
        }
    }
    Ok(())
}

/// A node of a binary value.
enum Received {
    Operand { text: String, weights: u8, prefix: bool },
    Not,
    Binary(Binary),
}

fn receive(context: &TypeContext<'_>, bytes: &[u8]) -> Result<Datum> {
    let mut message = Message(bytes);
    let count = u32::from_be_bytes(message.take()?) as usize;
    if count > 0x3fff_ffff / 12 {
        return Err(DbError::internal("invalid size of tsquery"));
    }
    let (mut nodes, mut texts) = (Vec::new(), 0);
    for at in 0..count {
        limits::tick()?;
        nodes.push(receive_node(context, &mut message, &mut texts, at + 1 == count)?);
    }
    message.end()?;
    check_shape(&nodes)?;
    let mut builder = QueryBuilder::default();
    for node in nodes.iter().rev() {
        match node {
            Received::Operand { text, weights, prefix } => {
                builder.operand(TsOperand { text: text.as_bytes(), weights: *weights, prefix: *prefix });
            }
            Received::Not => builder.not(),
            Received::Binary(operator) => builder.binary(*operator),
        }
    }
    builder.finish().map(Datum::bytes)
}

fn receive_node(context: &TypeContext<'_>, message: &mut Message<'_>, texts: &mut usize, is_last: bool) -> Result<Received> {
    let [kind] = message.take()?;
    if kind == OPERAND {
        let [weights, prefix] = message.take()?;
        let text = received(context, message.string()?)?.into_owned();
        let problem = if weights > 15 {
            Some("invalid weight bitmap")
        } else if text.len() > LEXEME_BYTES_MAX {
            Some("operand too long")
        } else if *texts > STRING_BYTES_MAX {
            Some("total operand length exceeded")
        } else {
            None
        };
        if let Some(problem) = problem {
            return Err(DbError::internal(format!("invalid tsquery: {problem}")));
        }
        *texts += text.len() + 1;
        return Ok(Received::Operand { text, weights, prefix: prefix != 0 });
    }
    if kind != OPERATOR {
        return Err(DbError::internal(format!("unrecognized tsquery node type: {}", kind as i8)));
    }
    let [operator] = message.take()?;
    if !(NOT..=PHRASE).contains(&operator) {
        return Err(DbError::internal(format!("invalid tsquery: unrecognized operator type {}", operator as i8)));
    }
    if is_last {
        return Err(DbError::internal("invalid pointer to right operand"));
    }
    Ok(match operator {
        NOT => Received::Not,
        AND => Received::Binary(Binary::And),
        OR => Received::Binary(Binary::Or),
        _ => Received::Binary(Binary::Phrase(u16::from_be_bytes(message.take()?))),
    })
}

/// Every operator has its operands, and there is one query.
fn check_shape(nodes: &[Received]) -> Result<()> {
    let mut wanted = 1usize;
    for node in nodes {
        if wanted == 0 {
            return Err(DbError::internal("malformed tsquery: extra nodes"));
        }
        match node {
            Received::Operand { .. } => wanted -= 1,
            Received::Not => {}
            Received::Binary(_) => wanted += 1,
        }
    }
    if wanted > 0 {
        return Err(DbError::internal("malformed tsquery: operand not found"));
    }
    Ok(())
}
