//! Privilege lists: the bits, their letters, and PostgreSQL's aclitem text form.

use melba_types::Oid;

use crate::objects::AclItem;

/// The letters of the privilege bits, lowest bit first (INSERT, SELECT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER,
/// EXECUTE, USAGE, CREATE, TEMPORARY, CONNECT, SET, ALTER SYSTEM, MAINTAIN).
const LETTERS: &[u8] = b"arwdDxtXUCTcsAm";

/// The words of the privilege bits, lowest bit first.
pub const NAMES: [&str; 15] = [
    "INSERT",
    "SELECT",
    "UPDATE",
    "DELETE",
    "TRUNCATE",
    "REFERENCES",
    "TRIGGER",
    "EXECUTE",
    "USAGE",
    "CREATE",
    "TEMPORARY",
    "CONNECT",
    "SET",
    "ALTER SYSTEM",
    "MAINTAIN",
];

/// Grant options lie this many bits above their privileges.
pub const GRANT_OPTION_SHIFT: u32 = 32;

pub const INSERT: u64 = 1 << 0;
pub const SELECT: u64 = 1 << 1;
pub const UPDATE: u64 = 1 << 2;
pub const DELETE: u64 = 1 << 3;
pub const TRUNCATE: u64 = 1 << 4;
pub const REFERENCES: u64 = 1 << 5;
pub const TRIGGER: u64 = 1 << 6;
pub const EXECUTE: u64 = 1 << 7;
pub const USAGE: u64 = 1 << 8;
pub const CREATE: u64 = 1 << 9;
pub const TEMPORARY: u64 = 1 << 10;
pub const CONNECT: u64 = 1 << 11;
pub const SET: u64 = 1 << 12;
pub const ALTER_SYSTEM: u64 = 1 << 13;
pub const MAINTAIN: u64 = 1 << 14;

impl AclItem {
    /// Reads `grantee=letters/grantor`; `*` after a letter is its grant option. `role` finds a role by name.
    pub fn parse(text: &str, mut role: impl FnMut(&str) -> Oid) -> Option<AclItem> {
        let (grantee, rest) = name(text)?;
        let (letters, grantor) = rest.strip_prefix('=')?.split_once('/')?;
        let (grantor, after) = name(grantor)?;
        if !after.is_empty() {
            return None;
        }
        let mut privileges = 0;
        let mut last = 0;
        for letter in letters.bytes() {
            if letter == b'*' {
                privileges |= last << GRANT_OPTION_SHIFT;
            } else {
                last = 1 << LETTERS.iter().position(|l| *l == letter)?;
                privileges |= last;
            }
        }
        let grantee = if grantee.is_empty() { Oid::INVALID } else { role(&grantee) };
        Some(AclItem { grantee, grantor: role(&grantor), privileges })
    }

    /// The letters of the privileges, each followed by `*` where it may be granted on.
    pub fn letters(&self) -> String {
        let mut out = String::new();
        for (bit, letter) in LETTERS.iter().enumerate() {
            if self.privileges >> bit & 1 != 0 {
                out.push(char::from(*letter));
                if self.privileges >> (bit as u32 + GRANT_OPTION_SHIFT) & 1 != 0 {
                    out.push('*');
                }
            }
        }
        out
    }
}

/// A role's name, which may be quoted, and the rest.
fn name(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find('=').unwrap_or(text.len());
        return Some((text[..end].to_owned(), &text[end..]));
    };
    let mut name = String::new();
    let mut rest = quoted;
    loop {
        let (part, after) = rest.split_once('"')?;
        name.push_str(part);
        match after.strip_prefix('"') {
            Some(after) => {
                name.push('"');
                rest = after;
            }
            None => return Some((name, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aclitem_text_round_trips() {
        let item = AclItem::parse("=ar*w/postgres", |_| Oid(10)).expect("an aclitem");
        assert_eq!(item.grantee, Oid::INVALID);
        assert_eq!(item.privileges, INSERT | SELECT | UPDATE | SELECT << GRANT_OPTION_SHIFT);
        assert_eq!(item.letters(), "ar*w");
        let quoted = AclItem::parse("\"a=\"\"b\"=r/postgres", |name| Oid(name.len() as u32)).expect("an aclitem");
        assert_eq!((quoted.grantee, quoted.grantor), (Oid(4), Oid(8)));
        assert!(AclItem::parse("a=?/b", |_| Oid(10)).is_none());
    }
}
