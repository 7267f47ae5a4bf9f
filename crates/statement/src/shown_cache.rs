//! Expressions that mention no column, so that their printed form does not depend on their table: most of all defaults, which
//! many tables share.

use std::sync::Arc;

use hashbrown::HashMap;
use melba_catalog::Catalog;
use melba_types::Oid;

/// Most expressions that a session keeps.
const KEPT_MAX: usize = 1000;

/// The context of a printed text: the catalog, the version of the session's settings, the search path.
pub(super) type Surroundings = (Arc<Catalog>, u64, Arc<[Oid]>);

#[derive(Default)]
pub struct ShownCache {
    /// Of all texts that are kept.
    surroundings: Option<Surroundings>,
    /// By the stored text and whether the shown one is pretty.
    texts: HashMap<(Box<str>, bool), Box<str>>,
}

impl ShownCache {
    fn is_in(&self, surroundings: &Surroundings) -> bool {
        let same =
            |own: &Surroundings| Arc::ptr_eq(&own.0, &surroundings.0) && own.1 == surroundings.1 && own.2 == surroundings.2;
        self.surroundings.as_ref().is_some_and(same)
    }

    /// The printed form of a stored text, if it is known.
    pub fn get(&self, surroundings: &Surroundings, text: &str, pretty: bool) -> Option<String> {
        let known = self.is_in(surroundings).then(|| self.texts.get(&(Box::from(text), pretty)))?;
        known.map(|shown| shown.to_string())
    }

    /// Keeps a text, and forgets those of other surroundings.
    pub fn put(&mut self, surroundings: Surroundings, text: &str, pretty: bool, shown: &str) {
        if !self.is_in(&surroundings) {
            self.texts.clear();
            self.surroundings = Some(surroundings);
        }
        if self.texts.len() < KEPT_MAX {
            self.texts.insert((text.into(), pretty), shown.into());
        }
    }
}
