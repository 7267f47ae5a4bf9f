//! SQL cursors: DECLARE, FETCH, MOVE, CLOSE over the same portals that Bind makes.

use std::sync::Arc;

use melba_protocol::Format;
use melba_types::{Batch, Datum, DbError, Oid, Result, bail, err};
use pg_query::protobuf::{DeclareCursorStmt, FetchDirection, FetchStmt};

use melba_parse::Statement;
use melba_spill::Resources;
use melba_tree::LockStrength;

use super::context::{SessionState, StatementContext};
use super::execution;
use super::outcome::{Outcome, ResultColumn, StoredRows, Tag};
use super::planned::Planned;
use super::portal::{Declared, Portal, PortalRows, PortalState, Rewind, forward_only};
use super::portals::no_cursor;
use super::prepared::nested;

const BINARY: i32 = 1;
const SCROLL: i32 = 2;
const NO_SCROLL: i32 = 4;
const INSENSITIVE: i32 = 8;
pub(super) const HOLD: i32 = 32;

/// Cursors that lock rows are neither held nor moved backward.
fn refuse_locking(declare: &DeclareCursorStmt, planned: &Planned) -> Result<()> {
    let Some(strength) = planned.locks_rows.map(LockStrength::clause) else { return Ok(()) };
    if declare.options & HOLD != 0 {
        return Err(err!(FEATURE_NOT_SUPPORTED, "DECLARE CURSOR WITH HOLD ... {strength} is not supported")
            .detail("Holdable cursors must be READ ONLY."));
    }
    if declare.options & SCROLL != 0 {
        return Err(err!(FEATURE_NOT_SUPPORTED, "DECLARE SCROLL CURSOR ... {strength} is not supported")
            .detail("Scrollable cursors must be READ ONLY."));
    }
    if declare.options & INSENSITIVE != 0 {
        return Err(err!(INVALID_CURSOR_DEFINITION, "DECLARE INSENSITIVE CURSOR ... {strength} is not valid")
            .detail("Insensitive cursors must be READ ONLY."));
    }
    Ok(())
}

/// DECLARE.
pub fn declare_cursor(
    context: &Arc<StatementContext>,
    declare: &DeclareCursorStmt,
    statement: &Statement,
    types: &[Oid],
    parameters: &Arc<[Datum]>,
) -> Result<Outcome> {
    let option = |bit: i32| declare.options & bit != 0;
    let name = &declare.portalname;
    if name.is_empty() {
        bail!(INVALID_CURSOR_NAME, "invalid cursor name: must not be empty");
    }
    if context.session.portals.contains(name) {
        bail!(DUPLICATE_CURSOR, "cursor \"{name}\" already exists");
    }
    let inner = nested(declare.query.as_deref().and_then(|q| q.node.as_ref()), statement)?;
    let (columns, source, positions) =
        execution::open_cursor(context, &inner, types, parameters.clone(), |planned| refuse_locking(declare, planned))?;
    let rewind = if option(SCROLL) {
        Rewind::Always
    } else if option(NO_SCROLL) {
        Rewind::Never
    } else {
        Rewind::WhileSmall
    };
    let mut rows = PortalRows::new(source, rewind);
    if option(HOLD) || rewind == Rewind::Always {
        rows = rows.keeping(&Arc::new(Resources::new(&**context, &context.session.engine())));
    }
    let format = if option(BINARY) { Format::Binary } else { Format::Text };
    let portal = Portal {
        bound: None,
        formats: vec![format; columns.len()],
        columns: Some(columns),
        state: PortalState::Open(rows, Tag::Counted("SELECT")),
        hold: option(HOLD),
        declared: Some(Declared {
            statement: statement.source.to_string(),
            scroll: rewind != Rewind::Never,
            binary: option(BINARY),
            created: context.statement_start,
        }),
        held: false,
        positions,
        pinned: false,
        counted: None,
        number: 0,
    };
    context.session.portals.insert(name.clone(), portal);
    Ok(Outcome::Done { tag: "DECLARE CURSOR".to_owned() })
}

/// The rows that a FETCH has passed, if they are wanted, and their number.
pub struct Fetched {
    pub batches: Vec<Batch>,
    pub count: u64,
    pub columns: Arc<[ResultColumn]>,
    formats: Vec<Format>,
}

impl SessionState {
    /// FETCH returns the rows it passes, MOVE only their number.
    pub fn run_fetch(&self, fetch: &FetchStmt) -> Result<Outcome> {
        let direction = FetchDirection::try_from(fetch.direction).unwrap_or_default();
        let fetched = self.fetch(&fetch.portalname, direction, fetch.how_many, !fetch.ismove)?;
        if fetch.ismove {
            return Ok(Outcome::Done { tag: format!("MOVE {}", fetched.count) });
        }
        let source = Box::new(StoredRows(fetched.batches.into_iter()));
        Ok(Outcome::Rows { columns: fetched.columns, source, tag: Tag::Counted("FETCH"), formats: fetched.formats })
    }

