//! A dump as an SQL script, from the server or from an archive.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::Result;
use crate::archive::{ArchiveReader, Contents, Section, StreamKind};
use crate::large_objects::{Lines, Runs, object};
use crate::privileges::quoted;

/// A stream's bytes, cut anywhere.
pub type Blocks<'a> = Box<dyn Iterator<Item = Result<Vec<u8>>> + 'a>;

/// Where the bytes of streams come from.
pub trait Streams {
    fn blocks(&mut self, stream: u32) -> Result<Blocks<'_>>;
}

impl Streams for &ArchiveReader {
    fn blocks(&mut self, stream: u32) -> Result<Blocks<'_>> {
        Ok(Box::new(ArchiveReader::blocks(self, stream)?))
    }
}

const HEAD: &str = "SET statement_timeout = 0;
SET lock_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SET check_function_bodies = false;
SET client_min_messages = warning;
SELECT pg_catalog.set_config('search_path', '', false);
";

/// Writes the script to a new file or, for -, to standard output.
pub fn write(to: &Path, contents: &Contents, streams: &mut dyn Streams) -> Result<()> {
    let failed = |e: std::io::Error| format!("could not write {}: {e}", to.display());
    if to == Path::new("-") {
        return script(&mut BufWriter::new(std::io::stdout()), contents, streams);
    }
    let file = File::options().write(true).create_new(true).open(to).map_err(failed)?;
    script(&mut BufWriter::new(&file), contents, streams)?;
    file.sync_all().map_err(failed)
}

fn script(out: &mut impl Write, contents: &Contents, streams: &mut dyn Streams) -> Result<()> {
    put(out, format_args!("-- Database {} of {}, as of {}\n\n{HEAD}\n", contents.database, contents.server, contents.taken_at))?;
    section(out, contents, Section::Before)?;
    for (number, info) in contents.numbered() {
        let blocks = streams.blocks(number)?;
        match &info.kind {
            StreamKind::Table { target, .. } => rows(out, target, blocks)?,
            StreamKind::LargeObjects(_) => objects(out, blocks)?,
            StreamKind::LargeObjectPages(_) => pages(out, blocks)?,
        }
    }
    section(out, contents, Section::After)?;
    out.flush().map_err(write_error)
}

fn section(out: &mut impl Write, contents: &Contents, section: Section) -> Result<()> {
    let entries = contents.entries.iter().filter(|e| e.section == section);
    entries.into_iter().try_for_each(|e| put(out, format_args!("{}\n", e.sql)))
}

fn rows(out: &mut impl Write, target: &str, blocks: Blocks) -> Result<()> {
    put(out, format_args!("\nCOPY {target} FROM stdin;\n"))?;
    for block in blocks {
        out.write_all(&block?).map_err(write_error)?;
    }
    put(out, format_args!("\\.\n\n"))
}

fn objects(out: &mut impl Write, blocks: Blocks) -> Result<()> {
    let mut lines = Lines::new(blocks);
    while let Some(line) = lines.next()? {
        let object = object(line)?;
        put(
            out,
            format_args!(
                "SELECT pg_catalog.lo_create({0}); ALTER LARGE OBJECT {0} OWNER TO {1};\n",
                object.oid,
                quoted(&object.owner)
            ),
        )?;
        if let Some(acl) = &object.acl {
            put(out, format_args!("{}\n", object.privileges(acl)?))?;
        }
    }
    Ok(())
}

fn pages(out: &mut impl Write, blocks: Blocks) -> Result<()> {
    let mut runs = Runs::new(blocks);
    while let Some(run) = runs.next()? {
        put(out, format_args!("SELECT pg_catalog.lo_put({}, {}, '\\x", run.oid, run.offset))?;
        run.bytes.iter().try_for_each(|b| put(out, format_args!("{b:02x}")))?;
        put(out, format_args!("');\n"))?;
    }
    Ok(())
}

fn put(out: &mut impl Write, text: std::fmt::Arguments) -> Result<()> {
    out.write_fmt(text).map_err(write_error)
}

fn write_error(e: std::io::Error) -> String {
    format!("could not write the script: {e}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::{Entry, StreamInfo};
    use crate::large_objects::{OidRange, tests as pages};

    struct Fixed;

    impl Streams for Fixed {
        fn blocks(&mut self, stream: u32) -> Result<Blocks<'_>> {
            let bytes = match stream {
                1 => b"1\ta\n".to_vec(),
                2 => b"5\tann\t{ann=rw/ann,=r/ann}\n".to_vec(),
                _ => pages::stream(&[pages::tuple(5, 0, b"hi")]),
            };
            Ok(Box::new(std::iter::once(Ok(bytes))))
        }
    }

    #[test]
    fn a_script_has_definitions_rows_objects_in_order() {
        let entry = |section, sql: &str| Entry { section, kind: "TABLE".into(), schema: None, name: "t".into(), sql: sql.into() };
        let table = StreamKind::Table { schema: "s".into(), name: "t".into(), target: "s.t (a)".into() };
        let range = OidRange { first: 5, last: u32::MAX };
        let contents = Contents {
            server: "v".into(),
            database: "d".into(),
            taken_at: "now".into(),
            entries: vec![entry(Section::Before, "CREATE TABLE s.t ();"), entry(Section::After, "CREATE INDEX;")],
            streams: [table, StreamKind::LargeObjects(range), StreamKind::LargeObjectPages(range)]
                .map(|kind| StreamInfo { kind })
                .to_vec(),
        };
        let mut out = Vec::new();
        script(&mut out, &contents, &mut Fixed).unwrap();
        let text = String::from_utf8(out).unwrap();
        let parts = [
            "CREATE TABLE s.t ();",
            "COPY s.t (a) FROM stdin;\n1\ta\n\\.\n",
            "lo_create(5); ALTER LARGE OBJECT 5 OWNER TO \"ann\";",
            "GRANT SELECT ON LARGE OBJECT 5 TO PUBLIC;",
            "lo_put(5, 0, '\\x6869');",
            "CREATE INDEX;",
        ];
        let places: Vec<usize> = parts.iter().map(|p| text.find(p).unwrap_or_else(|| panic!("{p} is not in {text}"))).collect();
        assert!(places.is_sorted(), "{text}");
    }
}
