//! Privilege lists as statements: turns the text of an aclitem[] into the REVOKE and GRANT that recreate it.

use crate::Result;

/// The words of aclitem's letters.
const WORDS: [(char, &str); 13] = [
    ('a', "INSERT"),
    ('r', "SELECT"),
    ('w', "UPDATE"),
    ('d', "DELETE"),
    ('D', "TRUNCATE"),
    ('x', "REFERENCES"),
    ('t', "TRIGGER"),
    ('X', "EXECUTE"),
    ('U', "USAGE"),
    ('C', "CREATE"),
    ('T', "TEMPORARY"),
    ('c', "CONNECT"),
    ('m', "MAINTAIN"),
];

/// The object of a list.
pub struct Granted<'a> {
    /// The text before GRANT and REVOKE: `ALTER DEFAULT PRIVILEGES ... `, or nothing.
    pub prefix: &'a str,
    /// As GRANT names it: `TABLE s.t`.
    pub object: &'a str,
    /// A quoted column of it.
    pub column: Option<&'a str>,
    pub owner: &'a str,
    /// The letters of all privileges. A grantee with all of them has ALL, also on a server that knows more or fewer of them.
    pub all: &'a str,
}

/// A name in SQL.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// `grantee=letters/grantor`.
struct Item {
    /// Empty: PUBLIC.
    grantee: String,
    /// Letter, and whether it may be granted on.
    privileges: Vec<(char, bool)>,
    grantor: String,
}

impl Granted<'_> {
    /// The statements that empty a list, whatever the defaults of the target server.
    pub fn revoke_all(&self) -> String {
        let (prefix, object) = (self.prefix, self.object);
        format!("{prefix}REVOKE ALL ON {object} FROM PUBLIC; {prefix}REVOKE ALL ON {object} FROM {};", quoted(self.owner))
    }

    /// The statements that grant the privileges of a list, the text of an aclitem[].
    pub fn grants(&self, acl: &str) -> Result<String> {
        let malformed = || format!("{} has a malformed list of privileges: {acl}", self.object);
        let mut out = String::new();
        for text in elements(acl).ok_or_else(malformed)? {
            let item = Item::parse(&text).ok_or_else(malformed)?;
            let as_other = !item.grantor.is_empty() && item.grantor != self.owner;
            if as_other {
                out += &format!(" SET SESSION AUTHORIZATION {};", quoted(&item.grantor));
            }
            for option in [false, true] {
                let letters: String = item.privileges.iter().filter(|p| p.1 == option).map(|p| p.0).collect();
                if !letters.is_empty() {
                    out += &format!(" {}", self.grant(&letters, &item.grantee, option).ok_or_else(malformed)?);
                }
            }
            if as_other {
                out += " RESET SESSION AUTHORIZATION;";
            }
        }
        Ok(out)
    }

    fn grant(&self, letters: &str, grantee: &str, option: bool) -> Option<String> {
        let column = self.column.map_or_else(String::new, |c| format!(" ({c})"));
        let word = |letter: char| WORDS.iter().find(|w| w.0 == letter).map(|w| format!("{}{column}", w.1));
        let is_all = !self.all.is_empty() && self.all.chars().all(|l| letters.contains(l));
        let privileges = match is_all {
            true => format!("ALL{column}"),
            false => letters.chars().map(word).collect::<Option<Vec<_>>>()?.join(", "),
        };
        let grantee = if grantee.is_empty() { "PUBLIC".to_owned() } else { quoted(grantee) };
        let option = if option { " WITH GRANT OPTION" } else { "" };
        Some(format!("{}GRANT {privileges} ON {} TO {grantee}{option};", self.prefix, self.object))
    }
}

/// The letters that an object's owner has by default: all there are on such objects. Of the text of acldefault().
pub fn all_letters(default_acl: &str) -> String {
    let items = elements(default_acl).unwrap_or_default();
    let letters = items.iter().filter_map(|i| Item::parse(i)).map(|i| i.privileges.iter().map(|p| p.0).collect::<String>());
    letters.max_by_key(String::len).unwrap_or_default()
}

