//! The rows of TPC-H as files, TABLE.csv each with a header, for `cargo xtask tpch`.

#![allow(clippy::disallowed_methods, reason = "it tests a server from outside, by real time")]

use std::fmt::Display;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use tpchgen::csv::{CustomerCsv, LineItemCsv, NationCsv, OrderCsv, PartCsv, PartSuppCsv, RegionCsv, SupplierCsv};
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator, RegionGenerator,
    SupplierGenerator,
};

const USAGE: &str = "usage: tpch FOLDER SCALE";

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, scale] = arguments.as_slice() else { return Err(USAGE.into()) };
    let folder = Path::new(folder);
    let scale: f64 = scale.parse().map_err(|_| format!("{scale} is no number"))?;
    write(folder, "region", RegionCsv::header(), RegionGenerator::new(scale, 1, 1).iter().map(RegionCsv::new))?;
    write(folder, "nation", NationCsv::header(), NationGenerator::new(scale, 1, 1).iter().map(NationCsv::new))?;
    write(folder, "part", PartCsv::header(), PartGenerator::new(scale, 1, 1).iter().map(PartCsv::new))?;
    write(folder, "supplier", SupplierCsv::header(), SupplierGenerator::new(scale, 1, 1).iter().map(SupplierCsv::new))?;
    write(folder, "partsupp", PartSuppCsv::header(), PartSuppGenerator::new(scale, 1, 1).iter().map(PartSuppCsv::new))?;
    write(folder, "customer", CustomerCsv::header(), CustomerGenerator::new(scale, 1, 1).iter().map(CustomerCsv::new))?;
    write(folder, "orders", OrderCsv::header(), OrderGenerator::new(scale, 1, 1).iter().map(OrderCsv::new))?;
    write(folder, "lineitem", LineItemCsv::header(), LineItemGenerator::new(scale, 1, 1).iter().map(LineItemCsv::new))?;
    Ok(())
}

fn write(folder: &Path, table: &str, header: &str, rows: impl Iterator<Item = impl Display>) -> Result<(), String> {
    let path = folder.join(format!("{table}.csv"));
    let failed = |e: std::io::Error| format!("{}: {e}", path.display());
    let mut file = BufWriter::new(File::create(&path).map_err(failed)?);
    writeln!(file, "{header}").map_err(failed)?;
    for row in rows {
        writeln!(file, "{row}").map_err(failed)?;
    }
    file.flush().map_err(failed)
}
