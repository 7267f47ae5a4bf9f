//! Messages of the client: turns a script's line into bytes.
//!
//! ```text
//! Query "text"                                   Parse "name" "text" [type OIDs]
//! Bind "portal" "name" [formats] [values] [formats of results]
//! Describe S|P "name"   Close S|P "name"         Execute "portal" rows
//! Flush   Sync   Terminate   CopyDone            CopyData "bytes"   CopyFail "reason"   Password "bytes"
//! FunctionCall oid [formats] [values] format     Startup major.minor "name" "value" ...
//! SSLRequest   GSSENCRequest                     Message tag "body"   Bytes "anything"
//! ```
//!
//! Missing values at a line's end are empty or 0; `null` is a value.

use super::script::Token;

/// The bytes of a message.
pub fn encode(tokens: &[Token]) -> Result<Vec<u8>, String> {
    let Some((Token::Word(name), arguments)) = tokens.split_first() else { return Err("no message".to_owned()) };
    let mut body = Vec::new();
    let mut arguments = arguments.iter();
    let next = &mut arguments;
    let tag = match name.as_str() {
        "Bytes" => return Ok(bytes(next.next())?.to_vec()),
        "Startup" => return startup(next),
        "SSLRequest" => return Ok(vec![0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f]),
        "GSSENCRequest" => return Ok(vec![0, 0, 0, 8, 4, 0xd2, 0x16, 0x30]),
        "Message" => {
            let tag = word(next.next())?.as_bytes()[0];
            body.extend_from_slice(bytes(next.next())?);
            tag
        }
        "Query" => strings(next, 1, &mut body, b'Q')?,
        "CopyFail" => strings(next, 1, &mut body, b'f')?,
        "Parse" => {
            strings(next, 2, &mut body, b'P')?;
            let types = list(next.next())?;
            count(types, &mut body);
            for ty in types {
                body.extend(number(Some(ty))?.to_be_bytes());
            }
            b'P'
        }
        "Bind" => {
            strings(next, 2, &mut body, b'B')?;
            formats(list(next.next())?, &mut body)?;
            values(list(next.next())?, &mut body)?;
            formats(list(next.next())?, &mut body)?;
            b'B'
        }
        "Describe" | "Close" => {
            body.extend(word(next.next())?.bytes());
            strings(next, 1, &mut body, name.as_bytes()[0])?
        }
        "Execute" => {
            strings(next, 1, &mut body, b'E')?;
            body.extend(number(next.next())?.to_be_bytes());
            b'E'
        }
        "FunctionCall" => {
            body.extend(number(next.next())?.to_be_bytes());
            formats(list(next.next())?, &mut body)?;
            values(list(next.next())?, &mut body)?;
            body.extend((number(next.next())? as i16).to_be_bytes());
            b'F'
        }
        "CopyData" | "Password" => {
            body.extend_from_slice(bytes(next.next())?);
            if name == "CopyData" { b'd' } else { b'p' }
        }
        "Flush" => b'H',
        "Sync" => b'S',
        "Terminate" => b'X',
        "CopyDone" => b'c',
        _ => return Err(format!("no message is called {name}")),
    };
    if arguments.next().is_some() {
        return Err(format!("{name} has too many parts"));
    }
    Ok([&[tag][..], &(body.len() as i32 + 4).to_be_bytes(), &body].concat())
}

/// A startup packet.
fn startup<'a>(next: &mut impl Iterator<Item = &'a Token>) -> Result<Vec<u8>, String> {
    let version = word(next.next())?;
    let (major, minor) = version.split_once('.').ok_or("Startup takes a version")?;
    let part = |text: &str| text.parse::<u16>().map_err(|_| format!("{version} is no version"));
    let mut body = [part(major)?.to_be_bytes(), part(minor)?.to_be_bytes()].concat();
    for token in next {
        body.extend_from_slice(bytes(Some(token))?);
        body.push(0);
    }
    body.push(0);
    Ok([&(body.len() as i32 + 4).to_be_bytes()[..], &body].concat())
}

fn strings<'a>(next: &mut impl Iterator<Item = &'a Token>, many: usize, body: &mut Vec<u8>, tag: u8) -> Result<u8, String> {
    for _ in 0..many {
        body.extend_from_slice(bytes(next.next())?);
        body.push(0);
    }
    Ok(tag)
}

fn bytes(token: Option<&Token>) -> Result<&[u8], String> {
    match token {
        Some(Token::Bytes(bytes)) => Ok(bytes),
        other => Err(format!("a string is missing, there is {other:?}")),
    }
}

fn word(token: Option<&Token>) -> Result<&str, String> {
    match token {
        Some(Token::Word(word)) => Ok(word),
        other => Err(format!("a word is missing, there is {other:?}")),
    }
}

fn list(token: Option<&Token>) -> Result<&[Token], String> {
    match token {
        None => Ok(&[]),
        Some(Token::List(list)) => Ok(list),
        other => Err(format!("a list is missing, there is {other:?}")),
    }
}

fn number(token: Option<&Token>) -> Result<i32, String> {
    match token {
        None => Ok(0),
        token => word(token)?.parse().map_err(|_| format!("{token:?} is no number")),
    }
}

fn count(list: &[Token], body: &mut Vec<u8>) {
    body.extend((list.len() as u16).to_be_bytes());
}

fn formats(list: &[Token], body: &mut Vec<u8>) -> Result<(), String> {
    count(list, body);
    for format in list {
        body.extend((number(Some(format))? as i16).to_be_bytes());
    }
    Ok(())
}

fn values(list: &[Token], body: &mut Vec<u8>) -> Result<(), String> {
    count(list, body);
    for value in list {
        match value {
            Token::Word(word) if word == "null" => body.extend((-1i32).to_be_bytes()),
            value => {
                let value = bytes(Some(value))?;
                body.extend((value.len() as i32).to_be_bytes());
                body.extend_from_slice(value);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::script::tokens;
    use super::*;

    #[test]
    fn messages_are_encoded() {
        let encoded = |text: &str| encode(&tokens(text).unwrap());
        assert_eq!(encoded("Sync").unwrap(), b"S\0\0\0\x04");
        assert_eq!(encoded(r#"Execute "p""#).unwrap(), b"E\0\0\0\x0ap\0\0\0\0\0");
        let bind = encoded(r#"Bind "" "s" [1] ["ab" null]"#).unwrap();
        assert_eq!(bind, b"B\0\0\0\x19\0s\0\0\x01\0\x01\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\0");
        assert_eq!(encoded(r#"Startup 3.2 "user" "a""#).unwrap(), b"\0\0\0\x10\0\x03\0\x02user\0a\0\0");
        assert!(encoded("Nothing").is_err() && encoded("Sync 1").is_err());
    }
}
