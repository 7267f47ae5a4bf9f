//! The functions and operators over regular expressions.

use melba_fmgr::{CallInfo, ScalarFn, SetFn};
use melba_regexp::{Captures, Flags, Regexp, all_matches};
use melba_types::{Datum, Result, err, limits, oids};

mod similar;

use similar::similar_to_regexp;

use crate::array::functions::one_dimensional;
use crate::text::collation;

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("textregexeq", |c, a| matches(c, a, false, false)),
    ("textregexne", |c, a| matches(c, a, false, true)),
    ("texticregexeq", |c, a| matches(c, a, true, false)),
    ("texticregexne", |c, a| matches(c, a, true, true)),
    ("nameregexeq", |c, a| matches(c, a, false, false)),
    ("nameregexne", |c, a| matches(c, a, false, true)),
    ("nameicregexeq", |c, a| matches(c, a, true, false)),
    ("nameicregexne", |c, a| matches(c, a, true, true)),
    ("textregexsubstr", |c, a| check_collation(c).and_then(|()| substring(a[0].as_str(), a[1].as_str()))),
    ("substring_2074", |c, a| {
        check_collation(c)?;
        let taken = similar_to_regexp(a[1].as_str(), Some(a[2].as_str())).and_then(|regexp| substring(a[0].as_str(), &regexp));
        // A function of SQL in PostgreSQL.
        taken.map_err(|e| e.within("SQL function \"substring\" statement 1"))
    }),
    ("similar_to_escape_1", |_, a| similar_to_regexp(a[0].as_str(), None).map(Datum::text)),
    ("similar_to_escape_2", |_, a| similar_to_regexp(a[0].as_str(), Some(a[1].as_str())).map(Datum::text)),
    ("similar_escape", |_, a| match (&a[0], &a[1]) {
        (Datum::Null, _) => Ok(Datum::Null),
        (pattern, Datum::Null) => similar_to_regexp(pattern.as_str(), None).map(Datum::text),
        (pattern, escape) => similar_to_regexp(pattern.as_str(), Some(escape.as_str())).map(Datum::text),
    }),
    ("textregexreplace_noopt", |c, a| check_collation(c).and_then(|()| replace(a, Flags::default(), 1, 1))),
    ("textregexreplace", |c, a| {
        check_collation(c)?;
        let options = a[3].as_str();
        if options.starts_with(|c: char| c.is_ascii_digit()) {
            let shown = &options[..1];
            let hint =
                "If you meant to use regexp_replace() with a start parameter, cast the fourth argument to integer explicitly.";
            return Err(err!(INVALID_PARAMETER_VALUE, "invalid regular expression option: \"{shown}\"").hint(hint));
        }
        let flags = Flags::parse(options)?;
        replace(a, flags, 1, if flags.global { 0 } else { 1 })
    }),
    ("textregexreplace_extended", |c, a| {
        check_collation(c)?;
        let (start, n) = (positive(&a[3], "start")?, not_negative(&a[4])?);
        replace(a, Flags::parse(a[5].as_str())?, start, n)
    }),
    ("textregexreplace_extended_no_flags", |c, a| {
        check_collation(c).and_then(|()| replace(a, Flags::default(), positive(&a[3], "start")?, not_negative(&a[4])?))
    }),
    ("textregexreplace_extended_no_n", |c, a| {
        check_collation(c).and_then(|()| replace(a, Flags::default(), positive(&a[3], "start")?, 1))
    }),
    ("regexp_match", |c, a| {
        check_collation(c).and_then(|()| first_match(a, flags_without_global(&a[2], "regexp_match", Some("regexp_matches"))?))
    }),
    ("regexp_match_no_flags", |c, a| check_collation(c).and_then(|()| first_match(a, Flags::default()))),
    ("regexp_like", |c, a| check_collation(c).and_then(|()| like(a, flags_without_global(&a[2], "regexp_like", None)?))),
    ("regexp_like_no_flags", |c, a| check_collation(c).and_then(|()| like(a, Flags::default()))),
    ("regexp_split_to_array", |c, a| {
        check_collation(c).and_then(|()| split_array(a, flags_without_global(&a[2], "regexp_split_to_array", None)?))
    }),
    ("regexp_split_to_array_no_flags", |c, a| check_collation(c).and_then(|()| split_array(a, Flags::default()))),
    ("regexp_count", count),
    ("regexp_count_no_flags", count),
    ("regexp_count_no_start", count),
    ("regexp_instr", instr),
    ("regexp_instr_no_subexpr", instr),
    ("regexp_instr_no_flags", instr),
    ("regexp_instr_no_endoption", instr),
    ("regexp_instr_no_n", instr),
    ("regexp_instr_no_start", instr),
    ("regexp_substr", substr),
    ("regexp_substr_no_subexpr", substr),
    ("regexp_substr_no_flags", substr),
    ("regexp_substr_no_n", substr),
    ("regexp_substr_no_start", substr),
];

