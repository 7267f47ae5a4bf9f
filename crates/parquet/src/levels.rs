//! Arrays as repetition and definition levels.
//!
//! A column of arrays of `n` dimensions is `n` lists in one another, each list and the element optional: definition level 0 is a
//! null array, 1 an empty one, `2n` a null element and `2n + 1` a value. Files of others may lack the optional parts.

use std::sync::Arc;

use melba_types::{Array, ArrayDim, Datum, DbError, Oid, Result, array, bail, err, limits};

/// Values of an array at most: read, each takes up to a hundred bytes.
pub(crate) const VALUES_MAX: usize = 1 << 23;

/// The error of an array with more of them.
pub(crate) fn too_long() -> DbError {
    err!(PROGRAM_LIMIT_EXCEEDED, "an array in a Parquet file has more than {VALUES_MAX} values")
}

/// The levels of a column.
#[derive(Default)]
pub(crate) struct Levels {
    pub definition: Vec<i16>,
    pub repetition: Vec<i16>,
}

impl Levels {
    pub fn clear(&mut self) {
        self.definition.clear();
        self.repetition.clear();
    }

    pub fn push_null(&mut self) {
        self.definition.push(0);
        self.repetition.push(0);
    }

    /// Appends an array's levels; its elements are the caller's.
    ///
    /// # Errors
    /// 0A000 when it has other dimensions than the column, or a lower bound that is not 1.
    pub fn push_array(&mut self, array: &Array, depth: usize) -> Result<()> {
        if array.elements.is_empty() {
            self.definition.push(1);
            self.repetition.push(0);
            return Ok(());
        }
        if array.dims.len() != depth {
            let was = array.dims.len();
            return Err(err!(FEATURE_NOT_SUPPORTED, "arrays of {depth} and of {was} dimensions cannot be in one Parquet column")
                .hint("Cast the arrays to text."));
        }
        if array.dims.iter().any(|dim| dim.lower_bound != 1) {
            return Err(err!(FEATURE_NOT_SUPPORTED, "Parquet has no arrays with a lower bound other than 1")
                .hint("Cast the arrays to text."));
        }
        if array.elements.len() > VALUES_MAX {
            return Err(too_long().hint("Cast the arrays to text."));
        }
        for (i, element) in array.elements.iter().enumerate() {
            self.definition.push(if element.is_null() { 2 * depth as i16 } else { 2 * depth as i16 + 1 });
            self.repetition.push(if i == 0 { 0 } else { repetition(i, &array.dims) });
        }
        Ok(())
    }
}

/// The level at which an element other than the first continues: all dimensions inside begin anew.
fn repetition(at: usize, dims: &[ArrayDim]) -> i16 {
    let (mut level, mut run) = (dims.len() as i16, 1);
    for dim in dims[1..].iter().rev() {
        run *= dim.length as usize;
        if !at.is_multiple_of(run) {
            break;
        }
        level -= 1;
    }
    level
}

/// The definition levels at which the lists of a file's column are there, and have an element: outermost first.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Nesting {
    /// From this level on the list is not null.
    pub present: Vec<i16>,
    /// From this level on it has an element.
    pub filled: Vec<i16>,
    /// From this level on the element is not null.
    pub value: i16,
}

/// A list or an element, while an array is put together.
enum Part {
    Null,
    List(Vec<Part>),
    Value(Datum),
}

/// Reads the arrays of records from levels and from the values of elements, one for each level `value`.
pub(crate) struct Assembly<'a> {
    pub nesting: &'a Nesting,
    pub levels: &'a Levels,
    pub element_type: Oid,
}

