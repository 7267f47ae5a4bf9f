//! The fenced blocks of a Markdown page, and the comparison of output that a page shows.

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Shell,
    Server,
    Sql,
    /// SQL of which a statement fails.
    SqlError,
    Output,
    /// Added to this file.
    File(String),
    NotRun,
    /// Not one of the above, with what is wrong.
    Unknown(String),
}

#[derive(Clone, Debug)]
pub struct Fence {
    pub kind: Kind,
    /// Of its first fence, counted from 1.
    pub line: usize,
    /// Its lines, each with its end.
    pub text: String,
}

impl Fence {
    /// Whether it has output that a page may show.
    fn is_run(&self) -> bool {
        matches!(self.kind, Kind::Shell | Kind::Sql | Kind::SqlError)
    }
}

/// The fenced blocks of a page, in order.
pub fn fences(page: &str) -> Vec<Fence> {
    let mut found: Vec<Fence> = Vec::new();
    let mut lines = page.lines().zip(1..);
    // Whether nothing but empty lines came since the last block.
    let mut follows = false;
    while let Some((line, number)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else {
            follows &= line.trim().is_empty();
            continue;
        };
        let body = lines.by_ref().map(|(l, _)| l).take_while(|l| *l != "```");
        let text: String = body.map(|l| format!("{l}\n")).collect();
        let shows = follows && found.last().is_some_and(Fence::is_run);
        found.push(Fence { kind: kind(info.trim(), &text, shows), line: number, text });
        follows = true;
    }
    found
}

fn kind(info: &str, text: &str, follows: bool) -> Kind {
    let first = text.lines().next().unwrap_or_default();
    let comment = first.strip_prefix("# ").or_else(|| first.strip_prefix("-- ")).unwrap_or_default();
    if comment.strip_prefix("not run: ").is_some_and(|reason| !reason.is_empty()) {
        return Kind::NotRun;
    }
    match info.split_once(' ').unwrap_or((info, "")) {
        ("sh", "") => Kind::Shell,
        ("sh", "server") => Kind::Server,
        ("sql", "") => Kind::Sql,
        ("sql", "error") => Kind::SqlError,
        ("text", "") if follows => Kind::Output,
        ("text", "") => {
            Kind::Unknown("a block `text` shows the output of the block right before it, and there is none".to_owned())
        }
        ("sh" | "sql" | "text", other) => Kind::Unknown(format!("`{other}` behind the language means nothing")),
        (_, "") => Kind::Unknown(format!("blocks of `{info}` name the file that they belong to")),
        (_, file) => Kind::File(file.to_owned()),
    }
}

/// Whether output is as shown, where `...` stands for any text. White space at the ends of lines does not count.
pub fn matches(shown: &str, output: &str) -> bool {
    let (shown, output) = (trimmed(shown), trimmed(output));
    let mut parts = shown.split("...");
    let Some(mut rest) = output.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else { return rest.is_empty() };
    for part in between {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

fn trimmed(text: &str) -> String {
    let lines: String = text.lines().map(|l| format!("{}\n", l.trim_end())).collect();
    lines.trim_end().to_owned()
}

/// The page with the output that came in place of what it shows.
pub fn replaced(page: &str, updates: &[(&Fence, String)]) -> String {
    let mut lines: Vec<String> = page.lines().map(str::to_owned).collect();
    for (fence, output) in updates.iter().rev() {
        let body = fence.line..fence.line + fence.text.lines().count();
        lines.splice(body, trimmed(output).lines().map(str::to_owned));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# A\n```sql\nselect 1;\n```\n\n```text\nold\nlines\n```\nwords\n```text\nx\n```\n```sh\n# not run: needs a network\n\
                        apt-get update\n```\n```conf a/melba.conf\nport = 1\n```\n```sh server\nmelba serve\n```\n";

    #[test]
    fn fences_have_kinds() {
        let kinds: Vec<Kind> = fences(PAGE).into_iter().map(|f| f.kind).collect();
        let [sql, output, lost, not_run, file, server] = &kinds[..] else { panic!("{kinds:?}") };
        assert_eq!((sql, output), (&Kind::Sql, &Kind::Output));
        assert!(matches!(lost, Kind::Unknown(_)), "output of nothing");
        assert_eq!((not_run, server), (&Kind::NotRun, &Kind::Server));
        assert_eq!(*file, Kind::File("a/melba.conf".to_owned()));
    }

    #[test]
    fn dots_stand_for_any_text() {
        assert!(matches("a  \nb\n", "a\nb"));
        assert!(!matches("a\n", "a\nb\n"));
        assert!(matches("ready: ... pages\n...\nend\n", "ready: 12 pages\nx\ny\nend\n"));
        assert!(!matches("ready: ... pages\n...\nend\n", "ready: 12 pages\nx\n"));
    }

    #[test]
    fn output_is_replaced() {
        let fences = fences(PAGE);
        let page = replaced(PAGE, &[(&fences[1], "new\n".to_owned())]);
        assert_eq!(page, PAGE.replace("old\nlines\n", "new\n"));
    }
}
