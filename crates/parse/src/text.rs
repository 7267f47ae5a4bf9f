//! Parts of statements that stand alone: type names and expressions stored as text.

use std::sync::{Arc, OnceLock};

use melba_types::{DbError, Result, err};
use pg_query::NodeEnum;
use pg_query::protobuf::{LimitOption, Node, ResTarget, SelectStmt, SetOperation, TypeName};

use super::{Statement, Strings, parse_tree};

/// The single expression that `text` is: how defaults, checks and the like are stored.
///
/// Locations in the tree are meaningless and must not be reported.
pub fn parse_expression(text: &str) -> Result<Node> {
    let mut targets = select_list(&format!("SELECT {text}"))?;
    match (targets.pop(), targets.is_empty()) {
        (Some(ResTarget { val: Some(node), .. }), true) => Ok(*node),
        _ => Err(err!(SYNTAX_ERROR, "invalid expression \"{text}\"")),
    }
}

/// The statements of a body RETURN ... or BEGIN ATOMIC ... END as the catalog keeps it.
pub fn parse_sql_body(text: &str) -> Result<Vec<Arc<Statement>>> {
    const HEAD: &str = "CREATE FUNCTION f() RETURNS int4 ";
    let source: Arc<str> = format!("{HEAD}{text}").into();
    let mut statements = parse_tree(&source, Strings::default())?.stmts;
    let Some(NodeEnum::CreateFunctionStmt(create)) = statements.pop().and_then(|s| s.stmt).and_then(|s| s.node) else {
        return Err(err!(SYNTAX_ERROR, "invalid function body"));
    };
    let body = create.sql_body.and_then(|b| b.node).ok_or_else(|| err!(SYNTAX_ERROR, "invalid function body"))?;
    let statement = |node| {
        let (start, end, source) = (HEAD.len(), source.len(), source.clone());
        Arc::new(Statement { node, source, start, end, literals: Vec::new(), row_literals: 0, fingerprint: OnceLock::new() })
    };
    Ok(body_statements(body).into_iter().map(statement).collect())
}

/// The statements of a body that was parsed with its CREATE FUNCTION; RETURN is a SELECT.
pub fn body_statements(body: NodeEnum) -> Vec<NodeEnum> {
    match body {
        NodeEnum::List(list) => list.items.into_iter().filter_map(|n| n.node).flat_map(body_statements).collect(),
        NodeEnum::ReturnStmt(value) => {
            let target = ResTarget { val: value.returnval, ..ResTarget::default() };
            let target = Node { node: Some(NodeEnum::ResTarget(Box::new(target))) };
            vec![NodeEnum::SelectStmt(Box::new(SelectStmt {
                target_list: vec![target],
                limit_option: LimitOption::Default as i32,
                op: SetOperation::SetopNone as i32,
                ..SelectStmt::default()
            }))]
        }
        statement => vec![statement],
    }
}

/// A type name such as `numeric(10,2)[]`, as regtype input and format strings take it.
pub fn parse_type_name(text: &str) -> Result<TypeName> {
    let invalid = || err!(SYNTAX_ERROR, "invalid type name \"{text}\"");
    let context = |mut e: DbError| {
        e.fields_mut().position = None;
        e.context(format!("invalid type name \"{text}\""))
    };
    let mut targets = select_list(&format!("SELECT CAST(NULL AS {text}\n)")).map_err(context)?;
    let target = match (targets.pop(), targets.is_empty()) {
        (Some(ResTarget { val: Some(node), indirection, name, .. }), true) if indirection.is_empty() && name.is_empty() => node,
        _ => return Err(invalid()),
    };
    match target.node {
        Some(NodeEnum::TypeCast(cast)) => match (cast.arg.and_then(|a| a.node), cast.type_name) {
            (Some(NodeEnum::AConst(_)), Some(name)) if !name.setof => Ok(name),
            _ => Err(invalid()),
        },
        _ => Err(invalid()),
    }
}

/// The byte of a statement at which byte `offset` of a function's body stands; `None` when the body is not found just once.
pub fn place_of_body(statement: &str, body: &str, offset: usize) -> Option<usize> {
    let quoted = body.replace('\'', "''");
    let mut places = Vec::new();
    let dollar = statement.match_indices(body).filter(|(at, _)| statement[..*at].ends_with('$'));
    places.extend(dollar.map(|(at, _)| at + offset));
    let doubled = body.get(..offset)?.matches('\'').count();
    let plain = statement
        .match_indices(&quoted)
        .filter(|(at, _)| statement[..*at].ends_with('\'') && statement[at + quoted.len()..].starts_with('\''));
    places.extend(plain.map(|(at, _)| at + offset + doubled));
    match places[..] {
        [one] => Some(one),
        _ => None,
    }
}

/// The value of one string constant, as the lexer reads it.
pub fn string_constant(text: &str, strings: Strings) -> Result<Arc<str>> {
    use pg_query::protobuf::a_const::Val;
    let mut targets = select_list_as(&format!("SELECT {text}"), strings)?;
    match targets.pop().and_then(|t| t.val).and_then(|v| v.node) {
        Some(NodeEnum::AConst(constant)) => match constant.val {
            Some(Val::Sval(value)) => Ok(value.sval.into()),
            _ => Err(err!(SYNTAX_ERROR, "invalid string constant {text}")),
        },
        _ => Err(err!(SYNTAX_ERROR, "invalid string constant {text}")),
    }
}

/// The select list of a bare `SELECT list`.
fn select_list(sql: &str) -> Result<Vec<ResTarget>> {
    select_list_as(sql, Strings::default())
}

fn select_list_as(sql: &str, strings: Strings) -> Result<Vec<ResTarget>> {
    let mut statements = parse_tree(sql, strings)?.stmts;
    let statement = statements.pop().and_then(|s| s.stmt).and_then(|s| s.node);
    let (Some(NodeEnum::SelectStmt(select)), true) = (statement, statements.is_empty()) else {
        return Err(err!(SYNTAX_ERROR, "syntax error"));
    };
    let plain = select.from_clause.is_empty()
        && select.where_clause.is_none()
        && select.sort_clause.is_empty()
        && select.group_clause.is_empty()
        && select.larg.is_none();
    if !plain {
        return Err(err!(SYNTAX_ERROR, "syntax error"));
    }
    let targets = select.target_list.into_iter().filter_map(|n| match n.node {
        Some(NodeEnum::ResTarget(t)) => Some(*t),
        _ => None,
    });
    Ok(targets.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_names_and_nothing_else() {
        assert_eq!(parse_type_name("numeric(10,2)[]").expect("parses").typmods.len(), 2);
        assert!(parse_type_name("int4) , (2").is_err());
        assert!(parse_type_name("int4 blah").is_err());
    }

    #[test]
    fn expressions_and_nothing_else() {
        assert!(parse_expression("(a + 1)").is_ok());
        assert!(parse_expression("a, b").is_err());
        assert!(parse_expression("a from t").is_err());
    }
}
