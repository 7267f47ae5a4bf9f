//! Cursors: variables that name portals of the session.

use std::sync::Arc;

use melba_plpgsql::tree::{Count, Direction, Expression, Fetch, Loop, LoopSource, Opened, Scroll, Target};
use melba_spill::Resources;
use melba_statement::portal::{Declared, Portal, PortalRows, PortalState, Rewind};
use melba_statement::portals::no_cursor;
use melba_types::{Datum, DbError, Result, bail, err, oids};
use pg_query::protobuf::FetchDirection;

use super::frame::{Frame, StatementFlow, Typed};
use super::sql::{Begun, QueryOrigin};
use super::value::RecordShape;
use super::{sql, value};

/// FETCH ALL: as many as there are.
const ALL: i64 = i64::MAX;

/// The name in a cursor variable.
fn cursor_name(frame: &Frame<'_>, cursor: usize) -> Result<Option<String>> {
    let ty = frame.types[cursor];
    match &frame.values[cursor] {
        Datum::Null => Ok(None),
        value => value::text_of(frame, &Typed { value: value.clone(), ty: ty.oid, typmod: ty.typmod }).map(Some),
    }
}

fn open_name(frame: &Frame<'_>, cursor: usize) -> Result<String> {
    cursor_name(frame, cursor)?.ok_or_else(|| {
        let name = &frame.program.tree.variables[cursor].name;
        err!(NULL_VALUE_NOT_ALLOWED, "cursor variable \"{name}\" is null")
    })
}

/// The name that is to be opened, if the variable has one.
fn free_name(frame: &Frame<'_>, cursor: usize) -> Result<Option<String>> {
    let name = cursor_name(frame, cursor)?;
    match &name {
        Some(name) if frame.context.session.portals.contains(name) => {
            Err(err!(DUPLICATE_CURSOR, "cursor \"{name}\" already in use"))
        }
        _ => Ok(name),
    }
}

pub fn open(frame: &mut Frame<'_>, cursor: usize, opened: &Opened, scroll: Scroll) -> Result<()> {
    let given = free_name(frame, cursor)?;
    let begun = match opened {
        Opened::Bound(arguments) => begin_bound(frame, cursor, arguments.as_ref())?,
        Opened::Query(query) => sql::begin_cursor(frame, &LoopSource::Query(query.clone()))?,
        Opened::Execute { query, using } => {
            sql::begin_cursor(frame, &LoopSource::Execute { query: query.clone(), using: using.clone() })?
        }
    };
    let name = add_portal(frame, given.clone(), begun, scroll, false);
    match given {
        Some(_) => Ok(()),
        None => set_cursor(frame, cursor, Datum::text(name)),
    }
}

fn set_cursor(frame: &mut Frame<'_>, cursor: usize, name: Datum) -> Result<()> {
    let declared = &frame.program.tree.variables[cursor];
    if declared.constant {
        bail!(ERROR_IN_ASSIGNMENT, "variable \"{}\" is declared CONSTANT", declared.name);
    }
    value::assign(frame, &Target::Variable(cursor), Typed { value: name, ty: oids::TEXT, typmod: -1 })
}

/// A bound cursor's query, over its arguments.
fn begin_bound(frame: &mut Frame<'_>, cursor: usize, arguments: Option<&Expression>) -> Result<Begun> {
    let program = frame.program.clone();
    let bound = program.tree.variables[cursor].cursor.as_ref();
    let bound = bound.ok_or_else(|| DbError::internal("a cursor without a query"))?;
    if let Some(arguments) = arguments {
        let mut begun = sql::begin_rows(frame, &LoopSource::Query(arguments.clone()))?;
        let row = begun.source.next(1).map_err(|e| sql::of_source(&begun.origin, e))?;
        let row = row.ok_or_else(|| DbError::internal("a cursor's arguments are no row"))?;
        let targets = bound.arguments.iter().map(|a| Target::Variable(*a)).collect();
        value::assign_row(frame, &Target::Row(targets), &RecordShape::of_result(&begun.columns), &row, 0)?;
    }
    sql::begin_cursor(frame, &LoopSource::Query(bound.query.clone()))
}

/// Makes a query's rows a portal; its name.
pub fn add_portal(frame: &Frame<'_>, name: Option<String>, begun: Begun, scroll: Scroll, pinned: bool) -> String {
    let session = &frame.context.session;
    let name = name.unwrap_or_else(|| session.portals.new_name());
    let rewind = match scroll {
        Scroll::Yes => Rewind::Always,
        Scroll::No => Rewind::Never,
        Scroll::Default => Rewind::WhileSmall,
    };
    let mut rows = PortalRows::new(begun.source, rewind);
    if rewind == Rewind::Always {
        rows = rows.keeping(&Arc::new(Resources::new(&*frame.context, &session.engine())));
    }
    let declared = Declared {
        statement: begun.origin.text().to_owned(),
        scroll: rewind != Rewind::Never,
        binary: false,
        created: frame.context.statement_start,
    };
    let portal = Portal {
        formats: Vec::new(),
        columns: Some(begun.columns),
        state: PortalState::Open(rows, begun.tag),
        hold: false,
        declared: Some(declared),
        bound: None,
        held: false,
        positions: begun.positions,
        pinned,
        counted: None,
        number: 0,
    };
    session.portals.insert(name.clone(), portal);
    name
}

