//! pg_snapshot, and txid_snapshot, its older name: xmin, xmax and the ids between them that were running.
//!
//! A value is the payload of pg_snapshot_send: how many ids are running, xmin, xmax, the ids in ascending order.

use melba_fmgr::type_io::{data_behind, insufficient_data};
use melba_types::{Datum, Result, err};

/// A value of the type; `running` ascends between the others.
pub fn datum(xmin: u64, xmax: u64, running: &[u64]) -> Datum {
    let mut bytes = (running.len() as i32).to_be_bytes().to_vec();
    for id in [xmin, xmax].iter().chain(running) {
        bytes.extend_from_slice(&id.to_be_bytes());
    }
    Datum::bytes(bytes)
}

/// xmin, xmax and the ids that are running.
pub fn parts(v: &Datum) -> (u64, u64, Vec<u64>) {
    let (ids, _) = v.as_bytes()[4..].as_chunks::<8>();
    let id = |at: usize| ids.get(at).map_or(0, |b| u64::from_be_bytes(*b));
    (id(0), id(1), (2..ids.len()).map(id).collect())
}

/// The ids in ascending order within the others; `None` when they are not.
fn checked(xmin: u64, xmax: u64, running: impl Iterator<Item = Option<u64>>) -> Option<Datum> {
    // Ids are signed where they are received.
    if xmin == 0 || xmax < xmin || xmax > i64::MAX as u64 {
        return None;
    }
    let mut ids: Vec<u64> = Vec::new();
    for id in running {
        let id = id.filter(|id| (xmin..xmax).contains(id) && ids.last().is_none_or(|last| last <= id))?;
        if ids.last() != Some(&id) {
            ids.push(id);
        }
    }
    Some(datum(xmin, xmax, &ids))
}

/// `xmin:xmax:running,...`
pub fn parse(text: &str) -> Option<Datum> {
    let id = |s: &str| s.trim_start().parse::<u64>().ok();
    let mut fields = text.splitn(3, ':');
    let (xmin, xmax) = (id(fields.next()?)?, id(fields.next()?)?);
    // A comma may end the list.
    let list = fields.next()?;
    let ids = list.strip_suffix(',').unwrap_or(list).split(',');
    checked(xmin, xmax, ids.filter(|_| !list.is_empty()).map(id))
}

pub fn print(v: &Datum) -> String {
    let (xmin, xmax, running) = parts(v);
    let ids: Vec<String> = running.iter().map(u64::to_string).collect();
    format!("{xmin}:{xmax}:{}", ids.join(","))
}

/// Whether a transaction was over.
pub fn shows(v: &Datum, xid: u64) -> bool {
    let (xmin, xmax, running) = parts(v);
    xid < xmin || xid < xmax && running.binary_search(&xid).is_err()
}

/// A value from its binary form.
pub fn received(bytes: &[u8]) -> Result<Datum> {
    let invalid = || err!(INVALID_BINARY_REPRESENTATION, "invalid external pg_snapshot data");
    let (count, ids) = bytes.split_first_chunk::<4>().ok_or_else(insufficient_data)?;
    let count = usize::try_from(i32::from_be_bytes(*count)).map_err(|_| invalid())?;
    let (ids, rest) = ids.as_chunks::<8>();
    let (bounds, running) = ids.split_first_chunk::<2>().ok_or_else(insufficient_data)?;
    if running.len() < count {
        return Err(insufficient_data());
    }
    let [xmin, xmax] = bounds.map(u64::from_be_bytes);
    let running_ids = running[..count].iter().map(|b| Some(u64::from_be_bytes(*b)));
    let snapshot = checked(xmin, xmax, running_ids).ok_or_else(invalid)?;
    if running.len() == count && rest.is_empty() { Ok(snapshot) } else { Err(data_behind()) }
}
