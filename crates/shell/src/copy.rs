//! `\copy`: COPY between the server and a file, or a program.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::process::Stdio;

use super::shell::Shell;
use crate::Result;
use crate::input::Input;
use crate::query::CopyEnds;

/// `\copy TABLE [(COLUMN, ...)] FROM | TO PLACE [OPTIONS]`, or `\copy (QUERY) TO PLACE [OPTIONS]`.
#[derive(Debug, PartialEq, Eq)]
struct Copy {
    /// The statement, with STDIN or STDOUT in the place of the file.
    statement: String,
    is_from: bool,
    place: Place,
}

#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// The input that the statements come from, or the output.
    Own,
    File(String),
    Program(String),
}

fn parse(text: &str) -> Result<Copy> {
    let wrong = || "\\copy: TABLE FROM FILE, TABLE TO FILE or (QUERY) TO FILE is expected".to_owned();
    let (at, word) =
        words(text).find(|(_, word)| ["from", "to"].iter().any(|w| word.eq_ignore_ascii_case(w))).ok_or_else(wrong)?;
    let is_from = word.eq_ignore_ascii_case("from");
    let what = text[..at].trim();
    let mut rest = text[at + word.len()..].trim_start();
    if what.is_empty() {
        return Err(wrong());
    }
    let is_program = words(rest).next().is_some_and(|(at, word)| at == 0 && word.eq_ignore_ascii_case("program"));
    if is_program {
        rest = rest["program".len()..].trim_start();
    }
    let (name, options) = match rest.strip_prefix('\'') {
        Some(quoted) => quoted_name(quoted).ok_or("\\copy: unterminated quoted string")?,
        None => {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            (rest[..end].trim_end_matches(';').to_owned(), &rest[end..])
        }
    };
    let own = ["stdin", "stdout", "pstdin", "pstdout"].iter().any(|own| name.eq_ignore_ascii_case(own));
    let place = match name {
        name if name.is_empty() => return Err(wrong()),
        name if is_program => Place::Program(name),
        _ if own => Place::Own,
        name => Place::File(name),
    };
    let (direction, ours) = if is_from { ("FROM", "STDIN") } else { ("TO", "STDOUT") };
    let statement = format!("COPY {what} {direction} {ours} {}", options.trim().trim_end_matches(';'));
    Ok(Copy { statement: statement.trim_end().to_owned(), is_from, place })
}

/// Words outside of parentheses and quotes, with their places.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let (mut depth, mut quote, mut start) = (0_u32, None, None);
    let ends = text.char_indices().chain([(text.len(), ' ')]).filter_map(move |(at, c)| {
        let is_word = quote.is_none() && depth == 0 && (c.is_alphanumeric() || c == '_');
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        match (is_word, start) {
            (true, None) => {
                start = Some(at);
                None
            }
            (false, Some(begun)) => {
                start = None;
                Some((begun, at))
            }
            _ => None,
        }
    });
    ends.map(|(start, end)| (start, &text[start..end]))
}

/// A name in quotes, in which a doubled quote is one, and the rest.
fn quoted_name(text: &str) -> Option<(String, &str)> {
    let (mut name, mut rest) = (String::new(), text);
    loop {
        let end = rest.find('\'')?;
        name.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('\'') {
            Some(more) => {
                name.push('\'');
                rest = more;
            }
            None => return Some((name, rest)),
        }
    }
}

/// `\copy`. `false`: it failed, which has been reported.
pub fn copy(shell: &mut Shell, text: &str, input: &mut dyn Input) -> bool {
    let done = parse(text).and_then(|copy| run_copy(shell, &copy, input));
    done.unwrap_or_else(|e| {
        shell.complain(&e, input.number());
        false
    })
}

fn run_copy(shell: &mut Shell, copy: &Copy, input: &mut dyn Input) -> Result<bool> {
    let Copy { statement, is_from, place } = copy;
    match place {
        Place::Own => Ok(shell.query(statement, input)),
        Place::File(name) if *is_from => {
            let mut file = File::open(name).map_err(|e| format!("{name}: {e}"))?;
            if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
                return Err(format!("{name}: cannot copy from/to a directory"));
            }
            Ok(shell.query_with(statement, input, CopyEnds { from: Some(&mut file), to: None }))
        }
        Place::File(name) => {
            let mut file = BufWriter::new(File::create(name).map_err(|e| format!("{name}: {e}"))?);
            let is_well = shell.query_with(statement, input, CopyEnds { from: None, to: Some(&mut file) });
            file.flush().map_err(|e| format!("{name}: {e}"))?;
            Ok(is_well)
        }
        Place::Program(command) => copy_by_program(shell, statement, command, *is_from, input),
    }
}

fn copy_by_program(shell: &mut Shell, statement: &str, command: &str, is_from: bool, input: &mut dyn Input) -> Result<bool> {
    let mut program = crate::output::shell(command);
    match is_from {
        true => program.stdout(Stdio::piped()),
        false => program.stdin(Stdio::piped()),
    };
    let mut child = program.spawn().map_err(|e| format!("{command}: {e}"))?;
    let (mut from, mut to) = (child.stdout.take(), child.stdin.take());
    let ends = CopyEnds { from: from.as_mut().map(|from| from as &mut dyn Read), to: to.as_mut().map(|to| to as &mut dyn Write) };
    let is_well = shell.query_with(statement, input, ends);
    drop((from, to));
    let status = child.wait().map_err(|e| format!("{command}: {e}"))?;
    if !status.success() {
        return Err(format!("{command}: {status}"));
    }
    Ok(is_well)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_taken_out_of_the_statement() {
        let copy = |text: &str| parse(text).map(|copy| (copy.statement, copy.is_from, copy.place));
        let file = |name: &str| Place::File(name.to_owned());
        assert_eq!(copy("t from a.csv csv header"), Ok(("COPY t FROM STDIN csv header".to_owned(), true, file("a.csv"))));
        assert_eq!(
            copy("(select 'x to y', a from t) TO 'my file''s.csv' (format csv);"),
            Ok(("COPY (select 'x to y', a from t) TO STDOUT (format csv)".to_owned(), false, file("my file's.csv")))
        );
        assert_eq!(
            copy("\"from\" (a, \"to\") from stdin"),
            Ok(("COPY \"from\" (a, \"to\") FROM STDIN".to_owned(), true, Place::Own))
        );
        let program = Place::Program("gzip -c > x".to_owned());
        assert_eq!(copy("s.t to program 'gzip -c > x'"), Ok(("COPY s.t TO STDOUT".to_owned(), false, program)));
        assert!(copy("t").is_err() && copy("t from 'x").is_err() && copy("from x").is_err());
    }
}