/// FETCH and MOVE.
pub fn fetch(frame: &mut Frame<'_>, fetch: &Fetch) -> Result<()> {
    let name = open_name(frame, fetch.cursor)?;
    if !frame.context.session.portals.contains(&name) {
        return Err(no_cursor(&name));
    }
    let how_many = match &fetch.count {
        Count::Rows(n) => *n,
        Count::All => ALL,
        Count::Expression(e) => {
            let count = value::integer(frame, e)?;
            let null = || err!(NULL_VALUE_NOT_ALLOWED, "relative or absolute cursor position is null");
            i64::from(count.ok_or_else(null)?)
        }
    };
    let direction = match fetch.direction {
        Direction::Forward => FetchDirection::FetchForward,
        Direction::Backward => FetchDirection::FetchBackward,
        Direction::Absolute => FetchDirection::FetchAbsolute,
        Direction::Relative => FetchDirection::FetchRelative,
    };
    let session = frame.context.session.clone();
    let entered = frame.enter(None);
    let fetched = session.fetch(&name, direction, how_many, fetch.target.is_some())?;
    drop(entered);
    if let Some(target) = &fetch.target {
        let shape = RecordShape::of_result(&fetched.columns);
        match fetched.batches.iter().find(|batch| batch.rows > 0) {
            Some(batch) => value::assign_row(frame, target, &shape, batch, 0)?,
            None => value::assign_no_row(frame, target, &shape)?,
        }
    }
    frame.row_count = fetched.count;
    frame.set_found(fetched.count > 0);
    frame.refresh();
    Ok(())
}

pub fn close(frame: &mut Frame<'_>, cursor: usize) -> Result<()> {
    let name = open_name(frame, cursor)?;
    match frame.context.session.portals.close(&name)? {
        true => Ok(()),
        false => Err(no_cursor(&name)),
    }
}

/// `FOR row IN cursor LOOP`
pub fn cursor_loop(
    frame: &mut Frame<'_>,
    target: &Target,
    cursor: usize,
    arguments: Option<&Expression>,
    body: &Loop,
) -> Result<StatementFlow> {
    let given = free_name(frame, cursor)?;
    let program = frame.program.clone();
    let scroll = program.tree.variables[cursor].cursor.as_ref().map_or(Scroll::Default, |c| c.scroll);
    let begun = begin_bound(frame, cursor, arguments)?;
    let (shape, origin) = (RecordShape::of_result(&begun.columns), begun.origin.clone());
    let name = add_portal(frame, given.clone(), begun, scroll, true);
    if given.is_none() {
        set_cursor(frame, cursor, Datum::text(name.as_str()))?;
    }
    // One row at a time: the body's WHERE CURRENT OF changes apply to the row that it sees.
    let flow = portal_loop(frame, &name, (target, &shape, &origin), 1, body)?;
    if given.is_none() {
        set_cursor(frame, cursor, Datum::Null)?;
    }
    Ok(flow)
}

/// Goes through a portal, which is closed in the end. `ahead`: rows that are read at once.
pub fn portal_loop(
    frame: &mut Frame<'_>,
    name: &str,
    (target, shape, origin): (&Target, &RecordShape, &QueryOrigin),
    ahead: u64,
    body: &Loop,
) -> Result<StatementFlow> {
    let session = frame.context.session.clone();
    let flow = portal_rounds(frame, name, (target, shape, origin), ahead, body);
    session.portals.remove(name);
    flow
}

fn portal_rounds(
    frame: &mut Frame<'_>,
    name: &str,
    (target, shape, origin): (&Target, &RecordShape, &QueryOrigin),
    ahead: u64,
    body: &Loop,
) -> Result<StatementFlow> {
    let session = frame.context.session.clone();
    let mut found = false;
    let mut last = StatementFlow::Next;
    'rows: loop {
        let Some(mut portal) = session.portals.take(name) else { return Err(no_cursor(name)) };
        let PortalState::Open(rows, _) = &mut portal.state else {
            bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "portal \"{name}\" cannot be run");
        };
        let entered = frame.enter(None);
        let batch = rows.next_batch(ahead);
        drop(entered);
        session.portals.put_back(name.to_owned(), portal);
        let Some(batch) = batch.map_err(|e| sql::of_source(origin, e))? else { break };
        for row in 0..batch.rows {
            session.interrupt.check()?;
            found = true;
            value::assign_row(frame, target, shape, &batch, row)?;
            let flow = frame.statements(&body.body)?;
            if let Some(flow) = frame.after_round(flow, body) {
                last = flow;
                break 'rows;
            }
        }
    }
    if !found {
        value::assign_no_row(frame, target, shape)?;
    }
    frame.set_found(found);
    Ok(last)
}
