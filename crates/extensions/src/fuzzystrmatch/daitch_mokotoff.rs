//! Daitch-Mokotoff Soundex: six digits for the sounds of a name, several codes where letters may sound in several ways.

use melba_types::Result;
use melba_types::limits::tick;

const LENGTH: usize = 6;

/// Digits at the beginning of a name, before a vowel, and elsewhere; `X` for none.
type Sounds = [&'static str; 3];

/// Sequences of letters with their sounds, alternatives in a row; `[`, `\` and `]` stand for letters A and E with ogonek and T with
/// cedilla. The coding chart of Avotaynu and JewishGen.
#[rustfmt::skip]
const CHART: &[(&str, &[Sounds])] = &[
    ("AI AJ AY EI EJ EY OI OJ OY UI UJ UY UE", &[["0", "1", "X"]]),
    ("AU", &[["0", "7", "X"]]),
    ("A E I O U", &[["0", "X", "X"]]),
    ("[ \\", &[["X", "X", "6"], ["X", "X", "X"]]),
    ("]", &[["3", "3", "3"], ["4", "4", "4"]]),
    ("EU", &[["1", "1", "X"]]),
    ("IA IE IO IU Y", &[["1", "X", "X"]]),
    ("J", &[["1", "X", "X"], ["4", "4", "4"]]),
    ("B F FB P PF PH V W", &[["7", "7", "7"]]),
    ("C CH", &[["5", "5", "5"], ["4", "4", "4"]]),
    ("CK", &[["5", "5", "5"], ["45", "45", "45"]]),
    ("CHS KS X", &[["5", "54", "54"]]),
    ("CZ CS CSZ CZS DRZ DRS DS DSH DSZ DZ DZH DZS S SCH SH SZ TCH TTCH TTSCH TRZ TRS TSCH TSH TS TTS TTSZ TC TZ TTZ TZS TSZ Z ZH ZS ZSCH ZSH",
        &[["4", "4", "4"]]),
    ("D DT T TH", &[["3", "3", "3"]]),
    ("G K KH Q", &[["5", "5", "5"]]),
    ("H", &[["5", "5", "X"]]),
    ("L", &[["8", "8", "8"]]),
    ("M N", &[["6", "6", "6"]]),
    ("MN NM", &[["66", "66", "66"]]),
    ("R", &[["9", "9", "9"]]),
    ("RZ RS", &[["94", "94", "94"], ["4", "4", "4"]]),
    ("SC SCHTSCH SCHTSH SCHTCH SHTCH SHCH SHTSH STCH STSCH STRZ STRS STSH SZCZ SZCS ZDZ ZDZH ZHDZH", &[["2", "4", "4"]]),
    ("SHT SCHT SCHD ST SZT SHD SZD SD ZD ZHD", &[["2", "43", "43"]]),
];

/// Behind the last letter.
const END: &[Sounds] = &[["X", "X", "X"]];

/// The codes of a text; `None` when it has no letters.
///
/// # Errors
/// Those of a statement that is cancelled.
pub fn daitch_mokotoff(text: &str) -> Result<Option<Vec<String>>> {
    let letters: Vec<u8> = text.chars().filter_map(letter).collect();
    let mut rest = &letters[..];
    let Some(mut sounds) = next_sounds(&mut rest) else { return Ok(None) };
    let mut coding = Coding { branches: vec![Branch::default()], leaves: vec![0], next: Vec::new(), done: Vec::new(), round: 0 };
    loop {
        let following = next_sounds(&mut rest);
        coding.advance(sounds, following.unwrap_or(END))?;
        match following {
            Some(following) if !coding.leaves.is_empty() => sounds = following,
            _ => break,
        }
    }
    let unfinished = coding.leaves.iter().map(|leaf| coding.branches[*leaf].padded());
    let all = coding.done.iter().cloned().chain(unfinished);
    Ok(Some(all.collect()))
}

/// A letter of the chart; accents of Latin-1 count for nothing.
fn letter(c: char) -> Option<u8> {
    Some(match c {
        'a'..='z' | 'A'..='Z' => c.to_ascii_uppercase() as u8,
        'À'..='Å' | 'à'..='å' => b'A',
        'Æ' | 'È'..='Ë' | 'æ' | 'è'..='ë' => b'E',
        'Ç' | 'ç' => b'C',
        'Ì'..='Ï' | 'ì'..='ï' => b'I',
        'Ð' | 'Þ' | 'ð' | 'þ' => b'D',
        'Ñ' | 'ñ' => b'N',
        'Ò'..='Ö' | 'Ø' | 'ò'..='ö' | 'ø' => b'O',
        'Ù'..='Ü' | 'ù'..='ü' => b'U',
        'Ý' | 'ý' | 'ÿ' => b'Y',
        'ß' => b'S',
        'Ą' | 'ą' => b'[',
        'Ę' | 'ę' => b'\\',
        'Ţ' | 'ţ' | 'Ț' | 'ț' => b']',
        _ => return None,
    })
}

/// The sounds of the longest sequence of the chart with which letters begin, which are taken.
fn next_sounds(letters: &mut &[u8]) -> Option<&'static [Sounds]> {
    let sequences = CHART.iter().flat_map(|(all, sounds)| all.split(' ').map(move |sequence| (sequence, *sounds)));
    let longest =
        sequences.filter(|(sequence, _)| letters.starts_with(sequence.as_bytes())).max_by_key(|(sequence, _)| sequence.len())?;
    *letters = &letters[longest.0.len()..];
    Some(longest.1)
}

