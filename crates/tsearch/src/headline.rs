//! ts_headline: the part of a document that a query is about, with its words marked.
//!
//! The choice is PostgreSQL's: covers, which are the shortest parts with all words of the query, are widened or cut to between
//! MinWords and MaxWords words; the best one, or with MaxFragments the best ones, are shown.

mod fragments;
mod options;
mod single;

use std::sync::Arc;

use melba_fmgr::{ScalarFn, Session};
use melba_types::tsquery::{TsOperand, TsQuery};
use melba_types::tsvector::{LEXEME_BYTES_MAX, PLACE_MAX};
use melba_types::{Datum, Oid, Result, limits};

use crate::config::{Config, current};
use crate::conversion::config;
use crate::document::{Normalized, is_indexed, normalize};
use crate::matching::{Match, Places, Searched, locations, matches, number_of};
use crate::parser::{Parser, TokenType};
use options::Options;

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("ts_headline", |c, a| headline(c.session, current(c.session)?, a)),
    ("ts_headline_opt", |c, a| headline(c.session, current(c.session)?, a)),
    ("ts_headline_byid", |c, a| headline(c.session, Oid(a[0].as_oid()), &a[1..])),
    ("ts_headline_byid_opt", |c, a| headline(c.session, Oid(a[0].as_oid()), &a[1..])),
];

/// `args`: a document, a query, and maybe options.
fn headline(session: &dyn Session, of: Oid, args: &[Datum]) -> Result<Datum> {
    let headline = Headline::new(session, of, &args[1], args.get(2))?;
    headline.of(args[0].as_str()).map(Datum::text)
}

/// Makes headlines of documents for a query.
pub struct Headline<'a> {
    session: &'a dyn Session,
    config: Arc<Config>,
    query: Option<TsQuery<'a>>,
    operands: Vec<TsOperand<'a>>,
    /// Read with the first document, as their errors are in PostgreSQL.
    options: Option<&'a str>,
}

/// A token of a document, or one more operand that it matches.
struct HeadlineWord<'a> {
    ty: TokenType,
    text: &'a str,
    /// Of its lexeme among all lexemes.
    place: u32,
    /// The operand of the query that it matches, by its number.
    operand: Option<usize>,
    /// It repeats the word before it, with another operand.
    repeated: bool,
    shown: bool,
    selected: bool,
}

impl HeadlineWord<'_> {
    fn is_interesting(&self) -> bool {
        self.operand.is_some() && !self.repeated
    }

    /// Blanks, tags, and what is repeated by its parts do not count.
    fn counts(&self) -> bool {
        !matches!(self.ty, TokenType::Blank | TokenType::Tag) && !self.has_parts()
    }

    fn has_parts(&self) -> bool {
        matches!(self.ty, TokenType::Url | TokenType::NumHyphenated | TokenType::AsciiHyphenated | TokenType::Hyphenated)
    }

    /// Whether no headline should begin or end with it.
    fn is_bad_end(&self, options: &Options) -> bool {
        let is_number = matches!(
            self.ty,
            TokenType::Scientific | TokenType::Version | TokenType::Float | TokenType::Int | TokenType::UnsignedInt
        );
        let is_markup = matches!(self.ty, TokenType::Protocol | TokenType::Entity);
        let is_short = self.text.len() <= options.short_word;
        (!self.counts() || is_number || is_markup || is_short) && !self.is_interesting()
    }
}

/// Some words of a document as a document.
struct Part<'a> {
    words: &'a [HeadlineWord<'a>],
    operands: &'a [TsOperand<'a>],
}

impl Searched for Part<'_> {
    fn has(&self, operand: TsOperand<'_>) -> Match {
        let number = number_of(self.operands, operand);
        let has = number.is_some() && self.words.iter().any(|word| word.operand == number);
        if has { Match::Yes } else { Match::No }
    }

    fn places(&self, operand: TsOperand<'_>, places: &mut Vec<u32>) -> Match {
        let Some(number) = number_of(self.operands, operand) else { return Match::No };
        for word in self.words.iter().filter(|word| word.operand == Some(number)) {
            if places.last().is_none_or(|last| *last < word.place) {
                places.push(word.place);
            }
        }
        if places.is_empty() { Match::No } else { Match::Yes }
    }
}