pub const SETS: &[(&str, SetFn)] = &[
    ("regexp_matches", |c, a| check_collation(c).and_then(|()| matches_rows(a, Flags::parse(a[2].as_str())?))),
    ("regexp_matches_no_flags", |c, a| check_collation(c).and_then(|()| matches_rows(a, Flags::default()))),
    ("regexp_split_to_table", |c, a| {
        check_collation(c)?;
        let flags = flags_without_global(&a[2], "regexp_split_to_table", None)?;
        Ok(crate::setreturning::rows(split(a, flags)?.into_iter()))
    }),
    ("regexp_split_to_table_no_flags", |c, a| {
        check_collation(c).and_then(|()| Ok(crate::setreturning::rows(split(a, Flags::default())?.into_iter())))
    }),
];

/// # Errors
/// 42P22 for texts of several collations, 0A000 for a collation that has different texts equal.
fn check_collation(call: &CallInfo<'_>) -> Result<()> {
    collation::collator(call, "regular expression")?;
    collation::refuse_nondeterministic(call, "regular expressions")
}

fn matches(call: &CallInfo<'_>, a: &[Datum], ignore_case: bool, negate: bool) -> Result<Datum> {
    check_collation(call)?;
    let regexp = Regexp::get(a[1].as_str(), Flags { ignore_case, ..Flags::default() })?;
    Ok(Datum::Bool(regexp.is_match(a[0].as_str())? != negate))
}

fn flags_without_global(options: &Datum, function: &str, instead: Option<&str>) -> Result<Flags> {
    let flags = Flags::parse(options.as_str())?;
    if !flags.global {
        return Ok(flags);
    }
    let e = err!(INVALID_PARAMETER_VALUE, "{function}() does not support the \"global\" option");
    Err(match instead {
        Some(instead) => e.hint(format!("Use the {instead} function instead.")),
        None => e,
    })
}

fn positive(v: &Datum, name: &str) -> Result<i32> {
    let n = v.as_i32();
    if n <= 0 { Err(err!(INVALID_PARAMETER_VALUE, "invalid value for parameter \"{name}\": {n}")) } else { Ok(n) }
}

fn not_negative(v: &Datum) -> Result<i32> {
    let n = v.as_i32();
    if n < 0 { Err(err!(INVALID_PARAMETER_VALUE, "invalid value for parameter \"n\": {n}")) } else { Ok(n) }
}

/// Byte offset of a 1-based character position; beyond the text's end, one more than its length.
fn offset(text: &str, position: i32) -> usize {
    let chars = position as usize - 1;
    text.char_indices().map(|(at, _)| at).chain([text.len()]).nth(chars).unwrap_or(text.len() + 1)
}

fn part(text: &str, range: Option<&std::ops::Range<usize>>) -> Datum {
    range.map_or(Datum::Null, |r| Datum::text(&text[r.clone()]))
}

/// The first group of the first match, or the whole match when there are no groups.
fn substring(text: &str, pattern: &str) -> Result<Datum> {
    let regexp = Regexp::get(pattern, Flags::default())?;
    let Some(captures) = regexp.captures_at(text, 0)? else { return Ok(Datum::Null) };
    Ok(part(text, captures[usize::from(regexp.groups > 0)].as_ref()))
}

/// A result that grew by this much is checked.
const LOOK_BYTES: usize = 1 << 20;

/// `n`: which match to replace, 0 for all.
fn replace(a: &[Datum], flags: Flags, start: i32, n: i32) -> Result<Datum> {
    let (text, pattern, replacement) = (a[0].as_str(), a[1].as_str(), a[2].as_str());
    let regexp = Regexp::get(pattern, flags)?;
    let mut out = String::with_capacity(text.len());
    let (mut copied, mut seen, mut looked) = (0, 0, 0);
    all_matches(&regexp, text, offset(text, start), |captures| {
        seen += 1;
        let Some(whole) = &captures[0] else { return Ok(false) };
        if n > 0 && seen < n {
            return Ok(true);
        }
        out.push_str(&text[copied..whole.start]);
        expand(replacement, text, &captures, &mut out);
        if out.len() - looked > LOOK_BYTES {
            looked = out.len();
            limits::check_length(looked)?;
        }
        copied = whole.end;
        Ok(n == 0)
    })?;
    out.push_str(&text[copied..]);
    Ok(Datum::text(out))
}

/// Appends the replacement: `\1` to `\9` are groups, `\&` the match, `\\` a backslash.
fn expand(replacement: &str, text: &str, captures: &Captures, out: &mut String) {
    let mut chars = replacement.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('&') => out.push_str(captures[0].clone().map_or("", |r| &text[r])),
            Some(d @ '1'..='9') => {
                let group = captures.get(d as usize - '0' as usize).cloned().flatten();
                out.push_str(group.map_or("", |r| &text[r]));
            }
            Some('\\') | None => out.push('\\'),
            Some(other) => {
                out.push('\\');
                out.push(other);
            }
        }
    }
}

/// The groups of a match (or the whole, without groups) as a text array.
fn groups(text: &str, regexp: &Regexp, captures: &Captures) -> Datum {
    let wanted = if regexp.groups == 0 { &captures[..1] } else { &captures[1..] };
    one_dimensional(oids::TEXT, wanted.iter().map(|r| part(text, r.as_ref())).collect())
}