/// Which column of the chart a digit came from: a bit for vowels that follow, and one for all else.
type Columns = u8;

/// The beginning of a code, and what the letter before has added to it.
#[derive(Clone, Default)]
struct Branch {
    digits: String,
    /// Codes that continue with a digit.
    children: [Option<usize>; 10],
    /// The letter that it was last visited for.
    round: usize,
    is_leaf: bool,
    /// The digits of the letter before, of which equal ones are not repeated; and of this one.
    before: [Option<u8>; 2],
    now: [Option<u8>; 2],
    columns_before: Columns,
    columns: Columns,
}

impl Branch {
    fn visit(&mut self, round: usize) {
        if self.round < round {
            self.before = std::mem::take(&mut self.now);
            self.columns_before = std::mem::take(&mut self.columns);
            self.is_leaf = false;
            self.round = round;
        }
    }

    fn note(&mut self, digit: u8, column: Columns) {
        self.columns |= column;
        match self.now[0] {
            None => self.now[0] = Some(digit),
            Some(first) if first != digit => self.now[1] = Some(digit),
            Some(_) => {}
        }
    }

    fn padded(&self) -> String {
        format!("{:0<LENGTH$}", self.digits)
    }
}

/// The codes of a name as far as its letters are read.
struct Coding {
    branches: Vec<Branch>,
    /// Those that are not complete, in the order in which they were found, and those of the next letter.
    leaves: Vec<usize>,
    next: Vec<usize>,
    done: Vec<String>,
    round: usize,
}

impl Coding {
    fn advance(&mut self, sounds: &[Sounds], following: &[Sounds]) -> Result<()> {
        for leaf in std::mem::take(&mut self.leaves) {
            for sound in sounds {
                for after in following {
                    tick()?;
                    let is_before_vowel = after[0].as_bytes()[0] <= b'1';
                    let column = if self.round == 0 { 0 } else { 2 - usize::from(is_before_vowel) };
                    // Whether the letter is a vowel, as the letter before it was told.
                    let expected = 1 + Columns::from(sound[0].as_bytes()[0] > b'1');
                    self.add(leaf, expected, column, sound[column].as_bytes(), 0);
                }
            }
        }
        self.leaves = std::mem::take(&mut self.next);
        self.round += 1;
        Ok(())
    }

    /// Adds the digits from number `at` on to a branch.
    fn add(&mut self, branch: usize, expected: Columns, column: usize, digits: &[u8], mut at: usize) {
        let digit = digits[at];
        let found = &mut self.branches[branch];
        found.visit(self.round);
        if found.columns_before != 0 && found.columns_before & expected == 0 {
            return;
        }
        let is_repeated = at == 0 && found.before.contains(&Some(digit));
        let is_added = digit != b'X' && (at > 0 || found.before[0] != Some(digit) || found.before[1].is_some());
        let kept = (digit == b'X' || is_repeated).then_some(branch);
        let added = if is_added { self.child(branch, digit) } else { None };
        for branch in kept.into_iter().chain(added) {
            self.branches[branch].note(digit, column as Columns);
            at += 1;
            if at < digits.len() {
                self.add(branch, expected, column, digits, at);
            } else if !std::mem::replace(&mut self.branches[branch].is_leaf, true) {
                self.next.push(branch);
            }
        }
    }

    /// The branch that continues with a digit, unless the code is complete then.
    fn child(&mut self, parent: usize, digit: u8) -> Option<usize> {
        let place = usize::from(digit - b'0');
        let of_parent = &self.branches[parent];
        if let Some(child) = of_parent.children[place] {
            let is_complete = self.branches[child].digits.len() == LENGTH;
            if !is_complete {
                self.branches[child].visit(self.round);
            }
            return (!is_complete).then_some(child);
        }
        let digits = format!("{}{}", of_parent.digits, char::from(digit));
        let is_complete = digits.len() == LENGTH;
        if is_complete {
            self.done.push(digits.clone());
        }
        // A new branch moves on to this letter: what its parent knew of the column before.
        let mut child = Branch { digits, columns: of_parent.columns_before, ..Branch::default() };
        child.visit(self.round);
        self.branches[parent].children[place] = Some(self.branches.len());
        self.branches.push(child);
        (!is_complete).then_some(self.branches.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_codes_of_all_their_sounds() {
        let cases = [
            ("Augsburg", "054795"),
            ("Mannheim", "665600"),
            ("Chernowitz", "596740 496740"),
            ("Cherkassy", "595400 495400"),
            ("Nowy Targ", "673950"),
            ("Ceniow", "567000 467000"),
            ("Holubica", "587500 587400"),
            ("Przemysl", "746480 794648"),
            ("Rosochowaciec", "944744 945744 944755 944754 944745 945745 945754 945755"),
            ("'OBrien", "079600"),
            ("CJC", "550000 540000 545000 450000 400000 440000"),
            ("BIERSCHBACH", "794575 794574 794750 794740 745750 745740 747500 747400"),
            ("Straßburg", "294795"),
            ("brzęczy", "746400 794640 794400 744000"),
        ];
        for (name, codes) in cases {
            let mut found = daitch_mokotoff(name).unwrap().unwrap_or_default();
            let mut expected: Vec<String> = codes.split(' ').map(str::to_owned).collect();
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{name}");
        }
        assert_eq!(daitch_mokotoff("12").unwrap(), None);
    }
}
