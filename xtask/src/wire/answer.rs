//! Messages of the server: from bytes to a line each.
//!
//! Everything is printed except values that differ from run to run or from server to server: process ids and keys, the version,
//! OIDs of tables and types that a script has created, and the place in the source where the server raised an error.

use super::script::quoted;

/// Longer runs of rows or of copied data are printed by their ends and a checksum.
const RUN_MAX: usize = 12;
const SHOWN: usize = 3;
const FIRST_USER_OID: u32 = 16384;

/// The parts of a connection's answer.
#[derive(Clone, Copy, Default)]
pub struct Reading {
    /// So many of the next bytes are no messages.
    pub bare_bytes: usize,
    pub routines: bool,
}

/// The lines for the received messages; bytes of no whole message come last.
pub fn print(mut bytes: &[u8], reading: Reading) -> Vec<String> {
    // An error takes the place of such a byte.
    let bare = bytes.iter().take(reading.bare_bytes).take_while(|b| **b != b'E').count();
    let (bare, rest) = bytes.split_at(bare);
    let mut lines: Vec<String> = bare.iter().map(|b| format!("Byte {}", quoted(&[*b]))).collect();
    bytes = rest;
    while !bytes.is_empty() {
        let length = bytes.get(1..5).map(|l| u32::from_be_bytes([l[0], l[1], l[2], l[3]]) as usize);
        match length.filter(|l| *l >= 4).and_then(|l| bytes.split_at_checked(l + 1)) {
            Some((message, rest)) => {
                lines.push(line(message[0], &message[5..], reading.routines));
                bytes = rest;
            }
            None => {
                lines.push(format!("Bytes {}", quoted(bytes)));
                break;
            }
        }
    }
    shorten(lines)
}

/// The key that a BackendKeyData message carries: process id and secret.
pub fn backend_key(mut bytes: &[u8]) -> Option<Vec<u8>> {
    while let Some(length) = bytes.get(1..5) {
        let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize;
        let message = bytes.get(5..length + 1)?;
        if bytes[0] == b'K' {
            return Some(message.to_vec());
        }
        bytes = &bytes[length + 1..];
    }
    None
}

fn shorten(lines: Vec<String>) -> Vec<String> {
    let mut out = Vec::with_capacity(lines.len());
    for run in lines.chunk_by(|a, b| is_row(a) && is_row(b)) {
        if run.len() <= RUN_MAX {
            out.extend_from_slice(run);
            continue;
        }
        out.extend_from_slice(&run[..SHOWN]);
        let rest = &run[SHOWN..];
        // FNV-1a.
        let sum = rest
            .iter()
            .flat_map(|l| l.bytes())
            .fold(0xcbf29ce484222325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100000001b3));
        out.push(format!("... {} more, checksum {sum:016x}", rest.len()));
    }
    out
}

fn is_row(line: &str) -> bool {
    line.starts_with("DataRow") || line.starts_with("CopyData")
}

/// The fields of a message that were not read yet.
struct Body<'a>(&'a [u8]);

impl<'a> Body<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(n)?;
        self.0 = tail;
        Some(head)
    }

    fn i16(&mut self) -> Option<i16> {
        self.take(2).map(|b| i16::from_be_bytes([b[0], b[1]]))
    }

    fn i32(&mut self) -> Option<i32> {
        self.take(4).map(|b| i32::from_be_bytes([b[0], b[1], b[2], b[3]]))
    }

    fn string(&mut self) -> Option<String> {
        let end = self.0.iter().position(|b| *b == 0)?;
        let text = quoted(&self.0[..end]);
        self.0 = &self.0[end + 1..];
        Some(text)
    }

    fn value(&mut self) -> Option<String> {
        match self.i32()? {
            -1 => Some("null".to_owned()),
            n => self.take(usize::try_from(n).ok()?).map(quoted),
        }
    }

    fn oid(&mut self) -> Option<String> {
        let oid = self.i32()? as u32;
        Some(if oid >= FIRST_USER_OID { "*".to_owned() } else { oid.to_string() })
    }
}

fn line(tag: u8, message: &[u8], routines: bool) -> String {
    let mut body = Body(message);
    match fields(tag, &mut body, routines) {
        // Trailing or unreadable bytes are shown unchanged.
        Some(text) if body.0.is_empty() => text,
        _ => format!("Message {} {}", quoted(&[tag]), quoted(message)),
    }
}

