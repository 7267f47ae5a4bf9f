//! Reads files of the sqllogictest format as SQLite's collection has it.

/// One record of a file, with the line that it starts at.
#[derive(Debug, PartialEq, Eq)]
pub struct Record {
    pub line: usize,
    pub sql: String,
    pub kind: RecordKind,
}

#[derive(Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// It succeeds, or it fails.
    Statement {
        succeeds: bool,
    },
    Query {
        types: String,
        sort: SortMode,
        expected: Expected,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortMode {
    No,
    Rows,
    Values,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Expected {
    Values(Vec<String>),
    /// So many values, each followed by a line feed, have this MD5.
    Hash {
        count: usize,
        md5: String,
    },
}

/// The records that are for `engine`.
pub fn parse(text: &str, engine: &str) -> Result<Vec<Record>, String> {
    let mut records = Vec::new();
    let mut lines = text.lines().enumerate().map(|(i, line)| (i + 1, line.trim_end()));
    let mut skip = false;
    while let Some((number, line)) = lines.next() {
        let words: Vec<&str> = line.split('#').next().unwrap_or("").split_whitespace().collect();
        match words[..] {
            ["halt"] if !skip => break,
            ["skipif", name, ..] => skip |= name == engine,
            ["onlyif", name, ..] => skip |= name != engine,
            ["statement", outcome, ..] => {
                let (sql, _) = block(&mut lines);
                let kind = RecordKind::Statement { succeeds: outcome == "ok" };
                if !std::mem::take(&mut skip) {
                    records.push(Record { line: number, sql, kind });
                }
            }
            ["query", types, ref rest @ ..] => {
                let (sql, has_results) = block(&mut lines);
                let values = if has_results { block(&mut lines).0 } else { String::new() };
                let sort = match rest.first() {
                    Some(&"rowsort") => SortMode::Rows,
                    Some(&"valuesort") => SortMode::Values,
                    _ => SortMode::No,
                };
                let kind = RecordKind::Query { types: types.to_owned(), sort, expected: expected(&values) };
                if !std::mem::take(&mut skip) {
                    records.push(Record { line: number, sql, kind });
                }
            }
            ["halt"] => skip = false,
            [] | ["hash-threshold", ..] => {}
            _ => return Err(format!("line {number}: {line}")),
        }
    }
    Ok(records)
}

/// Lines up to an empty one, or to `----`, and which of both it was.
fn block<'a>(lines: &mut impl Iterator<Item = (usize, &'a str)>) -> (String, bool) {
    let mut found = Vec::new();
    for (_, line) in lines {
        match line {
            "" => return (found.join("\n"), false),
            "----" => return (found.join("\n"), true),
            line => found.push(line),
        }
    }
    (found.join("\n"), false)
}

fn expected(values: &str) -> Expected {
    let words: Vec<&str> = values.split_whitespace().collect();
    if let [count, "values", "hashing", "to", md5] = words[..]
        && let Ok(count) = count.parse()
    {
        return Expected::Hash { count, md5: md5.to_owned() };
    }
    Expected::Values(values.lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "hash-threshold 8\n\nstatement ok\nCREATE TABLE t(a)\n\nonlyif mysql # not here\nstatement error\nSELECT\n\n\
        skipif mysql\nquery IT rowsort label-1\nSELECT a,\n  b FROM t\n----\n1\nx\n\nquery I nosort\nSELECT 1\n----\n30 values hashing to 3c13dee48d9356ae19af2515e05e6b54\n\nhalt\n\nstatement ok\nx\n";

    #[test]
    fn records_of_other_engines_are_left_out() {
        let records = parse(FILE, "postgresql").expect("a file");
        assert_eq!(records.len(), 3);
        assert_eq!(records[0].kind, RecordKind::Statement { succeeds: true });
        assert_eq!(records[1].sql, "SELECT a,\n  b FROM t");
        let expected = Expected::Values(vec!["1".to_owned(), "x".to_owned()]);
        assert_eq!(records[1].kind, RecordKind::Query { types: "IT".to_owned(), sort: SortMode::Rows, expected });
        assert!(matches!(&records[2].kind, RecordKind::Query { expected: Expected::Hash { count: 30, .. }, .. }));
        assert_eq!(parse(FILE, "mysql").expect("a file").len(), 3);
    }
}
