//! Reads an authentication file with its included files, into lines of fields.
//!
//! An error affects only its line: it is noted there, and reading continues, so that all errors are reported at once.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::tokenizer::{Scanner, Token, lines};

/// A line of one of the files.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FileLine {
    pub file: PathBuf,
    /// From 1.
    pub number: usize,
    pub text: String,
    /// Tokens by field; a field has several when commas join them.
    pub fields: Vec<Vec<Token>>,
    pub error: Option<String>,
}

/// Files within files, at most.
const DEPTH_MAX: usize = 10;

/// The lines of a file and of those that it includes, without empty ones.
///
/// # Errors
/// The file itself cannot be read.
pub(super) fn read(path: &Path) -> Result<Vec<FileLine>, String> {
    let mut out = Vec::new();
    read_into(path, 0, &mut out).map_err(|failed| failed.message)?;
    Ok(out)
}

/// A file that could not be read.
struct Unread {
    message: String,
    is_missing: bool,
}

fn read_into(path: &Path, depth: usize, out: &mut Vec<FileLine>) -> Result<(), Unread> {
    let unread = |reason: &str, is_missing| Unread {
        message: format!("could not open file \"{}\": {reason}", path.display()),
        is_missing,
    };
    if depth > DEPTH_MAX {
        return Err(unread("maximum nesting depth exceeded", false));
    }
    let content = std::fs::read_to_string(path).map_err(|e| unread(&reason(&e), e.kind() == ErrorKind::NotFound))?;
    for line in lines(&content) {
        let mut made = FileLine { file: path.to_owned(), number: line.number, text: line.text, fields: Vec::new(), error: None };
        made.error = read_fields(&mut made.fields, &made.text, path, depth).err();
        if made.fields.is_empty() && made.error.is_none() {
            continue;
        }
        match include(&made, depth, out) {
            Some(Ok(())) => {}
            Some(Err(message)) => out.push(FileLine { error: Some(message), ..made }),
            None => out.push(made),
        }
    }
    Ok(())
}

/// The system's text of an error, without its number.
fn reason(error: &std::io::Error) -> String {
    error.to_string().split(" (os error").next().unwrap_or_default().to_owned()
}

fn read_fields(fields: &mut Vec<Vec<Token>>, text: &str, path: &Path, depth: usize) -> Result<(), String> {
    let mut scanner = Scanner::new(text);
    while !scanner.is_at_end() {
        let mut field = Vec::new();
        let mut result = Ok(());
        while let Some((token, comma)) = scanner.token() {
            match token.file() {
                Some(name) => result = tokens_of_file(&beside(path, name), depth + 1, &mut field),
                None => field.push(token),
            }
            if !comma || result.is_err() {
                break;
            }
        }
        if !field.is_empty() {
            fields.push(field);
        }
        result?;
    }
    Ok(())
}

/// All tokens of a file that a field names.
fn tokens_of_file(path: &Path, depth: usize, field: &mut Vec<Token>) -> Result<(), String> {
    let mut included = Vec::new();
    read_into(path, depth, &mut included).map_err(|unread| unread.message)?;
    for line in included {
        line.error.map_or(Ok(()), Err)?;
        field.extend(line.fields.into_iter().flatten());
    }
    Ok(())
}

/// A name in a file counts from the file's folder.
fn beside(file: &Path, name: &str) -> PathBuf {
    file.parent().unwrap_or(Path::new("")).join(name)
}

/// Reads the file that an include line names; `None` when the line is not one.
fn include(line: &FileLine, depth: usize, out: &mut Vec<FileLine>) -> Option<Result<(), String>> {
    let [first, second] = &line.fields[..] else { return None };
    if line.error.is_some() {
        return None;
    }
    let name = &second[0].text;
    let path = beside(&line.file, name);
    match first[0].text.as_str() {
        "include" => Some(read_into(&path, depth + 1, out).map_err(|unread| unread.message)),
        "include_if_exists" => Some(match read_into(&path, depth + 1, out) {
            Err(unread) if !unread.is_missing => Err(unread.message),
            _ => Ok(()),
        }),
        "include_dir" => Some(include_directory(name, &path, depth, out)),
        _ => None,
    }
}

/// The files `*.conf` of a folder, by name.
fn include_directory(name: &str, path: &Path, depth: usize, out: &mut Vec<FileLine>) -> Result<(), String> {
    if name.trim().is_empty() {
        return Err(format!("empty configuration directory name: \"{name}\""));
    }
    let failed = |e: std::io::Error| format!("could not open configuration directory \"{}\": {}", path.display(), reason(&e));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        let name = file.file_name().unwrap_or_default().as_encoded_bytes();
        if name.len() >= 6 && !name.starts_with(b".") && name.ends_with(b".conf") && !file.is_dir() {
            files.push(file);
        }
    }
    files.sort();
    let errors: Vec<String> =
        files.iter().filter_map(|file| read_into(file, depth + 1, out).err()).map(|unread| unread.message).collect();
    if errors.is_empty() { Ok(()) } else { Err(errors.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary directory");
        for (name, content) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("it is in the folder")).expect("a folder");
            std::fs::write(path, content).expect("a file");
        }
        folder
    }

    /// The lines of `main` as `file:number: fields, or error`.
    fn shown(folder: &tempfile::TempDir) -> Vec<String> {
        let place = format!("{}/", folder.path().display());
        let lines = read(&folder.path().join("main")).expect("the file is there");
        let fields = |line: &FileLine| {
            let field = |tokens: &Vec<Token>| tokens.iter().map(|t| t.text.as_str()).collect::<Vec<_>>().join("+");
            line.fields.iter().map(field).collect::<Vec<_>>().join(" ")
        };
        let line = |line: &FileLine| {
            let what = line.error.clone().unwrap_or_else(|| fields(line));
            format!("{}:{}: {what}", line.file.display(), line.number).replace(&place, "")
        };
        lines.iter().map(line).collect()
    }

    #[test]
    fn lines_come_in_the_order_of_their_files() {
        let folder = folder(&[
            ("main", "# c\nlocal a,b @users trust\ninclude more\ninclude_if_exists none\ninclude_dir d\nlast\n"),
            ("users", "ann\nbob, carl\n"),
            ("more", "\nhost x\n"),
            ("d/2.conf", "two"),
            ("d/1.conf", "one @../users"),
            ("d/.hidden.conf", "no"),
            ("d/other", "no"),
        ]);
        let expected = [
            "main:2: local a+b ann+bob+carl trust",
            "more:2: host x",
            "d/1.conf:1: one ann+bob+carl",
            "d/2.conf:1: two",
            "main:6: last",
        ];
        assert_eq!(shown(&folder), expected);
    }

    #[test]
    fn an_unreadable_rule_invalidates_its_line_only() {
        let folder = folder(&[("main", "include none\nlocal @gone x\ninclude_dir nodir\ninclude main\nlocal\n")]);
        let got = shown(&folder);
        assert_eq!(got[0], "main:1: could not open file \"none\": No such file or directory");
        assert_eq!(got[1], "main:2: could not open file \"gone\": No such file or directory");
        assert_eq!(got[2], "main:3: could not open configuration directory \"nodir\": No such file or directory");
        assert_eq!(got.last().map(String::as_str), Some("main:5: local"));
        assert!(got.contains(&"main:4: could not open file \"main\": maximum nesting depth exceeded".to_owned()), "{got:?}");
        assert!(read(&folder.path().join("none")).is_err());
    }
}
