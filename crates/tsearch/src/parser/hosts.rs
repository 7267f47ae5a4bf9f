//! Hosts, URLs and email addresses.

use melba_types::{Result, limits};

use super::{Char, Found, Mode, Parser, TokenType};

/// Where in a host a character is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HostPlace {
    /// In a label before the last point, or in one with digits.
    Label,
    /// Behind a hyphen or underscore.
    LabelStart,
    /// Behind a point.
    Domain,
    /// Behind the first letter of a domain.
    DomainSecond,
    /// In a domain of letters, where a host may end.
    DomainEnd,
}

impl Parser<'_> {
    /// In a label that has a digit.
    pub(super) fn host(&mut self, at: usize) -> Result<Option<Found>> {
        self.host_from(at, HostPlace::Label)
    }

    /// Behind a hyphen or underscore in a label.
    pub(super) fn host_next(&mut self, at: usize) -> Result<Option<Found>> {
        self.host_from(at, HostPlace::LabelStart)
    }

    /// Behind a point.
    pub(super) fn host_domain(&mut self, at: usize) -> Result<Option<Found>> {
        self.host_from(at, HostPlace::Domain)
    }

    /// A host ends behind a domain of two letters or more; if what follows is no part of it, there.
    fn host_from(&mut self, mut at: usize, mut place: HostPlace) -> Result<Option<Found>> {
        let mut end = None;
        loop {
            let Some(c) = self.at(at) else {
                return Ok(if place == HostPlace::DomainEnd {
                    Some(Found::new(TokenType::Host, at))
                } else {
                    self.host_end(end)
                });
            };
            if place == HostPlace::DomainEnd && !c.is_ascii_letter() && !c.is_digit() {
                end = Some(at);
            }
            let next = match place {
                HostPlace::DomainEnd if c.is(':') => return Ok(self.port(at + 1).or_else(|| self.host_end(end))),
                HostPlace::DomainSecond | HostPlace::DomainEnd if c.is_ascii_letter() => Some(HostPlace::DomainEnd),
                HostPlace::Domain if c.is_ascii_letter() => Some(HostPlace::DomainSecond),
                _ if c.is_digit() || c.is_ascii_letter() => Some(HostPlace::Label),
                HostPlace::Domain | HostPlace::LabelStart => None,
                _ => match c.c {
                    '-' | '_' => Some(HostPlace::LabelStart),
                    '.' => Some(HostPlace::Domain),
                    '@' => match self.email(at + 1)? {
                        Some(email) => return Ok(Some(email)),
                        None => None,
                    },
                    _ => None,
                },
            };
            match next {
                Some(next) => (at, place) = (at + 1, next),
                None => return Ok(self.host_end(end)),
            }
        }
    }

    /// The host that ends at a place, or the URL that it begins.
    fn host_end(&mut self, end: Option<usize>) -> Option<Found> {
        let end = end?;
        if std::mem::take(&mut self.wants_host) {
            return Some(Found { mode: Mode::UrlPath, ..Found::new(TokenType::Host, end) });
        }
        if self.holds(end, |c| c.is('/')) && self.holds(end + 1, Char::is_url) {
            // The host and the path are tokens, too.
            self.wants_host = true;
            let url_end = self.url_chars(end + 1);
            return Some(Found { ty: TokenType::Url, end: url_end, next: self.start, mode: Mode::Base });
        }
        Some(Found::new(TokenType::Host, end))
    }

    fn port(&mut self, at: usize) -> Option<Found> {
        let end = self.skip(at, Char::is_digit);
        if end == at {
            return None;
        }
        if end == self.text.len() { Some(Found::new(TokenType::Host, end)) } else { self.host_end(Some(end)) }
    }

    /// Behind the sign of an address: a host.
    pub(super) fn email(&mut self, at: usize) -> Result<Option<Found>> {
        limits::check_stack()?;
        if std::mem::take(&mut self.wants_host) || at >= self.text.len() {
            return Ok(None);
        }
        let mut host = Parser { wants_host: true, ..Parser::new(&self.text[at..]) };
        let found = host.next()?.filter(|token| token.ty == TokenType::Host);
        Ok(found.map(|token| Found::new(TokenType::Email, at + token.text.len())))
    }
}
