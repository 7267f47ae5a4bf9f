//! The span of the client that a statement belongs to: W3C's traceparent in a comment, as sqlcommenter writes it.

/// A client's span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent {
    pub trace: [u8; 16],
    pub span: [u8; 8],
    /// The client has its trace recorded.
    pub is_sampled: bool,
}

/// Before the value, which ends with a quote.
const KEY: &str = "traceparent='";
/// Version, trace, span and flags, and the hyphens between them.
const VALUE_BYTES: usize = 55;

impl Parent {
    /// From the comment that a statement begins or ends with.
    pub fn of_statement(text: &str) -> Option<Parent> {
        let text = text.trim().trim_end_matches(';').trim_end();
        let last = text.strip_suffix("*/").and_then(|rest| rest.rfind("/*").map(|at| &rest[at + 2..]));
        let first = text.strip_prefix("/*").and_then(|rest| rest.find("*/").map(|at| &rest[..at]));
        last.and_then(Parent::of_comment).or_else(|| first.and_then(Parent::of_comment))
    }

    fn of_comment(comment: &str) -> Option<Parent> {
        let value = &comment[comment.find(KEY)? + KEY.len()..];
        let value = value.get(..VALUE_BYTES).filter(|_| value[VALUE_BYTES..].starts_with('\''))?;
        let mut parts = value.split('-');
        let mut next = || parts.next();
        let (version, trace, span, flags) = (next()?, next()?, next()?, next()?);
        let ([version], [flags]) = (hex::<1>(version)?, hex::<1>(flags)?);
        let parent = Parent { trace: hex(trace)?, span: hex(span)?, is_sampled: flags & 1 == 1 };
        let is_valid = version != 0xff && parent.trace != [0; 16] && parent.span != [0; 8] && next().is_none();
        is_valid.then_some(parent)
    }
}

/// The bytes of as many pairs of lower-case digits.
fn hex<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let digit = |c: u8| match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        _ => None,
    };
    let pairs = digits.as_bytes().chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?));
    pairs.collect::<Option<Vec<u8>>>()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_comment_at_either_end_names_the_client_s_span() {
        let parent = Parent::of_statement(&format!("select 1 /*action='x',traceparent='{VALUE}'*/;")).expect("a parent");
        assert_eq!((parent.trace[0], parent.trace[15], parent.span[0], parent.is_sampled), (0x0a, 0x9c, 0xb7, true));
        assert_eq!(Parent::of_statement(&format!("/*traceparent='{VALUE}'*/ select 1")), Some(parent));
        let unsampled = format!("select 1 /*traceparent='{}0'*/", &VALUE[..54]);
        assert_eq!(Parent::of_statement(&unsampled), Some(Parent { is_sampled: false, ..parent }));
    }

    #[test]
    fn what_is_no_traceparent_is_none() {
        let none = |text: &str| assert_eq!(Parent::of_statement(text), None, "{text}");
        none("select 1");
        none(&format!("select 'traceparent=''{VALUE}'"));
        none(&format!("select \"traceparent='{VALUE}'\" from t"));
        none(&format!("select 1 /*traceparent='{VALUE}*/"));
        none(&format!("select 1 /*traceparent='{}'*/", VALUE.replace("0af7", "0AF7")));
        none(&format!("select 1 /*traceparent='{}'*/", VALUE.replace("b7ad6b7169203331", "0000000000000000")));
        none(&format!("select 1 /*traceparent='ff{}'*/", &VALUE[2..]));
        none("select 1 /*traceparent='00-äääääääääääääääääääääääääää'*/");
        none("*/");
        none("/*");
        none("/*/");
    }
}
