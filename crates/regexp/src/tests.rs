use melba_types::{DbError, err};

use super::*;

fn find(pattern: &str, text: &str) -> Option<Vec<Option<String>>> {
    let regexp = Regexp::get(pattern, Flags::default()).expect(pattern);
    let captures = regexp.captures_at(text, 0).expect("search")?;
    Some(captures.into_iter().map(|r| r.map(|r| text[r].to_string())).collect())
}

fn whole(pattern: &str, text: &str) -> Option<String> {
    find(pattern, text).and_then(|mut c| c.swap_remove(0))
}

/// Results of PostgreSQL 18.
#[test]
fn the_longest_match_is_taken_unless_the_first_quantifier_is_lazy() {
    assert_eq!(whole("a|ab|abc", "xabcx").as_deref(), Some("abc"));
    assert_eq!(whole("(a*)(ab)*", "aab").as_deref(), Some("aab"));
    assert_eq!(whole("a.*?c", "abcbc").as_deref(), Some("abc"));
    assert_eq!(whole("a.*?c.*", "abcbc").as_deref(), Some("abc"));
    assert_eq!(whole("a(?:.*?c|x).*", "abcbc").as_deref(), Some("abcbc"));
    assert_eq!(find("(foo|foobar)(bar)?", "foobar").expect("match")[0].as_deref(), Some("foobar"));
}

#[test]
fn a_bounded_group_prefers_the_longest_match() {
    let groups = |pattern: &str, text: &str| -> Vec<String> {
        let found = find(pattern, text).expect("matches");
        found.into_iter().skip(1).map(Option::unwrap_or_default).collect()
    };
    assert_eq!(groups("(?:(.*?)(\\d+)(.*)){1,1}", "abc01234xyz"), ["abc", "01234", "xyz"]);
    assert_eq!(groups("(?:(.*?)(\\d+)(.*)){1}", "abc01234xyz"), ["abc", "0", ""]);
}

#[test]
fn a_group_that_prefers_the_shortest_match_gets_it() {
    let part = |pattern: &str| find(pattern, "abcdefg").map(|mut c| c.swap_remove(1).unwrap_or_default());
    assert_eq!(part("^(?:a*){1,1}?(.*){1,1}(?:g*)$").as_deref(), Some("abcdefg"));
    assert_eq!(part("^(?:a+|ab){1,1}?(.*)$").as_deref(), Some("bcdefg"));
    assert_eq!(part("^(?:.*){1}?([e-g]*)$").as_deref(), Some(""));
}

#[test]
fn escapes_brackets_and_options_have_postgresqls_meaning() {
    for (pattern, text, expected) in [
        ("\\mfoo\\M", "a foo b", Some("foo")),
        ("\\mfoo\\M", "afoo", None),
        ("\\yb", "ab b", Some("b")),
        ("[[:alpha:]_]+", "12ab_3", Some("ab_")),
        ("[]a]+", "x]a", Some("]a")),
        ("[^]]", "]x", Some("x")),
        ("[\\w&&]+", "a&b", Some("a&b")),
        ("a{2,3}", "aaaa", Some("aaa")),
        ("a{", "a{", Some("a{")),
        ("(.)\\1", "abbc", Some("bb")),
        ("(?i)AB", "xab", Some("ab")),
        ("***=a.b", "axb a.b", Some("a.b")),
        ("(?x)a b # c", "ab", Some("ab")),
        ("(?n)a.b", "a\nb", None),
        ("a.b", "a\nb", Some("a\nb")),
        ("b(?=c)", "bd bc", Some("b")),
        ("\\u00e9", "é", Some("é")),
        ("[[:<:]]b", "ab b", Some("b")),
        ("", "abc", Some("")),
        ("[^<]<[-/&~]", "a<~", Some("a<~")),
        ("(?e)a)b", "a)b", Some("a)b")),
        ("(?b)\\(a\\)\\{2\\}+", "aa+", Some("aa+")),
        ("a[[.hyphen.]-9]", "a0", Some("a0")),
        ("(?i)(é)\\1", "éÉ", Some("éÉ")),
        ("a(?#b)*", "aa", Some("aa")),
        ("(?q)a+", "a+", Some("a+")),
        ("$()|^\\1", "a", None),
        ("$()|^\\1", "", Some("")),
        ("(b?$)|\\1", "ab", Some("b")),
        ("(b?$)|x", "a", Some("")),
    ] {
        assert_eq!(whole(pattern, text).as_deref(), expected, "{pattern} {text}");
    }
}

#[test]
fn patterns_that_are_none_say_why() {
    for (pattern, reason) in [
        ("(a", "parentheses () not balanced"),
        ("a)", "parentheses () not balanced"),
        ("[a", "brackets [] not balanced"),
        ("*a", "quantifier operand invalid"),
        ("a**", "quantifier operand invalid"),
        ("a{3,1}", "invalid repetition count(s)"),
        ("a{256}", "invalid repetition count(s)"),
        ("a\\", "invalid escape \\ sequence"),
        ("\\q", "invalid escape \\ sequence"),
        ("[[:foo:]]", "invalid character class"),
        ("[b-a]", "invalid character range"),
        ("(a)\\2", "invalid backreference number"),
        ("(a\\1)", "invalid backreference number"),
        ("(a)(?=\\1)", "invalid backreference number"),
        ("[[..]]", "invalid collating element"),
        ("[\\w-z]", "invalid character range"),
        ("[a-", "brackets [] not balanced"),
        ("***?", "invalid regexp (reg version 0.8)"),
    ] {
        let e = Regexp::get(pattern, Flags::default()).err().expect(pattern);
        assert_eq!(e.message(), format!("invalid regular expression: {reason}"), "{pattern}");
    }
}

