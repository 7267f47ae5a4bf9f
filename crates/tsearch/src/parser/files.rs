//! Names of files and paths.

use super::{Char, Found, Parser, TokenType};

fn begins_name(c: Char) -> bool {
    c.is_ascii_letter() || c.is_digit() || c.is('_')
}

/// Where in a path, before a name, a character is.
#[derive(Clone, Copy)]
enum PathPlace {
    Slash,
    Tilde,
    /// Behind the point of a path, of which a name may follow.
    Dot,
    /// Behind the point that begins a token.
    FirstDot,
    DotDot,
}

/// What a path leads to.
enum Path {
    Name(usize),
    End(Option<Found>),
}

impl Parser<'_> {
    pub(super) fn file_behind_slash(&self, at: usize) -> Option<Found> {
        self.file(at, PathPlace::Slash)
    }

    pub(super) fn file_behind_tilde(&self, at: usize) -> Option<Found> {
        self.file(at, PathPlace::Tilde)
    }

    pub(super) fn file_behind_dot(&self, at: usize) -> Option<Found> {
        self.file(at, PathPlace::FirstDot)
    }

    fn file(&self, at: usize, place: PathPlace) -> Option<Found> {
        match self.path(at, place) {
            Path::Name(at) => Some(self.name(at)),
            Path::End(found) => found,
        }
    }

    /// Behind a point in a name: more of the name.
    pub(super) fn file_next(&self, at: usize) -> Option<Found> {
        self.holds(at, begins_name).then(|| self.name(at))
    }

    /// From a place before a name to the name, or to the end of the path, which may be behind `..`.
    fn path(&self, mut at: usize, mut place: PathPlace) -> Path {
        let mut end = None;
        loop {
            let Some(c) = self.at(at) else {
                return Path::End(if matches!(place, PathPlace::DotDot) { Some(Found::new(TokenType::File, at)) } else { end });
            };
            place = match (place, c.c) {
                (PathPlace::Slash | PathPlace::Tilde | PathPlace::Dot, _) if begins_name(c) => {
                    return Path::Name(at);
                }
                (PathPlace::Slash, '.') => PathPlace::Dot,
                (PathPlace::Slash, '~') => PathPlace::Tilde,
                (PathPlace::Tilde | PathPlace::Dot | PathPlace::FirstDot, '/') => PathPlace::Slash,
                (PathPlace::Dot | PathPlace::FirstDot, '.') => PathPlace::DotDot,
                (PathPlace::DotDot, '/') => {
                    end = Some(Found::new(TokenType::File, at));
                    PathPlace::Slash
                }
                (PathPlace::DotDot, _) if c.is_space() => return Path::End(Some(Found::new(TokenType::File, at))),
                _ => return Path::End(end),
            };
            at += c.bytes;
        }
    }

    /// A name and what follows it in its path.
    fn name(&self, mut at: usize) -> Found {
        loop {
            at = self.skip(at, |c| begins_name(c) || c.is('-'));
            let end = Found::new(TokenType::File, at);
            match self.at(at).map(|c| c.c) {
                Some('.') if self.holds(at + 1, begins_name) => at += 1,
                Some('/') => match self.path(at + 1, PathPlace::Slash) {
                    Path::Name(next) => at = next,
                    Path::End(found) => return found.unwrap_or(end),
                },
                _ => return end,
            }
        }
    }
}
