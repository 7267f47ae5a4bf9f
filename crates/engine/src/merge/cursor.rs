//! The row versions of a table segment in order, decoded piece by piece.

use std::sync::Arc;

use melba_segment::{GroupData, TableSegmentReader};
use melba_types::RowId;

use crate::error::Result;

/// Rows of a row group decoded at a time.
const PIECE_ROWS: usize = 4096;

/// Walks all row versions of a table segment.
pub(super) struct TableCursor {
    reader: Arc<TableSegmentReader>,
    projection: Vec<usize>,
    from: RowId,
    group: usize,
    /// Rows of the group already decoded.
    decoded: usize,
    data: Option<Arc<GroupData>>,
    at: usize,
}

impl TableCursor {
    /// A cursor at the first row at or after `from`.
    pub fn new(reader: &Arc<TableSegmentReader>, from: RowId) -> TableCursor {
        let projection = (0..reader.kinds().len()).collect();
        let group = reader.row_groups().partition_point(|g| g.row_id_max < from);
        TableCursor { reader: Arc::clone(reader), projection, from, group, decoded: 0, data: None, at: 0 }
    }

    /// The piece of a row group that the cursor is in and the row's position there; goes on to the next row.
    pub fn take(&mut self) -> Option<(Arc<GroupData>, usize)> {
        let data = Arc::clone(self.data.as_ref()?);
        self.at += 1;
        Some((data, self.at - 1))
    }

    /// The row id at the cursor; `None` at the end.
    pub fn row_id(&mut self) -> Result<Option<RowId>> {
        loop {
            if let Some(id) = self.data.as_ref().and_then(|d| d.row_ids.get(self.at)) {
                return Ok(Some(*id));
            }
            let Some(group) = self.reader.row_groups().get(self.group) else { return Ok(None) };
            if self.decoded == group.rows {
                (self.group, self.decoded) = (self.group + 1, 0);
                continue;
            }
            let to = (self.decoded + PIECE_ROWS).min(group.rows);
            let data = self.reader.group(self.group, &self.projection).read(self.decoded..to)?;
            let at = data.row_ids.partition_point(|id| *id < self.from);
            (self.data, self.at, self.decoded) = (Some(Arc::new(data)), at, to);
        }
    }
}