/// The results of PostgreSQL 18's regexp_match.
#[test]
fn groups_are_where_postgresql_has_them() {
    let groups = |pattern: &str, text: &str| -> Vec<Option<String>> { find(pattern, text).expect(pattern).split_off(1) };
    for (pattern, text, expected) in [
        (" TO (([a-z0-9._]+|\"([^\"]+|\"\")+\")+)", "asd TO foo", vec![Some("foo"), Some("o"), None]),
        ("a(bc*).*\\1", "abccbccb", vec![Some("b")]),
        ("(^$)*", "x", vec![None]),
        ("([bc])(\\1*)", "ab", vec![Some("b"), Some("")]),
        ("x(?=((foo)))", "xfoo", vec![]),
        ("^(l*){1,1}?(.*)(f*)$", "llmmmfff", vec![Some(""), Some("llmmmfff"), Some("")]),
        ("^([^/]+?)(?:/([^/]+?))(?:/([^/]+?))?$", "foo/bar/baz", vec![Some("foo"), Some("bar"), Some("baz")]),
        ("(a|ab)(c|bcd)*", "abcd", vec![Some("a"), Some("bcd")]),
        ("(.)(.*?)b", "xaab", vec![Some("x"), Some("aa")]),
    ] {
        let expected: Vec<Option<String>> = expected.into_iter().map(|g| g.map(str::to_owned)).collect();
        assert_eq!(groups(pattern, text), expected, "{pattern}");
    }
    assert_eq!(whole("a?(?:ab)?", "ab").as_deref(), Some("ab"));
}

/// An interrupt that comes after a while.
struct Soon(std::time::Instant);

impl melba_types::limits::Interruptible for Soon {
    fn check(&self) -> Result<()> {
        let is_over = self.0.elapsed() > std::time::Duration::from_millis(20);
        if is_over { Err(err!(QUERY_CANCELED, "canceling statement due to statement timeout")) } else { Ok(()) }
    }
}

/// How long a pattern keeps a statement that is to end after 20 milliseconds.
fn compiled_under_an_interrupt(pattern: &str) -> (DbError, std::time::Duration) {
    let start = std::time::Instant::now();
    let compiled = melba_types::limits::run(std::sync::Arc::new(Soon(start)), || Regexp::compile(pattern, Flags::default()));
    (compiled.err().expect("it takes longer"), start.elapsed())
}

/// Each alone takes longer than a second.
#[test]
fn an_interrupt_ends_the_compilation_of_a_large_pattern() {
    for pattern in ["[[:alpha:]]".repeat(6000), format!("(?i){}", "\\w".repeat(6000))] {
        let (error, took) = compiled_under_an_interrupt(&pattern);
        assert_eq!(error.sqlstate(), melba_types::SqlState::QUERY_CANCELED, "{}", &pattern[..20]);
        assert!(took < std::time::Duration::from_millis(800), "{took:?}");
    }
}

#[test]
fn a_pattern_that_cannot_be_compiled_is_refused_before_it_is_tried() {
    let start = std::time::Instant::now();
    let refused = Regexp::compile(&"[[:alpha:]]".repeat(49_000), Flags::default()).err().expect("is too large");
    assert_eq!(refused.message(), "invalid regular expression: regular expression is too complex");
    assert!(start.elapsed() < std::time::Duration::from_millis(1500), "{:?}", start.elapsed());
}

/// A pattern refused by its least size would also be refused by its real size.
#[test]
fn the_least_size_of_a_set_is_no_more_than_its_size() {
    use regex_automata::nfa::thompson::NFA;
    for set in ["[[:alpha:]]", "\\w", "[^a]", ".", "[[:upper:]]", "\\d", "a", "[[:punct:]]", "[ -~]"] {
        let pattern = parse::parse(set, Flags::default()).expect("parses");
        let (text, _) = pattern.regex();
        let ranges = automaton::ranges(&text, false).expect("a set").len();
        let states = NFA::new(&text).expect("compiles").memory_usage();
        assert!(ranges * 4 <= states, "{set}: {ranges} ranges, {states} bytes");
    }
}

/// A tree names a stretch of the pattern for each of its nodes.
#[test]
fn groups_in_a_row_take_memory_by_their_number() {
    let in_session = || {
        melba_types::limits::start_session_thread();
        let pattern = parse::parse(&"(a|b)".repeat(10_000), Flags::default()).expect("parses");
        let start = std::time::Instant::now();
        let (_, nodes) = tree::tree(&pattern.part).expect("is not too deep");
        assert!(nodes >= 20_000);
        assert!(start.elapsed() < std::time::Duration::from_secs(2), "{:?}", start.elapsed());
    };
    let stack = melba_types::limits::SESSION_STACK_BYTES;
    std::thread::Builder::new().stack_size(stack).spawn(in_session).expect("starts").join().expect("no panic");
}

/// Each reference has the group again that it is to.
#[test]
fn back_references_count_with_the_size_of_their_group() {
    let doubling: String = (1..30).map(|n| format!("(\\{n}\\{n})")).collect();
    for pattern in [format!("(a){doubling}"), format!("({}){}", "a".repeat(1000), "\\1".repeat(1000))] {
        let refused = Regexp::compile(&pattern, Flags::default()).err().expect("is too large");
        assert_eq!(refused.message(), "invalid regular expression: regular expression is too complex");
    }
    assert_eq!(whole("(ab)\\1(c\\1)", "ababcab").as_deref(), Some("ababcab"));
}
