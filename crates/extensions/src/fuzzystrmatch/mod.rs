//! fuzzystrmatch: how alike texts are by their letters or by their sound in English.
//!
//! The codes of sounds know the letters of ASCII only; bytes of other characters are no letters (daitch_mokotoff knows more).

mod daitch_mokotoff;
mod double_metaphone;
mod levenshtein;
mod metaphone;
mod soundex;

use melba_fmgr::ScalarFn;
use melba_functions::array::functions::one_dimensional;
use melba_types::{Datum, oids};

use daitch_mokotoff::daitch_mokotoff;
use double_metaphone::double_metaphone;
use levenshtein::{Costs, distance, distance_within};
use metaphone::metaphone;
use soundex::{difference, soundex};

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("levenshtein", |_, a| distance(a[0].as_str(), a[1].as_str(), Costs::EQUAL)),
    ("levenshtein_with_costs", |_, a| distance(a[0].as_str(), a[1].as_str(), Costs::of(&a[2..]))),
    ("levenshtein_less_equal", |_, a| distance_within(a[0].as_str(), a[1].as_str(), Costs::EQUAL, &a[2])),
    ("levenshtein_less_equal_with_costs", |_, a| distance_within(a[0].as_str(), a[1].as_str(), Costs::of(&a[2..]), &a[5])),
    ("soundex", |_, a| {
        Ok(Datum::text(soundex(a[0].as_str()).map_or(String::new(), |code| code.iter().copied().map(char::from).collect())))
    }),
    ("difference", |_, a| Ok(Datum::Int4(difference(a[0].as_str(), a[1].as_str())))),
    ("metaphone", |_, a| metaphone(a[0].as_str(), &a[1])),
    ("dmetaphone", |_, a| Ok(Datum::text(double_metaphone(a[0].as_str()).0))),
    ("dmetaphone_alt", |_, a| Ok(Datum::text(double_metaphone(a[0].as_str()).1))),
    ("daitch_mokotoff", |_, a| {
        let codes = daitch_mokotoff(a[0].as_str())?;
        Ok(codes.map_or(Datum::Null, |codes| one_dimensional(oids::TEXT, codes.into_iter().map(Datum::text).collect())))
    }),
];
