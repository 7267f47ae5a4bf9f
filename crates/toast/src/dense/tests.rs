//! Sections as a whole: planned, compressed, read again.

use super::*;

fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|i| (chunks::mix(seed << 32 | i) >> 24) as u8).collect()
}

/// Pages of a few families: a template, and some unique content.
fn pages(count: usize) -> Vec<Vec<u8>> {
    let template = |family: u64| noise(family, 6000);
    (0..count as u64).map(|n| [&template(n % 3)[..3000], &noise(100 + n, 300), &template(n % 3)[3000..]].concat()).collect()
}

fn spooled(values: &[Vec<u8>]) -> Spool {
    let mut spool = Spool::default();
    values.iter().for_each(|value| spool.push(value, Treatment::Dense));
    spool.close();
    spool
}

/// Bytes of a section's blocks and of its reference; checks that every value comes back.
fn stored_bytes(values: &[Vec<u8>], spool: &Spool, options: &DenseOptions) -> (usize, usize) {
    let plan = Plan::of(spool, None, options, || Pace::Thorough).unwrap();
    let mut seen = vec![false; values.len()];
    let mut encoder = BlockEncoder::new(&plan.reference, plan.level);
    let (mut bytes, mut reader) = (0, spool.reader());
    for block in &plan.blocks {
        let mut content = Vec::new();
        for value in &block.values {
            assert!(!std::mem::replace(&mut seen[*value as usize], true), "a value in two blocks");
            assert_eq!(reader.get(*value as usize).unwrap(), values[*value as usize]);
            content.extend_from_slice(&values[*value as usize]);
        }
        let mut out = b"before".to_vec();
        if block.treatment == Treatment::Dense && encoder.encode(&content, content.len(), &mut out) {
            let mut target = vec![0; content.len()];
            decode_block(&plan.reference, &out[6..], &mut target).unwrap();
            assert!(target == content);
            bytes += out.len() - 6;
        } else {
            assert_eq!(out, b"before");
            bytes += content.len();
        }
    }
    assert!(seen.iter().all(|seen| *seen));
    (bytes, plan.reference.len())
}

#[test]
fn what_values_share_is_stored_once() {
    let values = pages(300);
    for effort in [Effort::Normal, Effort::High] {
        let options = DenseOptions { reference_bytes_max: 1 << 20, block_bytes: 16 << 10, chunks_max: 1 << 20, effort };
        let (bytes, reference) = stored_bytes(&values, &spooled(&values), &options);
        assert!((18_000..40_000).contains(&reference), "three templates in {reference} bytes");
        // The rest are the pages' unique bytes, which are random.
        assert!((90_000..110_000).contains(&bytes), "{bytes}");
    }
    let options = DenseOptions { reference_bytes_max: 5000, block_bytes: 16 << 10, chunks_max: 1 << 20, effort: Effort::Normal };
    let (bytes, reference) = stored_bytes(&values, &spooled(&values), &options);
    assert!(reference <= 5001 && bytes > 300_000, "{bytes} bytes with a reference of {reference}");
}

#[test]
fn an_offered_reference_is_taken_when_it_is_about_as_good() {
    let options = DenseOptions { reference_bytes_max: 1 << 20, ..DenseOptions::default() };
    let plan = |values: &[Vec<u8>], offer, options| Plan::of(&spooled(values), offer, options, || Pace::Thorough).unwrap();
    let offer = |reference: &[u8], stored_bytes| Some(Offer { reference: reference.to_vec(), stored_bytes, is_crowded: false });
    let values = pages(100);
    let own = plan(&values, None, &options).reference;
    let taken = |values: &[Vec<u8>], stored_bytes, options| {
        let plan = plan(values, offer(&own, stored_bytes), options);
        assert_eq!(plan.is_offered, plan.reference == own);
        plan.is_offered
    };
    // Other pages of the same families.
    let like = pages(300).split_off(100);
    assert!(taken(&like, own.len(), &options));
    assert!(!taken(&like, own.len() * 2, &options), "it would take more space in the file");
    let small = DenseOptions { reference_bytes_max: own.len() / 3 - 2, ..options };
    assert!(!taken(&like, own.len(), &small), "it would take more memory than this section may");
    // Where memory has no room for more references, one that costs some space is continued too.
    let longer = [own.clone(), noise(1000, 10_000)].concat();
    let continues = |is_crowded| {
        let offer = Offer { reference: longer.clone(), stored_bytes: longer.len(), is_crowded };
        plan(&like, Some(offer), &options).reference.starts_with(&longer)
    };
    assert!(continues(true) && !continues(false));
    let unlike: Vec<Vec<u8>> = like.iter().map(|page| page.iter().map(|byte| byte ^ 1).collect()).collect();
    assert!(!taken(&unlike, own.len(), &options));
    let noise: Vec<Vec<u8>> = (0..50).map(|n| noise(n, 5000)).collect();
    assert!(!taken(&noise, own.len(), &options));
}

