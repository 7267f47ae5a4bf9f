//! Which of a file's columns is which of the wanted ones.

use melba_types::{Result, bail, err};

use crate::reader::{FileReader, Wanted};

/// By name when the file has all names, by position when it has none of them and as many columns. `wanted` has any place before.
///
/// # Errors
/// 22P04 when it is neither; and, where `all` columns of the file must be wanted, for one that is not.
pub fn match_columns(file: &FileReader, wanted: &mut [Wanted], all: bool) -> Result<()> {
    let names: Vec<&str> = file.columns().iter().map(|c| c.name.as_str()).collect();
    let place = |name: &str| names.iter().position(|known| *known == name);
    if let Some(twice) = names.iter().enumerate().find(|(at, name)| place(name) != Some(*at)) {
        bail!(BAD_COPY_FILE_FORMAT, "the Parquet file has two columns \"{}\"", twice.1);
    }
    let places: Vec<Option<usize>> = wanted.iter().map(|w| place(&w.name)).collect();
    if places.iter().all(Option::is_none) && wanted.len() == names.len() {
        wanted.iter_mut().enumerate().for_each(|(at, w)| w.at = at);
        return Ok(());
    }
    for (w, place) in wanted.iter_mut().zip(&places) {
        w.at = place.ok_or_else(|| err!(BAD_COPY_FILE_FORMAT, "the Parquet file has no column \"{}\"", w.name))?;
    }
    match (0..names.len()).find(|at| !wanted.iter().any(|w| w.at == *at)) {
        Some(extra) if all => {
            Err(err!(BAD_COPY_FILE_FORMAT, "the table has no column for column \"{}\" of the Parquet file", names[extra]))
        }
        _ => Ok(()),
    }
}
