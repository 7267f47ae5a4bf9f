//! Prepared statements, and the portals that Bind makes of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use hashbrown::HashMap;
use melba_types::{Datum, DbError, Oid, Result, err};

use melba_parse::Statement;
use melba_serverlog::Policy;
use parking_lot::Mutex;
use pg_query::NodeEnum;

use super::outcome::ResultColumn;
use super::planned::{AnalyzedStatement, Compiled};

/// A statement that was parsed and analyzed: by Parse, by PREPARE, or as part of a query string.
#[derive(Debug)]
pub struct Prepared {
    /// `None` for an empty query string.
    pub statement: Option<Arc<Statement>>,
    pub parameter_types: Vec<Oid>,
    /// `None` when the statement returns no rows.
    pub columns: Option<Arc<[ResultColumn]>>,
    pub compiled: Compiled,
    /// Synthesized by PREPARE rather than by Parse, for pg_prepared_statements.
    pub from_sql: bool,
    pub prepared_at: i64,
    /// Times it was started.
    pub executions: AtomicI64,
}

impl Prepared {
    /// A statement that the session does not run itself, analyzed.
    pub fn new(statement: Arc<Statement>, analyzed: AnalyzedStatement, prepared_at: i64) -> Prepared {
        Prepared {
            statement: Some(statement),
            parameter_types: analyzed.parameter_types,
            columns: analyzed.columns,
            compiled: analyzed.compiled,
            from_sql: false,
            prepared_at,
            executions: AtomicI64::default(),
        }
    }

    /// The text positions of errors refer to.
    pub fn source(&self) -> &str {
        self.statement.as_ref().map_or("", |s| &s.source)
    }

    /// Identifies the statement without its constants; 0 for an empty one.
    pub fn identifier(&self) -> i64 {
        match (self.compiled.identity(), &self.statement) {
            (Some(identity), _) => identity.number,
            (None, Some(statement)) => statement.fingerprint() as i64,
            (None, None) => 0,
        }
    }

    /// Its result has these columns still, wherever they come from.
    pub fn has_shape_of(&self, other: &Prepared) -> bool {
        same_shape(self.columns.as_deref(), other.columns.as_deref())
    }

    /// Counts another execution; only its session does that.
    pub fn count_execution(&self) {
        self.executions.store(self.executions.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

/// A client that got the description of one result can read the other.
pub(super) fn same_shape(a: Option<&[ResultColumn]>, b: Option<&[ResultColumn]>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (&a.name, a.ty, a.typmod) == (&b.name, b.ty, b.typmod))
        }
        (a, b) => a.is_none() && b.is_none(),
    }
}

/// The error for a result whose shape differs from its description. Clients prepare again when they see its routine.
pub fn shape_changed() -> DbError {
    err!(FEATURE_NOT_SUPPORTED, "cached plan must not change result type").routine("RevalidateCachedQuery")
}

/// A prepared statement with values for its parameters.
#[derive(Clone, Debug)]
pub struct BoundStatement {
    pub prepared: Arc<Prepared>,
    pub parameters: Arc<[Datum]>,
    /// The text that was sent, of a statement that stands for all texts of its form: its literals are the parameters.
    pub text: Option<Arc<str>>,
}

impl BoundStatement {
    pub fn new(prepared: Arc<Prepared>, parameters: Arc<[Datum]>) -> BoundStatement {
        BoundStatement { prepared, parameters, text: None }
    }

    /// The text positions of errors refer to.
    pub fn source(&self) -> Arc<str> {
        let own = || self.prepared.statement.as_ref().map_or_else(|| "".into(), |s| Arc::clone(&s.source));
        self.text.clone().unwrap_or_else(own)
    }
}

/// Parameters and name of a bound portal, kept while statements are logged.
#[derive(Debug)]
pub struct BoundName {
    pub statement: String,
    pub prepared: Arc<Prepared>,
    pub parameters: Arc<[Datum]>,
}

impl BoundName {
    /// When the log may want it.
    pub fn of(policy: &Policy, statement: &str, prepared: &Arc<Prepared>, parameters: &Arc<[Datum]>) -> Option<Arc<BoundName>> {
        let is_wanted = !policy.is_quiet || policy.parameter_max_on_error != Some(0) && !parameters.is_empty();
        is_wanted.then(|| {
            Arc::new(BoundName {
                statement: statement.to_owned(),
                prepared: Arc::clone(prepared),
                parameters: Arc::clone(parameters),
            })
        })
    }
}

/// A statement inside another one (PREPARE, DECLARE): same text, same locations.
pub fn nested(node: Option<&NodeEnum>, outer: &Statement) -> Result<Arc<Statement>> {
    let node = node.ok_or_else(|| DbError::internal("the statement has no query"))?.clone();
    Ok(Arc::new(Statement { node, literals: Vec::new(), row_literals: 0, ..Statement::clone(outer) }))
}

/// Prepared statements that have a name.
pub(super) type NamedStatements = Mutex<HashMap<String, Arc<Prepared>>>;

/// Prepared statements by name. Named ones are in the session's shared state, where functions find them.
pub struct PreparedStatements {
    unnamed: Option<Arc<Prepared>>,
    /// The literals of the unnamed one, if it stands for all texts of its form.
    literals: Option<BoundStatement>,
    named: Arc<NamedStatements>,
}

impl PreparedStatements {
    pub fn new(named: Arc<NamedStatements>) -> PreparedStatements {
        PreparedStatements { unnamed: None, literals: None, named }
    }

    pub fn get(&self, name: &str) -> Option<Arc<Prepared>> {
        if name.is_empty() { self.unnamed.clone() } else { self.named.lock().get(name).cloned() }
    }

    /// Adds a statement, or replaces it.
    pub fn insert(&mut self, name: &str, prepared: Arc<Prepared>) {
        if name.is_empty() {
            (self.unnamed, self.literals) = (Some(prepared), None);
        } else {
            self.named.lock().insert(name.to_owned(), prepared);
        }
    }

    /// Makes a text with its literals the unnamed statement. It has no parameters for the client.
    pub fn insert_literals(&mut self, bound: BoundStatement) {
        self.unnamed = Some(Arc::clone(&bound.prepared));
        self.literals = Some(bound);
    }

    /// What a statement of this name is bound to by its own literals.
    pub fn literals(&self, name: &str) -> Option<&BoundStatement> {
        self.literals.as_ref().filter(|_| name.is_empty())
    }

    pub fn remove(&mut self, name: &str) -> Option<Arc<Prepared>> {
        if !name.is_empty() {
            return self.named.lock().remove(name);
        }
        self.literals = None;
        self.unnamed.take()
    }

    pub fn clear(&mut self) {
        (self.unnamed, self.literals) = (None, None);
        self.named.lock().clear();
    }
}