impl<'a> Headline<'a> {
    /// # Errors
    /// Those of the configuration.
    pub fn new(session: &'a dyn Session, of: Oid, query: &'a Datum, options: Option<&'a Datum>) -> Result<Headline<'a>> {
        let query = TsQuery::new(query.as_bytes());
        Ok(Headline {
            session,
            config: config(session, of)?,
            query,
            operands: query.into_iter().flat_map(TsQuery::operands).collect(),
            options: options.map(|options| options.as_str()),
        })
    }

    /// The headline of a document.
    ///
    /// # Errors
    /// 22023 for options that do not exist or contradict each other.
    pub fn of(&self, text: &str) -> Result<String> {
        let mut words = self.words(text)?;
        let options = Options::new(self.options.unwrap_or(""))?;
        let whole = Part { words: &words, operands: &self.operands };
        let found = match self.query {
            Some(query) => locations(query, &whole)?.unwrap_or_default(),
            None => Vec::new(),
        };
        let mut covers = Covers { headline: self, locations: &found, next: 0 };
        if options.fragments_max == 0 {
            single::choose(&mut words, &mut covers, &options)?;
        } else {
            fragments::choose(&mut words, &mut covers, &options)?;
        }
        options.check_lengths()?;
        written(&words, &options)
    }

    /// The tokens of a document with the operands that they match.
    fn words<'t>(&self, text: &'t str) -> Result<Vec<HeadlineWord<'t>>> {
        let (mut words, mut place) = (Vec::new(), 0);
        let mut parser = Parser::new(text);
        while let Some(token) = parser.next()? {
            if !is_indexed(self.session, token.text.len() < LEXEME_BYTES_MAX) {
                continue;
            }
            let word = HeadlineWord {
                ty: token.ty,
                text: token.text,
                place: 0,
                operand: None,
                repeated: false,
                shown: false,
                selected: false,
            };
            push(&mut words, word)?;
            match normalize(&self.config, token) {
                Normalized::Unknown => {}
                Normalized::StopWord => place += 1,
                Normalized::Lexeme(lexeme) => {
                    place += 1;
                    self.match_operands(&mut words, &lexeme, place)?;
                }
            }
        }
        Ok(words)
    }

    fn match_operands(&self, words: &mut Vec<HeadlineWord<'_>>, lexeme: &str, place: u32) -> Result<()> {
        let Some(word) = words.last_mut() else { return Ok(()) };
        word.place = place.min(u32::from(PLACE_MAX));
        let (ty, text, place) = (word.ty, word.text, word.place);
        for (number, operand) in self.operands.iter().enumerate() {
            limits::tick()?;
            let is_match = match operand.prefix {
                true => lexeme.as_bytes().starts_with(operand.text),
                false => lexeme.as_bytes() == operand.text,
            };
            match words.last_mut() {
                Some(word) if is_match && word.operand.is_none() => word.operand = Some(number),
                Some(_) if is_match => {
                    let operand = Some(number);
                    push(words, HeadlineWord { ty, text, place, operand, repeated: true, shown: false, selected: false })?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Appends a word, and checks the size of a list that is to grow.
fn push<'a>(words: &mut Vec<HeadlineWord<'a>>, word: HeadlineWord<'a>) -> Result<()> {
    if words.len() == words.capacity() {
        limits::check_request(2 * size_of_val(&words[..]))?;
    }
    words.push(word);
    Ok(())
}

/// A part of a document by its first and last word.
type Cover = (usize, usize);

/// The covers of a document in their order.
struct Covers<'a> {
    headline: &'a Headline<'a>,
    locations: &'a [Places],
    /// The place where the next one is searched.
    next: u32,
}

impl Covers<'_> {
    /// The next cover: from the last words of the query before the first place by which all were there.
    fn next(&mut self, words: &[HeadlineWord<'_>]) -> Result<Option<Cover>> {
        let Some(query) = self.headline.query else { return Ok(None) };
        let mut from = self.next;
        loop {
            limits::tick()?;
            let firsts = self.locations.iter().map(|places| places.at.iter().copied().find(|at| *at >= from));
            let Some(firsts) = firsts.collect::<Option<Vec<u32>>>() else { return Ok(None) };
            let Some(end) = firsts.into_iter().max() else { return Ok(None) };
            let starts = self.locations.iter().map(|places| {
                let starts = places.at.iter().rev().map(|at| i64::from(*at) - i64::from(places.width));
                starts.into_iter().find(|start| *start <= i64::from(end)).unwrap_or(-1)
            });
            let start = starts.min().unwrap_or(0).max(i64::from(from)) as u32;
            if start <= end
                && let Some((first, last)) = between(words, start, end)
            {
                let part = Part { words: &words[first..=last], operands: &self.headline.operands };
                if matches(query, &part)? {
                    self.next = start + 1;
                    return Ok(Some((first, last)));
                }
            }
            from = start + 1;
        }
    }
}

/// The first and last words of a query between two places.
fn between(words: &[HeadlineWord<'_>], start: u32, end: u32) -> Option<Cover> {
    let (mut first, mut last) = (None, None);
    for (at, word) in words.iter().enumerate().filter(|(_, word)| word.operand.is_some()) {
        if first.is_none() && word.place >= start {
            first = Some(at);
        }
        if word.place > end {
            break;
        }
        last = Some(at);
    }
    let (first, last) = (first?, last?);
    (first <= last).then_some((first, last))
}

/// Shows words, and selects those of the query among them.
fn show(words: &mut [HeadlineWord<'_>], (first, last): Cover) {
    for word in &mut words[first..=last] {
        word.selected = word.operand.is_some();
        word.shown = !word.repeated;
    }
}

/// The first words, when nothing else is to be shown.
fn beginning(words: &[HeadlineWord<'_>], options: &Options) -> Option<Cover> {
    let (mut count, mut last) = (0, None);
    for (at, word) in words.iter().enumerate() {
        if count >= options.words_min {
            break;
        }
        count += i32::from(word.counts());
        last = Some(at);
    }
    last.map(|last| (0, last))
}

fn written(words: &[HeadlineWord<'_>], options: &Options) -> Result<String> {
    let mut out = String::new();
    let (mut fragments, mut is_in_fragment) = (0, false);
    for word in words.iter().filter(|word| !word.repeated) {
        limits::check_length(out.len())?;
        if !word.shown {
            is_in_fragment = false;
            continue;
        }
        if !is_in_fragment {
            (fragments, is_in_fragment) = (fragments + 1, true);
            if fragments > 1 {
                out.push_str(&options.delimiter);
            }
        }
        // What has parts is shown by them. Tags are blanks, unless all is shown.
        if word.has_parts() {
            continue;
        }
        if word.ty == TokenType::Tag && !options.shows_all {
            out.push(' ');
        } else if word.selected {
            out.extend([&*options.start, word.text, &*options.stop]);
        } else {
            out.push_str(word.text);
        }
    }
    limits::check_length(out.len())?;
    Ok(out)
}
