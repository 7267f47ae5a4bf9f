//! melba.conf: one `name = value` a line, as in postgresql.conf.

use std::path::Path;

/// What a new data directory's melba.conf holds.
pub const DEFAULT: &str = "\
# Settings of this Melba server, one `name = value` a line.
# A line that starts with # is a comment; the values shown are the defaults. `SHOW ALL` lists every setting.
# Changes take effect when the server is started again; `melba serve -c name=value` overrides this file.

#max_connections = 100
#shared_buffers = 128MB             # memory for rows not flushed yet and for cached blocks
#work_mem = 4MB                     # memory of one sort or hash table
#fsync = on                         # off: a crash of the machine may lose anything
#synchronous_commit = on            # off: a crash may lose the last moments, never the order
#default_toast_compression = 'lz4'  # pglz, lz4, zstd, dense
#statement_timeout = 0              # in milliseconds, 0: none
#TimeZone = 'UTC'
#DateStyle = 'ISO, MDY'
";

/// `name=value` of the command line.
pub fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.trim().to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

/// Reads the file; writes the default one first when there is none.
pub fn read_or_create(path: &Path) -> Result<Vec<(String, String)>, String> {
    let shown = path.display();
    match std::fs::read_to_string(path) {
        Ok(text) => parse(&text).map_err(|(line, what)| format!("{shown}, line {line}: {what}")),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            std::fs::write(path, DEFAULT).map_err(|e| format!("could not write {shown}: {e}"))?;
            Ok(Vec::new())
        }
        Err(e) => Err(format!("could not read {shown}: {e}")),
    }
}

/// The assignments of a file, or the number of the line that is none and why.
fn parse(text: &str) -> Result<Vec<(String, String)>, (usize, String)> {
    let mut settings = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |what: &str| (number + 1, what.to_owned());
        let end = line.find(|c: char| c == '=' || c.is_whitespace()).ok_or_else(|| wrong("expected name = value"))?;
        let (name, rest) = line.split_at(end);
        let rest = rest.trim_start();
        let value = value(rest.strip_prefix('=').unwrap_or(rest).trim()).ok_or_else(|| wrong("the value is malformed"))?;
        settings.push((name.to_owned(), value));
    }
    Ok(settings)
}

/// A bare word, or text in single quotes with '' for one; a comment may follow.
fn value(text: &str) -> Option<String> {
    let Some(quoted) = text.strip_prefix('\'') else {
        let bare = text.split('#').next().unwrap_or("").trim();
        return (!bare.is_empty() && !bare.contains(char::is_whitespace)).then(|| bare.to_owned());
    };
    let mut out = String::new();
    let mut chars = quoted.chars().peekable();
    loop {
        match chars.next()? {
            '\'' if chars.peek() == Some(&'\'') => {
                chars.next();
                out.push('\'');
            }
            '\'' => break,
            '\\' => out.push(chars.next()?),
            c => out.push(c),
        }
    }
    let rest: String = chars.collect();
    let rest = rest.trim();
    (rest.is_empty() || rest.starts_with('#')).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_are_read() {
        let text = "# c\n\n a = 1 # one\nb 'it''s' # two\nc='x#y'\n";
        let expected = [("a", "1"), ("b", "it's"), ("c", "x#y")];
        assert_eq!(parse(text).unwrap(), expected.map(|(n, v)| (n.to_owned(), v.to_owned())));
        for (line, bad) in [(1, "word"), (2, "\na ="), (1, "a = 'x"), (1, "a = 1 2"), (1, "a = 'x' y")] {
            assert_eq!(parse(bad).unwrap_err().0, line, "{bad:?}");
        }
    }

    #[test]
    fn the_default_file_names_real_settings_with_their_defaults() {
        let text: String =
            DEFAULT.lines().filter(|l| l.starts_with('#') && !l.starts_with("# ")).map(|l| format!("{}\n", &l[1..])).collect();
        let settings = parse(&text).unwrap();
        assert!(settings.len() > 5);
        let with = melba_sql::session::settings::Settings::server(&settings).unwrap();
        let without = melba_sql::session::settings::Settings::server(&[]).unwrap();
        for (name, _) in settings {
            assert_eq!(with.get(&name), without.get(&name), "{name}");
        }
    }
}