#[test]
fn an_offered_reference_is_continued_until_it_has_what_sections_share() {
    // A section of its own has one of the three templates.
    let options = DenseOptions { reference_bytes_max: 7000, block_bytes: 16 << 10, ..DenseOptions::default() };
    let values = pages(300);
    let plan = |from: usize, neighbour: Option<&Plan>| {
        let offer = |plan: &Plan| {
            let mut stored = Vec::new();
            let is_smaller = BlockEncoder::new(&[], plan.level).encode(&plan.reference, plan.reference.len(), &mut stored);
            {
                let stored_bytes = if is_smaller { stored.len() } else { plan.reference.len() };
                Offer { reference: plan.reference.clone(), stored_bytes, is_crowded: false }
            }
        };
        Plan::of(&spooled(&values[from..from + 100]), neighbour.map(offer), &options, || Pace::Thorough).unwrap()
    };
    let first = plan(0, None);
    assert!(first.reference.len() <= 7001);
    let second = plan(100, Some(&first));
    assert!(!second.is_offered && second.reference.starts_with(&first.reference));
    assert!((18_000..=21_001).contains(&second.reference.len()), "{}", second.reference.len());
    let third = plan(200, Some(&second));
    assert!(third.is_offered && third.reference == second.reference);
}

#[test]
fn nothing_in_common_gets_no_reference() {
    let values: Vec<Vec<u8>> = (0..50).map(|n| noise(n, 5000)).collect();
    let (bytes, reference) = stored_bytes(&values, &spooled(&values), &DenseOptions::default());
    assert_eq!((bytes, reference), (250_000, 0));
}

#[test]
fn values_of_any_length_come_back() {
    let lengths = [0, 1, 7, 100, 0, 40_000, 3, 300_000, 33_000, 0];
    let values: Vec<Vec<u8>> = lengths.iter().map(|n| noise(1, *n)).collect();
    for count in 0..=lengths.len() {
        stored_bytes(&values[..count], &spooled(&values[..count]), &DenseOptions::default());
    }
}

#[test]
fn what_is_stored_as_it_is_lies_apart() {
    let mut spool = Spool::default();
    let values = pages(20);
    for (n, value) in values.iter().enumerate() {
        spool.push(value, if n % 2 == 0 { Treatment::Dense } else { Treatment::AsIs });
    }
    spool.close();
    let plan = Plan::of(&spool, None, &DenseOptions::default(), || Pace::Thorough).unwrap();
    for block in &plan.blocks {
        assert!(block.values.iter().all(|v| (v % 2 == 0) == (block.treatment == Treatment::Dense)));
    }
    stored_bytes(&values, &spool, &DenseOptions::default());
}

#[test]
fn damaged_blocks_are_errors_or_other_bytes() {
    let values = pages(30);
    let options = DenseOptions { block_bytes: 8 << 10, ..DenseOptions::default() };
    let plan = Plan::of(&spooled(&values), None, &options, || Pace::Thorough).unwrap();
    let mut out = Vec::new();
    assert!(BlockEncoder::new(&plan.reference, plan.level).encode(&values[4], values[4].len(), &mut out));
    let mut target = vec![0; values[4].len()];
    for cut in 0..out.len() {
        assert!(decode_block(&plan.reference, &out[..cut], &mut target).is_err(), "cut at {cut}");
    }
    assert!(decode_block(&plan.reference, &out, &mut target[1..]).is_err());
    assert!(decode_block(&plan.reference[..20], &out, &mut target).is_err(), "offsets beyond a shorter reference");
    for at in 0..out.len() {
        let mut damaged = out.clone();
        damaged[at] ^= 0x55;
        // Whatever the result, nothing is read or written out of bounds.
        let _ = decode_block(&plan.reference, &damaged, &mut target);
    }
}
