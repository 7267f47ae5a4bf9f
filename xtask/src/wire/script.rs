//! The text form of conversations.
//!
//! ```text
//! === title                      a conversation begins; a schema `wire` is empty and first in the search path
//! raw                            its client sends the startup packet itself
//! routines                       the names of the functions that raise errors are compared
//! setup "create table t(a int)"  run before, by another connection
//! > Parse "" "select 1"          messages of the client; those of a block go out in one piece
//! > Flush
//! < ParseComplete                what the server answers before it falls silent, or `(nothing)`
//! > @b Query "select 2"          a second connection, which is called b
//! # a comment
//! ```
//!
//! Words, numbers, "strings" with the escapes \n \r \t \\ \" \xNN, and [lists] of them make up a message (`message`).

/// A part of a line.
#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    Word(String),
    Bytes(Vec<u8>),
    List(Vec<Token>),
}

/// A client's action.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// "" for the first connection.
    pub connection: String,
    pub repeat: usize,
    pub tokens: Vec<Token>,
}

/// Messages that are sent together, and the answers.
#[derive(Debug, PartialEq)]
pub struct Exchange {
    pub texts: Vec<String>,
    pub lines: Vec<Line>,
    pub answers: Vec<String>,
}

#[derive(Debug, PartialEq)]
pub enum Item {
    Exchange(Exchange),
    /// Comments, empty lines and directives, as they are.
    Other(String),
}

#[derive(Debug, Default, PartialEq)]
pub struct Conversation {
    /// Empty for the part before the first one.
    pub title: String,
    pub raw: bool,
    pub routines: bool,
    pub setup: Vec<String>,
    pub items: Vec<Item>,
}

/// Reads a file's text.
pub fn parse(text: &str) -> Result<Vec<Conversation>, String> {
    let mut conversations = vec![Conversation::default()];
    for (number, line) in text.lines().enumerate() {
        let failed = |message: String| format!("line {}: {message}", number + 1);
        let conversation = conversations.last_mut().expect("there is always one");
        if let Some(title) = line.strip_prefix("=== ") {
            conversations.push(Conversation { title: title.to_owned(), ..Conversation::default() });
        } else if let Some(rest) = line.strip_prefix("> ") {
            let parsed = parse_line(rest).map_err(failed)?;
            match conversation.items.last_mut() {
                Some(Item::Exchange(e)) if e.answers.is_empty() && e.lines[0].connection == parsed.connection => {
                    e.texts.push(line.to_owned());
                    e.lines.push(parsed);
                }
                _ => conversation.items.push(Item::Exchange(Exchange {
                    texts: vec![line.to_owned()],
                    lines: vec![parsed],
                    answers: Vec::new(),
                })),
            }
        } else if let Some(answer) = line.strip_prefix("< ") {
            match conversation.items.last_mut() {
                Some(Item::Exchange(e)) => e.answers.push(answer.to_owned()),
                _ => return Err(failed("an answer to nothing".to_owned())),
            }
        } else {
            match line.split_once(' ').unwrap_or((line, "")) {
                ("raw", "") => conversation.raw = true,
                ("routines", "") => conversation.routines = true,
                ("setup", rest) => match &tokens(rest).map_err(failed)?[..] {
                    [Token::Bytes(query)] => conversation.setup.push(String::from_utf8_lossy(query).into_owned()),
                    _ => return Err(failed("setup takes one string".to_owned())),
                },
                ("", _) | ("#", _) => {}
                _ => return Err(failed(format!("not understood: {line}"))),
            }
            conversation.items.push(Item::Other(line.to_owned()));
        }
    }
    Ok(conversations)
}

/// The text of a file.
pub fn print(conversations: &[Conversation]) -> String {
    let mut out = String::new();
    let mut line = |text: &str| {
        out.push_str(text);
        out.push('\n');
    };
    for conversation in conversations {
        if !conversation.title.is_empty() {
            line(&format!("=== {}", conversation.title));
        }
        for item in &conversation.items {
            match item {
                Item::Other(text) => line(text),
                Item::Exchange(e) => {
                    e.texts.iter().for_each(|text| line(text));
                    e.answers.iter().for_each(|answer| line(&format!("< {answer}")));
                }
            }
        }
    }
    out
}