    /// Moves a cursor.
    pub fn fetch(&self, name: &str, direction: FetchDirection, how_many: i64, wants_rows: bool) -> Result<Fetched> {
        let mut portal = self.portals.take(name).ok_or_else(|| no_cursor(name))?;
        let result = fetch_from(&mut portal, name, direction, how_many, wants_rows);
        if result.is_err() && matches!(portal.state, PortalState::Open(..)) {
            portal.state = PortalState::Failed;
        }
        self.portals.put_back(name.to_owned(), portal);
        result
    }

    pub fn run_close(&self, name: &str) -> Result<Outcome> {
        if name.is_empty() {
            self.portals.close_named();
            return Ok(Outcome::Done { tag: "CLOSE CURSOR ALL".to_owned() });
        }
        match self.portals.close(name)? {
            true => Ok(Outcome::Done { tag: "CLOSE CURSOR".to_owned() }),
            false => Err(no_cursor(name)),
        }
    }
}

fn fetch_from(portal: &mut Portal, name: &str, direction: FetchDirection, how_many: i64, wants_rows: bool) -> Result<Fetched> {
    let PortalState::Open(rows, _) = &mut portal.state else {
        bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "portal \"{name}\" cannot be run");
    };
    // Bound portals are as those of NO SCROLL.
    let is_forward_only = portal.declared.as_ref().is_none_or(|declared| !declared.scroll);
    if is_forward_only && goes_back(rows, direction, how_many, wants_rows)? {
        return Err(forward_only());
    }
    let mut batches = Vec::new();
    let count = step(rows, direction, how_many, |batch, range| {
        if wants_rows {
            batches.push(batch.slice(range, None));
        }
        Ok(())
    })?;
    let columns = portal.columns.clone().unwrap_or_else(|| Arc::new([]));
    Ok(Fetched { batches, count, columns, formats: portal.formats.clone() })
}

/// Whether PostgreSQL goes back for a step (DoPortalRunFetch), which is an error for a cursor that only scans forward.
fn goes_back(rows: &mut PortalRows, direction: FetchDirection, how_many: i64, wants_rows: bool) -> Result<bool> {
    const ALL: i64 = i64::MAX;
    let position = rows.position();
    let is_forward = match direction {
        // Rows before it are read again from the first one.
        FetchDirection::FetchAbsolute => return Ok(how_many < 0 || position > 0 && how_many.unsigned_abs() <= position),
        FetchDirection::FetchBackward => how_many < 0,
        FetchDirection::FetchForward | FetchDirection::FetchRelative | FetchDirection::Undefined => how_many >= 0,
    };
    Ok(match how_many {
        // The row is read again.
        0 => wants_rows && (rows.current()?.is_some() || !is_forward),
        // MOVE BACKWARD ALL goes to the start.
        ALL if !is_forward && !wants_rows => position > 0,
        _ => !is_forward,
    })
}

/// Moves by PostgreSQL's rules and returns the rows passed; their number is the command tag's.
fn step(
    rows: &mut PortalRows,
    direction: FetchDirection,
    how_many: i64,
    mut take: impl FnMut(&Batch, std::ops::Range<usize>) -> Result<()>,
) -> Result<u64> {
    let magnitude = how_many.unsigned_abs();
    match direction {
        FetchDirection::FetchAbsolute => single(rows, how_many, take),
        FetchDirection::FetchRelative => {
            let target = (rows.position() as i64).saturating_add(how_many).max(0);
            single(rows, target, take)
        }
        _ if how_many == 0 => match rows.current()? {
            Some((batch, row)) => {
                take(&batch, row..row + 1)?;
                Ok(1)
            }
            None => Ok(0),
        },
        forward_or_backward => {
            if (forward_or_backward == FetchDirection::FetchForward) == (how_many > 0) {
                return Ok(rows.forward(magnitude, take)?.0);
            }
            if rows.position() > 0 {
                rows.check_backward()?;
            }
            rows.backward(magnitude, take)
        }
    }
}

fn single(rows: &mut PortalRows, target: i64, mut take: impl FnMut(&Batch, std::ops::Range<usize>) -> Result<()>) -> Result<u64> {
    if !rows.absolute(target)? {
        return Ok(0);
    }
    let (batch, row) = rows.current()?.ok_or_else(|| DbError::internal("the cursor lost its row"))?;
    take(&batch, row..row + 1)?;
    Ok(1)
}
