//! A report as Markdown.

use std::fmt::Write as _;

use super::{Claim, Report, Section};

/// The verdict's word.
pub fn verdict(holds: bool) -> &'static str {
    if holds { "holds" } else { "differs" }
}

pub fn text(report: &Report) -> String {
    let mut out = format!("# {}\n\n{}\n\n", report.title, report.machine);
    for target in &report.targets {
        let _ = writeln!(out, "- **{}**: {}, {}", target.name, target.url, target.version);
    }
    let parameters: Vec<String> = report.parameters.iter().map(|(n, v)| format!("{n} {v}")).collect();
    let _ = writeln!(out, "\nParameters: {}", parameters.join(", "));
    for part in &report.sections {
        section(report, part, &mut out);
    }
    if !report.claims.is_empty() {
        claims(&report.claims, &mut out);
    }
    if !report.notes.is_empty() {
        out.push_str("\n## Notes\n\n");
        report.notes.iter().for_each(|n| out.push_str(&format!("- {n}\n")));
    }
    out
}

fn section(report: &Report, section: &Section, out: &mut String) {
    let _ = writeln!(out, "\n## {}\n", section.title);
    let heads = report.heads();
    let _ = writeln!(out, "| {} |", heads.join(" | "));
    let _ = writeln!(out, "|---|---|{}", "---:|".repeat(heads.len() - 2));
    for line in &section.lines {
        let _ = writeln!(out, "| {} |", report.cells(line).join(" | "));
    }
}

fn claims(claims: &[Claim], out: &mut String) {
    out.push_str("\n## Published, and what was measured here\n\n| published | target | here | |\n|---|---|---|---|\n");
    for claim in claims {
        for finding in &claim.findings {
            let _ =
                writeln!(out, "| {} | {} | {} | {} |", claim.published, finding.target, finding.measured, verdict(finding.holds));
        }
    }
}