fn parse_line(text: &str) -> Result<Line, String> {
    let mut tokens = tokens(text)?;
    let mut connection = String::new();
    if let Some(Token::Word(word)) = tokens.first()
        && let Some(name) = word.strip_prefix('@')
    {
        connection = name.to_owned();
        tokens.remove(0);
    }
    let mut repeat = 1;
    if let Some(Token::Word(word)) = tokens.first()
        && let Some(times) = word.strip_suffix('*')
    {
        repeat = times.parse().map_err(|_| format!("{word}: not a number of times"))?;
        tokens.remove(0);
    }
    if tokens.is_empty() { Err("no message".to_owned()) } else { Ok(Line { connection, repeat, tokens }) }
}

/// Cuts a line into its parts.
pub fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut lists = vec![Vec::new()];
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let token = match first {
            '[' => {
                lists.push(Vec::new());
                rest = rest[1..].trim_start();
                continue;
            }
            ']' => {
                rest = &rest[1..];
                Token::List(lists.pop().unwrap_or_default())
            }
            '"' => {
                let (bytes, after) = string(&rest[1..])?;
                rest = after;
                Token::Bytes(bytes)
            }
            _ => {
                let end = rest.find([' ', ']', '"']).unwrap_or(rest.len());
                let word = rest[..end].to_owned();
                rest = &rest[end..];
                Token::Word(word)
            }
        };
        lists.last_mut().ok_or("] without [")?.push(token);
        rest = rest.trim_start();
    }
    match (lists.pop(), lists.is_empty()) {
        (Some(tokens), true) => Ok(tokens),
        _ => Err("[ without ]".to_owned()),
    }
}

/// The bytes up to the closing quote, and the rest.
fn string(text: &str) -> Result<(Vec<u8>, &str), String> {
    let mut bytes = Vec::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Ok((bytes, &text[at + 1..])),
            '\\' => match chars.next() {
                Some((_, 'n')) => bytes.push(b'\n'),
                Some((_, 'r')) => bytes.push(b'\r'),
                Some((_, 't')) => bytes.push(b'\t'),
                Some((at, 'x')) => {
                    let digits = text.get(at + 1..at + 3).ok_or("\\x without two digits")?;
                    bytes.push(u8::from_str_radix(digits, 16).map_err(|_| format!("\\x{digits}"))?);
                    chars.nth(1);
                }
                Some((_, c)) => bytes.extend(c.encode_utf8(&mut [0; 4]).bytes()),
                None => break,
            },
            c => bytes.extend(c.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    Err("a string without its end".to_owned())
}

/// Bytes as a string of this form.
pub fn quoted(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '"' | '\\' => out.extend(['\\', c]),
                c if c.is_ascii_control() => out.push_str(&format!("\\x{:02x}", c as u32)),
                c => out.push(c),
            }
        }
        chunk.invalid().iter().for_each(|b| out.push_str(&format!("\\x{b:02x}")));
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_printed_as_they_were_read() {
        let text =
            "# about\n=== one\nraw\n> Parse \"\" \"a\\x00\\\"\" [23 25]\n> Flush\n< ParseComplete\n\n> @b 3* Sync\n< (nothing)\n";
        let conversations = parse(text).unwrap();
        assert_eq!(print(&conversations), text);
        assert!(conversations[1].raw && conversations[1].title == "one");
        let Item::Exchange(first) = &conversations[1].items[1] else { panic!("{conversations:?}") };
        assert_eq!(first.lines.len(), 2);
        assert_eq!(first.lines[0].tokens[2], Token::Bytes(b"a\0\"".to_vec()));
        assert_eq!(first.lines[0].tokens[3], Token::List(vec![Token::Word("23".into()), Token::Word("25".into())]));
        let Item::Exchange(second) = &conversations[1].items[3] else { panic!("{conversations:?}") };
        assert_eq!((second.lines[0].connection.as_str(), second.lines[0].repeat), ("b", 3));
        assert!(parse("> Parse \"").is_err() && parse("< x").is_err() && parse("> Bind [1").is_err());
    }

    #[test]
    fn bytes_survive_quoting() {
        let bytes: Vec<u8> = (0..=255).collect();
        let text = quoted(&bytes);
        assert_eq!(tokens(&text).unwrap(), [Token::Bytes(bytes)]);
    }
}