impl Item {
    fn parse(text: &str) -> Option<Item> {
        let (grantee, rest) = name(text, '=')?;
        let (letters, grantor) = rest.split_once('/')?;
        let (grantor, _) = name(grantor, '\0')?;
        let mut privileges: Vec<(char, bool)> = Vec::new();
        for letter in letters.chars() {
            match (letter, privileges.last_mut()) {
                ('*', Some(last)) => last.1 = true,
                ('*', None) => return None,
                _ => privileges.push((letter, false)),
            }
        }
        Some(Item { grantee, privileges, grantor })
    }
}

/// A role's name, quoted where it must be, and the rest behind the character that ends it.
fn name(text: &str, end: char) -> Option<(String, &str)> {
    let Some(mut rest) = text.strip_prefix('"') else {
        return match text.split_once(end) {
            Some((name, rest)) => Some((name.to_owned(), rest)),
            None => (end == '\0').then(|| (text.to_owned(), "")),
        };
    };
    let mut name = String::new();
    loop {
        let (part, after) = rest.split_once('"')?;
        name.push_str(part);
        match after.strip_prefix('"') {
            Some(after) => {
                name.push('"');
                rest = after;
            }
            None if end == '\0' => return Some((name, after)),
            None => return Some((name, after.strip_prefix(end)?)),
        }
    }
}

/// The elements of a one-dimensional array's text.
fn elements(array: &str) -> Option<Vec<String>> {
    let inner = array.strip_prefix('{')?.strip_suffix('}')?;
    let (mut all, mut element, mut is_quoted, mut chars) = (Vec::new(), String::new(), false, inner.chars());
    while let Some(c) = chars.next() {
        match c {
            '\\' => element.push(chars.next()?),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => all.push(std::mem::take(&mut element)),
            _ => element.push(c),
        }
    }
    if !inner.is_empty() {
        all.push(element);
    }
    (!is_quoted).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_become_grants() {
        let table = Granted { prefix: "", object: "TABLE s.t", column: None, owner: "ann", all: "rw" };
        assert_eq!(table.revoke_all(), "REVOKE ALL ON TABLE s.t FROM PUBLIC; REVOKE ALL ON TABLE s.t FROM \"ann\";");
        let text = table.grants(r#"{ann=rw/ann,bob=r*w/ann,=r/ann,"\"odd, \"\"name\"\"\"=w/bob"}"#).unwrap();
        let expected = " GRANT ALL ON TABLE s.t TO \"ann\"; GRANT UPDATE ON TABLE s.t TO \"bob\"; GRANT SELECT ON TABLE s.t TO \"bob\" WITH GRANT \
                        OPTION; GRANT SELECT ON TABLE s.t TO PUBLIC; SET SESSION AUTHORIZATION \"bob\"; GRANT UPDATE ON TABLE s.t TO \
                        \"odd, \"\"name\"\"\"; RESET SESSION AUTHORIZATION;";
        assert_eq!(text, expected);
        assert_eq!(table.grants("{}").unwrap(), "");
        for bad in ["{x}", "x=r/y", "{x=*/y}", "{x=q/y}", "{\"x=r/y}"] {
            assert!(table.grants(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn columns_and_defaults() {
        let column = Granted { prefix: "", object: "TABLE s.t", column: Some("\"a\""), owner: "ann", all: "" };
        assert_eq!(column.grants("{bob=rw/ann}").unwrap(), " GRANT SELECT (\"a\"), UPDATE (\"a\") ON TABLE s.t TO \"bob\";");
        let prefix = "ALTER DEFAULT PRIVILEGES FOR ROLE ann ";
        let default = Granted { prefix, object: "TABLES", column: None, owner: "ann", all: "arwdDxtm" };
        assert_eq!(default.grants("{ann=arwdDxtm/ann}").unwrap(), format!(" {prefix}GRANT ALL ON TABLES TO \"ann\";"));
        assert_eq!(all_letters("{=U/ann,ann=UC/ann}"), "UC");
    }
}
