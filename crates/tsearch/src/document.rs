//! The lexemes of documents: tokens are given to the dictionaries of a configuration.

use melba_fmgr::Session;
use melba_types::tsvector::{LEXEME_BYTES_MAX, LexemePosition, PLACE_MAX, POSITIONS_MAX, TsVectorBuilder};
use melba_types::{Datum, DbError, Result, Severity, SqlState, sort_by};

use crate::config::Config;
use crate::dictionary::Lexized;
use crate::parser::{Parser, Token};
use crate::vector_io::finish;

/// The lexemes of texts, in their order.
#[derive(Default)]
pub struct Document {
    texts: String,
    words: Vec<DocumentWord>,
    /// The place of the last lexeme or stop word.
    place: u32,
}

#[derive(Clone, Copy)]
struct DocumentWord {
    start: usize,
    end: usize,
    place: u32,
}

/// What the dictionaries make of a token.
pub enum Normalized<'a> {
    /// None of them knows it.
    Unknown,
    StopWord,
    Lexeme(std::borrow::Cow<'a, str>),
}

/// Asks the dictionaries of a token's type in turn.
pub fn normalize<'a>(config: &Config, token: Token<'a>) -> Normalized<'a> {
    for dictionary in config.dictionaries(token.ty) {
        match dictionary.lexize(token.text) {
            Lexized::Unknown => {}
            Lexized::StopWord => return Normalized::StopWord,
            Lexized::Lexeme(lexeme) => return Normalized::Lexeme(lexeme),
        }
    }
    Normalized::Unknown
}

/// Whether a token or lexeme is short enough; if not, the client is told.
pub fn is_indexed(session: &dyn Session, is_short: bool) -> bool {
    if !is_short {
        let notice = DbError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "word is too long to be indexed");
        let detail = format!("Words longer than {LEXEME_BYTES_MAX} characters are ignored.");
        session.notice(notice.severity(Severity::Notice).detail(detail));
    }
    is_short
}

impl Document {
    /// Appends the lexemes of a text.
    pub fn add(&mut self, session: &dyn Session, config: &Config, text: &str) -> Result<()> {
        let mut parser = Parser::new(text);
        while let Some(token) = parser.next()? {
            if !is_indexed(session, token.text.len() < LEXEME_BYTES_MAX) {
                continue;
            }
            match normalize(config, token) {
                Normalized::Unknown => {}
                Normalized::StopWord => self.place += 1,
                Normalized::Lexeme(lexeme) => {
                    self.place += 1;
                    if is_indexed(session, lexeme.len() <= LEXEME_BYTES_MAX) {
                        let start = self.texts.len();
                        self.texts.push_str(&lexeme);
                        let place = self.place.min(u32::from(PLACE_MAX));
                        self.words.push(DocumentWord { start, end: self.texts.len(), place });
                    }
                }
            }
        }
        Ok(())
    }

    /// Number of lexemes, with those that repeat.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Leaves a place free, so that no phrase goes on behind it.
    pub fn skip_place(&mut self) {
        self.place += 1;
    }

    /// The lexemes with their places.
    pub fn words(&self) -> impl Iterator<Item = (&str, u32)> {
        self.words.iter().map(|word| (&self.texts[word.start..word.end], word.place))
    }

    /// The tsvector of the lexemes.
    ///
    /// # Errors
    /// 54000 when it is too long.
    pub fn into_vector(mut self) -> Result<Datum> {
        let texts = self.texts.as_bytes();
        let text = |word: &DocumentWord| &texts[word.start..word.end];
        sort_by(&mut self.words, |a, b| text(a).cmp(text(b)).then(a.place.cmp(&b.place)))?;
        let mut builder = TsVectorBuilder::default();
        for same in self.words.chunk_by(|a, b| text(a) == text(b)) {
            let mut last = 0;
            let distinct = same.iter().filter(|word| std::mem::replace(&mut last, word.place) != word.place);
            builder.push(text(&same[0]), distinct.take(POSITIONS_MAX - 1).map(|word| LexemePosition::new(word.place, 0)));
        }
        finish(builder)
    }
}