fn fields(tag: u8, body: &mut Body<'_>, routines: bool) -> Option<String> {
    Some(match tag {
        b'1' => "ParseComplete".to_owned(),
        b'2' => "BindComplete".to_owned(),
        b'3' => "CloseComplete".to_owned(),
        b'n' => "NoData".to_owned(),
        b's' => "PortalSuspended".to_owned(),
        b'I' => "EmptyQueryResponse".to_owned(),
        b'c' => "CopyDone".to_owned(),
        b'Z' => format!("ReadyForQuery {}", char::from(body.take(1)?[0])),
        b'C' => format!("CommandComplete {}", body.string()?),
        b'd' => format!("CopyData {}", quoted(std::mem::take(&mut body.0))),
        b'V' => format!("FunctionCallResponse {}", body.value()?),
        b'D' => {
            let count = body.i16()?;
            let values = (0..count).map(|_| body.value()).collect::<Option<Vec<String>>>()?;
            format!("DataRow [{}]", values.join(" "))
        }
        b'T' => row_description(body)?,
        b't' => {
            let count = body.i16()?;
            let types = (0..count).map(|_| body.oid()).collect::<Option<Vec<String>>>()?;
            format!("ParameterDescription [{}]", types.join(" "))
        }
        b'E' | b'N' => report(tag, body, routines)?,
        b'S' => {
            let (name, value) = (body.string()?, body.string()?);
            format!("ParameterStatus {name} {}", if name == "\"server_version\"" { "*" } else { &value })
        }
        b'K' => {
            body.i32()?;
            format!("BackendKeyData pid, {} bytes", std::mem::take(&mut body.0).len())
        }
        b'R' => format!("Authentication {} {}", body.i32()?, quoted(std::mem::take(&mut body.0))),
        b'G' | b'H' | b'W' => {
            let overall = body.take(1)?[0];
            let count = body.i16()?;
            let formats = (0..count).map(|_| Some(body.i16()?.to_string())).collect::<Option<Vec<String>>>()?;
            let name = if tag == b'G' { "CopyInResponse" } else { "CopyOutResponse" };
            format!("{name} {overall} [{}]", formats.join(" "))
        }
        b'v' => {
            let (version, count) = (body.i32()?, body.i32()?);
            let names = (0..count).map(|_| body.string()).collect::<Option<Vec<String>>>()?;
            format!("NegotiateProtocolVersion {}.{} [{}]", version >> 16, version & 0xffff, names.join(" "))
        }
        b'A' => {
            body.i32()?;
            format!("NotificationResponse {} {}", body.string()?, body.string()?)
        }
        _ => return None,
    })
}

fn row_description(body: &mut Body<'_>) -> Option<String> {
    let mut out = "RowDescription".to_owned();
    for _ in 0..body.i16()? {
        let name = body.string()?;
        let (table, column, ty) = (body.oid()?, body.i16()?, body.oid()?);
        let (size, modifier, format) = (body.i16()?, body.i32()?, body.i16()?);
        out.push_str(&format!(" [{name} column {table}.{column} type {ty} size {size} modifier {modifier} format {format}]"));
    }
    Some(out)
}

fn report(tag: u8, body: &mut Body<'_>, routines: bool) -> Option<String> {
    let mut out = if tag == b'E' { "ErrorResponse" } else { "NoticeResponse" }.to_owned();
    loop {
        match body.take(1)?[0] {
            0 => return Some(out),
            field => {
                let text = body.string()?;
                let shown = !matches!(field, b'F' | b'L') && (routines || field != b'R');
                out.push_str(&format!(" {}{}", char::from(field), if shown { &text } else { "" }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_printed() {
        let reading = Reading { bare_bytes: 1, routines: false };
        let bytes = b"N1\0\0\0\x04D\0\0\0\x0f\0\x02\0\0\0\x01x\xff\xff\xff\xffE\0\0\0\x0bSE\0Ff\0\0Z\0\0\0\x05IZ\0";
        let expected = [
            "Byte \"N\"",
            "ParseComplete",
            "DataRow [\"x\" null]",
            "ErrorResponse S\"E\" F",
            "ReadyForQuery I",
            "Bytes \"Z\\x00\"",
        ];
        assert_eq!(print(bytes, reading), expected);
        // A byte too many.
        assert_eq!(print(b"1\0\0\0\x05x", Reading::default()), ["Message \"1\" \"x\""]);
        let rows = b"d\0\0\0\x05x".repeat(100);
        assert_eq!(print(&rows, Reading::default()).len(), SHOWN + 1);
        assert_eq!(backend_key(b"1\0\0\0\x04K\0\0\0\x0c\0\0\0\x07abcd").unwrap(), b"\0\0\0\x07abcd");
    }
}
