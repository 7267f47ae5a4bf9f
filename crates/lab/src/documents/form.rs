//! A way to store rows of documents, as the experiment drives it.

use std::time::{Duration, Instant};

use crate::Result;

/// A row of documents.
pub struct Row {
    pub id: u64,
    pub documents: Vec<Vec<u8>>,
}

/// A form of storage with the rows in it. Durations are those of the form itself, without moving bytes to it and back.
pub trait Form {
    fn insert(&mut self, rows: &[Row]) -> Result<Duration>;

    /// Replaces the documents of rows.
    fn update(&mut self, rows: &[Row]) -> Result<Duration>;

    fn delete(&mut self, ids: &[u64]) -> Result<Duration>;

    /// Brings everything into its final shape: a server's background work, or the rewriting of a stream.
    fn maintain(&mut self) -> Result<Duration>;

    /// A row's documents; `None`: there is no such row.
    fn read(&mut self, id: u64) -> Result<(Option<Vec<Vec<u8>>>, Duration)>;

    /// Bytes on disk of everything that a reader needs.
    fn bytes(&mut self) -> Result<u64>;

    /// How many single reads are worth the time.
    fn reads_max(&self) -> usize {
        usize::MAX
    }

    /// Leaves nothing behind.
    fn remove(&mut self) -> Result<()>;
}

/// A function's result, and its duration.
pub fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<(T, Duration)> {
    let started = Instant::now();
    let result = work()?;
    Ok((result, started.elapsed()))
}

/// Documents one behind the other, each after its length: the content of forms that know rows only.
pub fn joined(documents: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::with_capacity(documents.iter().map(|d| d.len() + 4).sum());
    for document in documents {
        out.extend_from_slice(&(document.len() as u32).to_le_bytes());
        out.extend_from_slice(document);
    }
    out
}

/// The documents that were joined.
pub fn parted(mut content: &[u8]) -> Result<Vec<Vec<u8>>> {
    let mut documents = Vec::new();
    while !content.is_empty() {
        let (length, rest) = content.split_first_chunk().ok_or("a row ends within a length")?;
        let (document, rest) =
            rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or("a row ends within a document")?;
        documents.push(document.to_vec());
        content = rest;
    }
    Ok(documents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_documents_part_again() {
        let documents = vec![b"one".to_vec(), Vec::new(), b"three".to_vec()];
        let content = joined(&documents);
        assert_eq!(parted(&content).unwrap(), documents);
        assert!(parted(&content[..content.len() - 1]).is_err() && parted(&content[..2]).is_err());
    }
}
