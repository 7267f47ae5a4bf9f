//! Small readers of parse-tree nodes that every utility statement needs.

use melba_types::{DbError, Result, err};
use pg_query::protobuf::{DefElem, Node, a_const, node::Node as N};

/// The strings of a list of String nodes (a qualified name).
pub fn strings(nodes: &[Node]) -> Vec<&str> {
    nodes.iter().filter_map(string).collect()
}

pub fn string(node: &Node) -> Option<&str> {
    match node.node.as_ref()? {
        N::String(s) => Some(&s.sval),
        _ => None,
    }
}

/// The inner node, or an error for a tree no grammar production makes.
pub fn inner(node: &Node) -> Result<&N> {
    node.node.as_ref().ok_or_else(|| DbError::internal("empty parse node"))
}

/// Elements of a DefElem list.
pub fn options(nodes: &[Node]) -> impl Iterator<Item = &DefElem> {
    nodes.iter().filter_map(|n| match n.node.as_ref() {
        Some(N::DefElem(d)) => Some(d.as_ref()),
        _ => None,
    })
}

/// An option's value as text, as WITH (name = value) lists keep it.
pub fn option_text(def: &DefElem) -> Option<String> {
    let node = def.arg.as_ref()?.node.as_ref()?;
    Some(match node {
        N::String(s) => s.sval.clone(),
        N::Integer(i) => i.ival.to_string(),
        N::Float(f) => f.fval.clone(),
        N::Boolean(b) => if b.boolval { "true" } else { "false" }.to_string(),
        N::TypeName(t) => strings(&t.names).last().map(|s| s.to_string())?,
        N::AConst(c) => match c.val.as_ref()? {
            a_const::Val::Ival(i) => i.ival.to_string(),
            a_const::Val::Fval(f) => f.fval.clone(),
            a_const::Val::Sval(s) => s.sval.clone(),
            a_const::Val::Boolval(b) => if b.boolval { "true" } else { "false" }.to_string(),
            a_const::Val::Bsval(b) => b.bsval.clone(),
        },
        N::List(l) => strings(&l.items).join("."),
        _ => return None,
    })
}

/// A boolean option; an absent value is true.
pub fn option_bool(def: &DefElem) -> Result<bool> {
    let Some(text) = option_text(def) else { return Ok(true) };
    match text.to_ascii_lowercase().as_str() {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        _ => Err(err!(SYNTAX_ERROR, "{} requires a Boolean value", def.defname)),
    }
}

/// An integer option.
pub fn option_int(def: &DefElem) -> Result<i64> {
    let text = option_text(def).ok_or_else(|| err!(SYNTAX_ERROR, "{} requires a numeric value", def.defname))?;
    text.parse().map_err(|_| err!(SYNTAX_ERROR, "{} requires a numeric value", def.defname))
}