impl Assembly<'_> {
    /// The arrays, in order.
    ///
    /// # Errors
    /// 2202E with the number of the record for one whose lists are no rectangle; 22P04 for levels that are none.
    pub fn arrays(&self, mut value: impl FnMut() -> Datum) -> Result<Vec<Datum>, (usize, DbError)> {
        let mut out = Vec::new();
        let mut at = 0;
        let mut ticker = limits::Ticker::new();
        while at < self.levels.definition.len() {
            let record = out.len();
            let later = self.levels.repetition[at + 1..].iter().position(|level| *level == 0);
            let end = later.map_or(self.levels.definition.len(), |after| at + 1 + after);
            let mut root = Part::Null;
            for i in at..end {
                ticker.step().map_err(|e| (record, e))?;
                let (definition, repetition) = (self.levels.definition[i], self.levels.repetition[i]);
                self.add(&mut root, definition, repetition, &mut value).map_err(|e| (record, e))?;
            }
            out.push(self.array(root).map_err(|e| (record, e))?);
            at = end;
        }
        Ok(out)
    }

    /// Adds what one pair of levels stands for.
    fn add(&self, root: &mut Part, definition: i16, repetition: i16, value: &mut impl FnMut() -> Datum) -> Result<()> {
        let mut part = root;
        for list in 0..self.nesting.filled.len() {
            if definition < self.nesting.present[list] {
                *part = Part::Null;
                return Ok(());
            }
            // A list below the level of repetition begins here; one above goes on.
            if !matches!(part, Part::List(_)) {
                *part = Part::List(Vec::new());
            }
            let Part::List(items) = part else { bail!(INTERNAL_ERROR, "a list that is none") };
            if definition < self.nesting.filled[list] {
                return Ok(());
            }
            if repetition as usize <= list + 1 {
                items.push(Part::Null);
            }
            part = items
                .last_mut()
                .ok_or_else(|| err!(BAD_COPY_FILE_FORMAT, "invalid Parquet file: a list that goes on without a beginning"))?;
        }
        *part = if definition < self.nesting.value { Part::Null } else { Part::Value(value()) };
        Ok(())
    }

    fn array(&self, root: Part) -> Result<Datum> {
        if matches!(root, Part::Null) {
            return Ok(Datum::Null);
        }
        let (mut lengths, mut elements) = (vec![None; self.nesting.filled.len()], Vec::new());
        collect(root, 0, &mut lengths, &mut elements)?;
        let lengths: Option<Vec<i32>> = lengths.into_iter().map(|length| length.filter(|n| *n > 0)).collect();
        let dims = lengths.unwrap_or_default().into_iter().map(|length| ArrayDim { length, lower_bound: 1 }).collect::<Vec<_>>();
        if dims.len() > array::DIMENSIONS_MAX {
            bail!(
                PROGRAM_LIMIT_EXCEEDED,
                "number of array dimensions ({}) exceeds the maximum allowed ({})",
                dims.len(),
                array::DIMENSIONS_MAX
            );
        }
        array::element_count(&dims)?;
        Ok(Datum::Array(Arc::new(Array { element_type: self.element_type, dims, elements })))
    }
}

/// Notes the length of a list, and collects the elements in it.
fn collect(part: Part, level: usize, lengths: &mut [Option<i32>], elements: &mut Vec<Datum>) -> Result<()> {
    let ragged = || err!(ARRAY_SUBSCRIPT_ERROR, "multidimensional arrays must have sub-arrays with matching dimensions");
    match (part, lengths.get_mut(level)) {
        (Part::Value(value), None) => elements.push(value),
        (Part::Null, None) => elements.push(Datum::Null),
        (Part::List(parts), Some(length)) => {
            let count = i32::try_from(parts.len()).map_err(|_| ragged())?;
            if length.is_some_and(|known| known != count) {
                return Err(ragged());
            }
            *length = Some(count);
            parts.into_iter().try_for_each(|part| collect(part, level + 1, lengths, elements))?;
        }
        // An array has no null in the place of a list.
        _ => return Err(ragged()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(lengths: &[i32]) -> Array {
        let dims: Vec<ArrayDim> = lengths.iter().map(|length| ArrayDim { length: *length, lower_bound: 1 }).collect();
        let count = array::element_count(&dims).unwrap();
        Array { element_type: melba_types::oids::INT4, dims, elements: (0..count as i32).map(Datum::Int4).collect() }
    }

    #[test]
    fn levels_are_those_of_the_format() {
        let mut levels = Levels::default();
        levels.push_array(&numbers(&[2, 3]), 2).unwrap();
        levels.push_null();
        levels.push_array(&numbers(&[]), 2).unwrap();
        assert_eq!(levels.repetition, [0, 2, 2, 1, 2, 2, 0, 0]);
        assert_eq!(levels.definition, [5, 5, 5, 5, 5, 5, 0, 1]);
        let mut deep = Levels::default();
        deep.push_array(&numbers(&[2, 1, 2]), 3).unwrap();
        assert_eq!(deep.repetition, [0, 3, 1, 3]);
        assert!(levels.push_array(&numbers(&[2]), 2).is_err());
    }

    #[test]
    fn arrays_come_back_and_ragged_ones_are_refused() {
        let nesting = Nesting { present: vec![1, 3], filled: vec![2, 4], value: 5 };
        let arrays = |definition: &[i16], repetition: &[i16]| {
            let levels = Levels { definition: definition.to_vec(), repetition: repetition.to_vec() };
            let mut next = 0;
            let assembly = Assembly { nesting: &nesting, levels: &levels, element_type: melba_types::oids::INT4 };
            assembly.arrays(|| {
                next += 1;
                Datum::Int4(next)
            })
        };
        let read = arrays(&[5, 4, 5, 5, 0, 1, 3], &[0, 2, 1, 2, 0, 0, 0]).unwrap();
        let shown: Vec<String> = read
            .iter()
            .map(|value| match value {
                Datum::Array(array) => {
                    format!("{:?} {:?}", array.dims.iter().map(|d| d.length).collect::<Vec<_>>(), array.elements)
                }
                other => format!("{other:?}"),
            })
            .collect();
        assert_eq!(shown, ["[2, 2] [Int4(1), Null, Int4(2), Int4(3)]", "Null", "[] []", "[] []"]);
        assert!(matches!(arrays(&[5, 5, 5], &[0, 2, 1]), Err((0, _))), "lists of two and of one");
        assert!(matches!(arrays(&[5, 5, 2], &[0, 0, 1]), Err((1, _))), "a null list");
        assert!(arrays(&[5], &[2]).is_err(), "goes on without a beginning");
    }
}
