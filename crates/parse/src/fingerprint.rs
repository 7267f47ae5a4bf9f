//! Distinguishes statements that are no queries: by their words, without the constants that PostgreSQL leaves out.

use std::ops::Range;

use pg_query::NodeEnum;
use pg_query::protobuf::{KeywordKind, ScanToken, Token};
use xxhash_rust::xxh3::Xxh3;

use crate::Statement;

/// Where a statement that is no query has constants that do not distinguish it from others.
enum Constants {
    None,
    /// A word: PostgreSQL 18 marks these of its node (queryjumblefuncs.c, `location` in the nodes of SET, SAVEPOINT, DEALLOCATE).
    At(i32),
    /// Those of the query in it.
    All,
}

/// A hash of the statement's words; comments, white space, its `constants` and the case of words outside quotes do not count. Never 0.
pub(crate) fn of(statement: &Statement) -> u64 {
    let mut hash = Xxh3::new();
    let tokens = tokens(statement);
    let mut constants = constants_among(&tokens, statement).into_iter().peekable();
    for token in &tokens {
        let (start, end) = (token.start as usize, token.end as usize);
        // Both are in order.
        while constants.next_if(|c| c.end <= start).is_some() {}
        match constants.peek() {
            Some(constant) if constant.start == start => hash.update(b"$"),
            Some(constant) if constant.contains(&start) => {}
            _ => add(&mut hash, token, statement.source.get(start..end).unwrap_or_default()),
        }
    }
    hash.digest().max(1)
}

/// Where in the source text the constants stand that do not count.
pub fn constants(statement: &Statement) -> Vec<Range<usize>> {
    constants_among(&tokens(statement), statement)
}

/// The same, in order, of a statement with these tokens.
fn constants_among(tokens: &[ScanToken], statement: &Statement) -> Vec<Range<usize>> {
    let end = |at: usize| end_of_constant(statement, tokens, at);
    match constants_of(&statement.node) {
        Constants::None => Vec::new(),
        Constants::At(at) => usize::try_from(at).ok().and_then(|at| Some(at..end(at)?)).into_iter().collect(),
        Constants::All => tokens.iter().filter(|t| is_constant(t)).map(|t| t.start as usize..t.end as usize).collect(),
    }
}

/// Where the constant ends that begins at a place of the source text: a token, or one with its sign.
pub fn end_of_constant(statement: &Statement, tokens: &[ScanToken], at: usize) -> Option<usize> {
    let from = tokens.partition_point(|t| (t.start as usize) < at);
    let mut found = tokens[from..].iter();
    let first = found.next().filter(|t| t.start as usize == at)?;
    let is_sign = statement.source.get(at..first.end as usize).is_some_and(|text| matches!(text, "-" | "+"));
    let last = if is_sign { found.next()? } else { first };
    Some(last.end as usize)
}

/// The statement's tokens without comments, at their places in the source text; none where it cannot be read.
pub fn tokens(statement: &Statement) -> Vec<ScanToken> {
    let Some(text) = statement.source.get(statement.start..statement.end) else { return Vec::new() };
    let mut tokens = pg_query::scan(text).map(|scanned| scanned.tokens).unwrap_or_default();
    tokens.retain(|t| t.token != Token::SqlComment as i32 && t.token != Token::CComment as i32);
    for token in &mut tokens {
        token.start += statement.start as i32;
        token.end += statement.start as i32;
    }
    tokens
}

fn constants_of(node: &NodeEnum) -> Constants {
    match node {
        NodeEnum::VariableSetStmt(set) => Constants::At(set.location),
        NodeEnum::TransactionStmt(transaction) => Constants::At(transaction.location),
        NodeEnum::DeallocateStmt(deallocate) => Constants::At(deallocate.location),
        NodeEnum::ExplainStmt(_)
        | NodeEnum::DeclareCursorStmt(_)
        | NodeEnum::CreateTableAsStmt(_)
        | NodeEnum::CallStmt(_)
        | NodeEnum::CopyStmt(_) => Constants::All,
        _ => Constants::None,
    }
}

fn is_constant(token: &ScanToken) -> bool {
    [Token::Fconst, Token::Sconst, Token::Usconst, Token::Bconst, Token::Xconst, Token::Iconst]
        .iter()
        .any(|t| *t as i32 == token.token)
}

fn add(hash: &mut Xxh3, token: &ScanToken, word: &str) {
    hash.update(&token.token.to_le_bytes());
    if token.keyword_kind == KeywordKind::NoKeyword as i32 {
        let is_folded = token.token == Token::Ident as i32 && !word.starts_with('"');
        let word = if is_folded { word.to_ascii_lowercase() } else { word.to_owned() };
        hash.update(&word.len().to_le_bytes());
        hash.update(word.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::constants;

    fn of(text: &str) -> u64 {
        let parsed = crate::parse(text).expect("valid");
        parsed.statements.last().expect("a statement").fingerprint()
    }

    #[test]
    fn constants_space_comments_and_case_do_not_count() {
        assert_eq!(of("BEGIN"), of("begin /* now */ "));
        assert_ne!(of("BEGIN"), of("COMMIT"));
        assert_eq!(of("SET work_mem = '1MB'"), of("set  Work_Mem = -2"));
        assert_ne!(of("SET work_mem = 1"), of("SET temp_buffers = 1"));
        assert_eq!(of("savepoint a"), of("begin; SAVEPOINT b"));
        assert_eq!(of("explain select 1"), of("explain select 2"));
        assert_ne!(of("explain select x"), of("explain select \"X\""));
        assert_ne!(of("create table t(a int default 1)"), of("create table t(a int default 2)"));
    }

    #[test]
    fn constants_have_places_in_the_source() {
        let text = "begin; set work_mem to -64 ;";
        let parsed = crate::parse(text).expect("valid");
        let found: Vec<&str> = constants(&parsed.statements[1]).into_iter().map(|c| &text[c]).collect();
        assert_eq!(found, ["-64"]);
    }
}
