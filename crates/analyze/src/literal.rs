//! Constants of the text that are analyzed as parameters, so that the result serves texts with other constants.

use melba_types::{Oid, oids};
use pg_query::protobuf as pb;
use pg_query::protobuf::a_const::Val;

use melba_parse::literals::{Literal, LiteralClass};

/// How a literal became a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiteralUse {
    Plain,
    /// The grammar took the minus sign before it into the constant.
    Negated,
}

/// The literals of the statement under analysis, and their expressions; empty for ordinary analysis.
#[derive(Default)]
pub(super) struct Literals<'a> {
    all: &'a [Literal],
    uses: Vec<Option<LiteralUse>>,
    refused: bool,
}

/// The parameters' types by class; those of strings are inferred.
pub(super) fn types(literals: &[Literal]) -> Vec<Oid> {
    let of = |l: &Literal| match l.class {
        LiteralClass::Int4 => oids::INT4,
        LiteralClass::Int8 => oids::INT8,
        LiteralClass::Numeric => oids::NUMERIC,
        LiteralClass::String => Oid::INVALID,
    };
    literals.iter().map(of).collect()
}

impl<'a> Literals<'a> {
    pub fn new(all: &'a [Literal]) -> Literals<'a> {
        Literals { all, uses: vec![None; all.len()], refused: false }
    }

    /// The number of the parameter that stands for a constant, if one does.
    pub fn parameter(&mut self, constant: &pb::AConst) -> Option<i32> {
        let at = usize::try_from(constant.location).ok()?;
        let sign = |l: &Literal| {
            if l.range.start == at {
                return Some(LiteralUse::Plain);
            }
            (l.minus == Some(at)).then_some(LiteralUse::Negated)
        };
        let (i, literal, used) = self.all.iter().enumerate().find_map(|(i, l)| Some((i, l, sign(l)?)))?;
        let negative = used == LiteralUse::Negated;
        let matches = match (literal.class, &constant.val) {
            (LiteralClass::Int4, Some(Val::Ival(v))) => {
                if negative {
                    v.ival <= 0
                } else {
                    v.ival >= 0
                }
            }
            (LiteralClass::Int8 | LiteralClass::Numeric, Some(Val::Fval(v))) => v.fval.starts_with('-') == negative,
            (LiteralClass::String, Some(Val::Sval(_))) => !negative,
            _ => false,
        };
        if !matches || self.uses[i].is_some_and(|before| before != used) {
            self.refused = true;
            return None;
        }
        self.uses[i] = Some(used);
        Some(i as i32 + 1)
    }

    /// With parameters the statement would have another meaning.
    pub fn refuse(&mut self) {
        self.refused = true;
    }

    /// How each literal was used; `None` unless all were.
    pub fn uses(self) -> Option<Vec<LiteralUse>> {
        if self.refused { None } else { self.uses.into_iter().collect() }
    }
}
