//! SQL cursors: DECLARE, FETCH, MOVE, CLOSE over the same portals that Bind makes.

use std::sync::Arc;

use melba_protocol::Format;
use melba_types::{Batch, Datum, DbError, Oid, Result, bail, err};
use pg_query::protobuf::{DeclareCursorStmt, FetchDirection, FetchStmt};

use melba_parse::Statement;
use melba_spill::Resources;

use super::Session;
use super::portal::{Declared, Outcome, Portal, PortalState, Rewind, Rows, StoredRows, Tag};
use super::prepared::Bound;
use super::transaction::Block;
use super::utility::nested;

const BINARY: i32 = 1;
const SCROLL: i32 = 2;
const NO_SCROLL: i32 = 4;
const HOLD: i32 = 32;

impl Session {
    /// `types` and `parameters` of its query, which keeps them as long as it is open.
    pub(super) fn run_declare(
        &mut self,
        declare: &DeclareCursorStmt,
        statement: &Statement,
        types: &[Oid],
        parameters: &Arc<[Datum]>,
    ) -> Result<Outcome> {
        let option = |bit: i32| declare.options & bit != 0;
        if !option(HOLD) && self.block == Block::None {
            bail!(NO_ACTIVE_SQL_TRANSACTION, "DECLARE CURSOR can only be used in transaction blocks");
        }
        if declare.portalname.is_empty() {
            bail!(INVALID_CURSOR_NAME, "invalid cursor name: must not be empty");
        }
        if self.portals.contains_key(&declare.portalname) {
            bail!(DUPLICATE_CURSOR, "cursor \"{}\" already exists", declare.portalname);
        }
        let inner = nested(declare.query.as_deref().and_then(|q| q.node.as_ref()), statement)?;
        let prepared = Arc::new(self.prepare(Some(inner), types)?);
        let Outcome::Rows { columns, source, .. } = self.start(Bound { prepared, parameters: parameters.clone() })? else {
            bail!(INVALID_CURSOR_DEFINITION, "cannot open multi-query plan as cursor");
        };
        let rewind = if option(SCROLL) {
            Rewind::Always
        } else if option(NO_SCROLL) {
            Rewind::Never
        } else {
            Rewind::WhileSmall
        };
        self.renew_context();
        let resources = Arc::new(Resources::new(&*self.context, &self.state.engine));
        let mut rows = Rows::new(source, rewind);
        if option(HOLD) || rewind == Rewind::Always {
            rows = rows.keeping(&resources);
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
                created: self.statement_start,
            }),
            depth: self.depth(),
        };
        self.portals.insert(declare.portalname.clone(), portal);
        Ok(Outcome::Done { tag: "DECLARE CURSOR".to_owned() })
    }

    pub(super) fn run_close(&mut self, name: &str) -> Result<Outcome> {
        if name.is_empty() {
            self.portals.clear_named();
            return Ok(Outcome::Done { tag: "CLOSE CURSOR ALL".to_owned() });
        }
        match self.portals.remove(name) {
            Some(_) => Ok(Outcome::Done { tag: "CLOSE CURSOR".to_owned() }),
            None => Err(no_cursor(name)),
        }
    }

    /// FETCH gives the rows it passes, MOVE only their number.
    pub(super) fn run_fetch(&mut self, fetch: &FetchStmt) -> Result<Outcome> {
        let mut portal = self.portals.take(&fetch.portalname).ok_or_else(|| no_cursor(&fetch.portalname))?;
        let result = self.fetch_from(&mut portal, fetch);
        if result.is_err()
            && !matches!(&result, Err(e) if e.sqlstate() == melba_types::SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE)
        {
            portal.state = PortalState::Failed;
        }
        self.portals.put_back(fetch.portalname.clone(), portal);
        result
    }

    fn fetch_from(&mut self, portal: &mut Portal, fetch: &FetchStmt) -> Result<Outcome> {
        if let PortalState::Ready(bound) = &portal.state {
            let Outcome::Rows { source, tag, .. } = self.start(bound.clone())? else {
                bail!(INVALID_CURSOR_STATE, "portal \"{}\" does not return rows", fetch.portalname);
            };
            portal.state = PortalState::Open(Rows::new(source, Rewind::Never), tag);
        }
        let PortalState::Open(rows, _) = &mut portal.state else {
            bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "portal \"{}\" cannot be run", fetch.portalname);
        };
        let mut batches = Vec::new();
        let direction = FetchDirection::try_from(fetch.direction).unwrap_or_default();
        let count = step(rows, direction, fetch.how_many, |batch, range| {
            if !fetch.ismove {
                let indices: Vec<u32> = range.map(|i| i as u32).collect();
                batches.push(batch.take(&indices));
            }
            Ok(())
        })?;
        if fetch.ismove {
            return Ok(Outcome::Done { tag: format!("MOVE {count}") });
        }
        let columns = portal.columns.clone().unwrap_or_else(|| std::sync::Arc::new([]));
        let source = Box::new(StoredRows(batches.into_iter()));
        Ok(Outcome::Rows { columns, source, tag: Tag::Counted("FETCH"), formats: portal.formats.clone() })
    }
}

/// Moves by PostgreSQL's rules and gives the rows passed; their number is the command tag's.
fn step(
    rows: &mut Rows,
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
            rows.check_backward()?;
            rows.backward(magnitude, take)
        }
    }
}

fn single(rows: &mut Rows, target: i64, mut take: impl FnMut(&Batch, std::ops::Range<usize>) -> Result<()>) -> Result<u64> {
    if !rows.absolute(target)? {
        return Ok(0);
    }
    let (batch, row) = rows.current()?.ok_or_else(|| DbError::internal("the cursor lost its row"))?;
    take(&batch, row..row + 1)?;
    Ok(1)
}

fn no_cursor(name: &str) -> DbError {
    err!(UNDEFINED_CURSOR, "cursor \"{name}\" does not exist")
}