fn first_match(a: &[Datum], flags: Flags) -> Result<Datum> {
    let text = a[0].as_str();
    let regexp = Regexp::get(a[1].as_str(), flags)?;
    Ok(regexp.captures_at(text, 0)?.map_or(Datum::Null, |captures| groups(text, &regexp, &captures)))
}

fn matches_rows(a: &[Datum], flags: Flags) -> Result<Box<dyn Iterator<Item = Result<Vec<Datum>>> + Send>> {
    let text = a[0].as_str();
    let regexp = Regexp::get(a[1].as_str(), flags)?;
    let mut found = Vec::new();
    all_matches(&regexp, text, 0, |captures| {
        found.push(groups(text, &regexp, &captures));
        Ok(flags.global)
    })?;
    Ok(crate::setreturning::rows(found.into_iter()))
}

fn like(a: &[Datum], flags: Flags) -> Result<Datum> {
    Regexp::get(a[1].as_str(), flags)?.is_match(a[0].as_str()).map(Datum::Bool)
}

/// The pieces between matches. Empty matches at the start, at the end and right after a match do not separate.
fn split(a: &[Datum], flags: Flags) -> Result<Vec<Datum>> {
    let text = a[0].as_str();
    let regexp = Regexp::get(a[1].as_str(), flags)?;
    let mut pieces = Vec::new();
    let mut end = 0;
    all_matches(&regexp, text, 0, |captures| {
        if let Some(whole) = &captures[0]
            && whole.start < text.len()
            && whole.end > end
        {
            pieces.push(Datum::text(&text[end..whole.start]));
            end = whole.end;
        }
        Ok(true)
    })?;
    pieces.push(Datum::text(&text[end..]));
    Ok(pieces)
}

fn split_array(a: &[Datum], flags: Flags) -> Result<Datum> {
    Ok(one_dimensional(oids::TEXT, split(a, flags)?))
}

/// Arguments: text, pattern, start, flags.
fn count(call: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    check_collation(call)?;
    let text = a[0].as_str();
    let start = a.get(2).map_or(Ok(1), |v| positive(v, "start"))?;
    let flags = a.get(3).map_or(Ok(Flags::default()), |v| flags_without_global(v, "regexp_count", None))?;
    let regexp = Regexp::get(a[1].as_str(), flags)?;
    let mut n = 0;
    all_matches(&regexp, text, offset(text, start), |_| {
        n += 1;
        Ok(true)
    })?;
    Ok(Datum::Int4(n))
}

fn subexpression(v: Option<&Datum>) -> Result<usize> {
    let n = v.map_or(0, Datum::as_i32);
    usize::try_from(n).map_err(|_| err!(INVALID_PARAMETER_VALUE, "invalid value for parameter \"subexpr\": {n}"))
}

/// Match number `n` from a position; the range of one of its groups (0: the whole).
fn nth_match(a: &[Datum], flags: Flags, start: i32, n: i32, group: usize) -> Result<Option<std::ops::Range<usize>>> {
    let text = a[0].as_str();
    let regexp = Regexp::get(a[1].as_str(), flags)?;
    if group > regexp.groups {
        return Ok(None);
    }
    let (mut seen, mut found) = (0, None);
    all_matches(&regexp, text, offset(text, start), |captures| {
        seen += 1;
        if seen == n {
            found = captures[group].clone();
        }
        Ok(seen < n)
    })?;
    Ok(found)
}

/// Arguments: text, pattern, start, n, endoption, flags, subexpr.
fn instr(call: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    check_collation(call)?;
    let start = a.get(2).map_or(Ok(1), |v| positive(v, "start"))?;
    let n = a.get(3).map_or(Ok(1), |v| positive(v, "n"))?;
    let end = a.get(4).map_or(0, Datum::as_i32);
    if end != 0 && end != 1 {
        return Err(err!(INVALID_PARAMETER_VALUE, "invalid value for parameter \"endoption\": {end}"));
    }
    let group = subexpression(a.get(6))?;
    let flags = a.get(5).map_or(Ok(Flags::default()), |v| flags_without_global(v, "regexp_instr", None))?;
    let found = nth_match(a, flags, start, n, group)?;
    let text = a[0].as_str();
    let position = |at: usize| super::functions::length(&text[..at]) as i32 + 1;
    Ok(Datum::Int4(found.map_or(0, |r| position(if end == 1 { r.end } else { r.start }))))
}

/// Arguments: text, pattern, start, n, flags, subexpr.
fn substr(call: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    check_collation(call)?;
    let start = a.get(2).map_or(Ok(1), |v| positive(v, "start"))?;
    let n = a.get(3).map_or(Ok(1), |v| positive(v, "n"))?;
    let group = subexpression(a.get(5))?;
    let flags = a.get(4).map_or(Ok(Flags::default()), |v| flags_without_global(v, "regexp_substr", None))?;
    let found = nth_match(a, flags, start, n, group)?;
    Ok(part(a[0].as_str(), found.as_ref()))
}
