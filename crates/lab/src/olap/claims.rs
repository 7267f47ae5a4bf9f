//! The published results of the experiment, and whether they hold here.

use super::Peer;
use crate::report::{Claim, Collector, Finding};

/// A line that was published: section, line, the faster database, the slower one, and how many times as fast it was.
type Published = (&'static str, &'static str, &'static str, &'static str, f64);

/// None is available: figures are entered here when they are, and then stand beside the measured ones.
const PUBLISHED: &[Published] = &[];
/// Published ratios hold within this factor.
const TOLERANCE: f64 = 2.0;

pub fn judge(collector: &Collector, peers: &[Peer]) -> Vec<Claim> {
    PUBLISHED.iter().map(|published| claim(published, collector, peers)).collect()
}

fn claim((section, line, faster, slower, times): &Published, collector: &Collector, peers: &[Peer]) -> Claim {
    let value = |name: &str| {
        let index = peers.iter().position(|peer| peer.name == name)?;
        collector.value(section, line, index)
    };
    let finding = |measured: f64| Finding {
        target: (*faster).to_owned(),
        measured: format!("{measured:.2} times"),
        holds: (measured / times).max(times / measured) <= TOLERANCE,
    };
    let measured = value(slower).zip(value(faster)).map(|(slower, faster)| slower / faster);
    Claim {
        published: format!("{section}, {line}: {faster} is {times} times as fast as {slower}"),
        findings: measured.map(finding).into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Key;

    #[test]
    fn ratios_are_judged_where_both_were_measured() {
        let peers = ["A", "B"].map(Peer::unreachable);
        let mut collector = Collector::new(2);
        collector.add(Key::lower("S", "l", "s"), 0, 1.0);
        collector.add(Key::lower("S", "l", "s"), 1, 6.0);
        let holds = |times| claim(&("S", "l", "A", "B", times), &collector, &peers).findings[0].holds;
        assert_eq!([2.0, 5.0, 13.0].map(holds), [false, true, false]);
        assert!(claim(&("S", "l", "A", "C", 1.0), &collector, &peers).findings.is_empty());
    }
}
