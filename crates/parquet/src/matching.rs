//! Which of a file's columns is which of the wanted ones.

use melba_types::{Result, bail, err};

use crate::reader::{FileReader, Wanted};

/// How the columns of a file are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnMatch {
    Name,
    /// By position when the file has none of the names, and as many columns.
    NameOrPosition,
}

/// Sets the places of the wanted columns, which have any before. The answer is how further files with such columns are read: by name
/// when this one was.
///
/// # Errors
/// 22P04 when a column is not found.
pub fn match_columns(file: &FileReader, wanted: &mut [Wanted], how: ColumnMatch) -> Result<ColumnMatch> {
    let names: Vec<&str> = file.columns().iter().map(|c| c.name.as_str()).collect();
    let place = |name: &str| names.iter().position(|known| *known == name);
    if let Some(twice) = names.iter().enumerate().find(|(at, name)| place(name) != Some(*at)) {
        bail!(BAD_COPY_FILE_FORMAT, "the Parquet file has two columns \"{}\"", twice.1);
    }
    let places: Vec<Option<usize>> = wanted.iter().map(|w| place(&w.name)).collect();
    if how == ColumnMatch::NameOrPosition && places.iter().all(Option::is_none) && wanted.len() == names.len() {
        wanted.iter_mut().enumerate().for_each(|(at, w)| w.at = at);
        return Ok(ColumnMatch::NameOrPosition);
    }
    for (w, place) in wanted.iter_mut().zip(&places) {
        w.at = place.ok_or_else(|| err!(BAD_COPY_FILE_FORMAT, "the Parquet file has no column \"{}\"", w.name))?;
    }
    Ok(ColumnMatch::Name)
}

/// # Errors
/// 22P04 when the file has a column that is none of the wanted ones, whose places are known.
pub fn check_all_wanted(file: &FileReader, wanted: &[Wanted]) -> Result<()> {
    match file.columns().iter().enumerate().find(|(at, _)| !wanted.iter().any(|w| w.at == *at)) {
        Some((_, extra)) => {
            Err(err!(BAD_COPY_FILE_FORMAT, "the table has no column for column \"{}\" of the Parquet file", extra.name))
        }
        None => Ok(()),
    }
}
