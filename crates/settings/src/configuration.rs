//! The sources of a server's settings: assignments of files and the command line, each with its place.

use std::sync::Arc;

/// Where an assignment stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file, and the line in it.
    File(Arc<str>, u32),
    CommandLine,
    /// The server has found it out.
    Derived,
}

impl Place {
    /// pg_settings.source.
    pub fn source(&self) -> &'static str {
        match self {
            Place::File(..) => "configuration file",
            Place::CommandLine => "command line",
            Place::Derived => "override",
        }
    }
}

/// `name = value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    pub name: String,
    pub value: String,
    pub place: Place,
}

impl Assignment {
    pub fn new(name: &str, value: &str, place: Place) -> Assignment {
        Assignment { name: name.to_owned(), value: value.to_owned(), place }
    }
}

/// An error in a file, in PostgreSQL's wording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// The file, and the line in it, 0: the file as a whole.
    pub file: Arc<str>,
    pub line: u32,
    /// Without the place, as pg_file_settings has it.
    pub what: String,
    /// With it, as the log has it.
    pub message: String,
    /// The setting, if that much can be read.
    pub name: Option<(String, String)>,
}

/// The content of the files and the command line.
#[derive(Clone, Debug, Default)]
pub struct Configured {
    /// In the order in which they were read: the last one of a name holds.
    pub assignments: Vec<Assignment>,
    /// Errors of syntax and missing files, because of which no assignment counts.
    pub errors: Vec<FileError>,
}

impl Configured {
    pub fn of(changes: &[(String, String)], place: &Place) -> Configured {
        let assignments = changes.iter().map(|(name, value)| Assignment::new(name, value, place.clone())).collect();
        Configured { assignments, errors: Vec::new() }
    }

    /// The assignments in force: the last of each setting, under any of its names.
    pub fn in_force(&self, id_of: impl Fn(&str) -> Option<usize>) -> Vec<bool> {
        let same = |a: &Assignment, b: &Assignment| match (id_of(&a.name), id_of(&b.name)) {
            (Some(a), Some(b)) => a == b,
            _ => a.name.eq_ignore_ascii_case(&b.name),
        };
        let is_last = |i: usize| !self.assignments[i + 1..].iter().any(|later| same(&self.assignments[i], later));
        (0..self.assignments.len()).map(is_last).collect()
    }
}
