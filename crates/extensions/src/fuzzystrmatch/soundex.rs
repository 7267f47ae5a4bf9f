//! Soundex: a letter and three digits for the sounds of a name.

/// Digits of the letters from A to Z; those of 0 have none.
const DIGITS: &[u8; 26] = b"01230120022455012623010202";
const LENGTH: usize = 4;

/// The digit of a letter; any other character stands for itself.
fn digit(byte: u8) -> u8 {
    let upper = byte.to_ascii_uppercase();
    if upper.is_ascii_uppercase() { DIGITS[usize::from(upper - b'A')] } else { byte }
}

/// `None` for a text without letters.
pub fn soundex(text: &str) -> Option<[u8; LENGTH]> {
    let bytes = text.as_bytes();
    let first = bytes.iter().position(u8::is_ascii_alphabetic)?;
    let mut code = [b'0'; LENGTH];
    code[0] = bytes[first].to_ascii_uppercase();
    // Letters with the digit of their neighbour sound like it.
    let sounds = bytes[first..].windows(2).filter(|pair| pair[1].is_ascii_alphabetic() && digit(pair[0]) != digit(pair[1]));
    let digits = sounds.map(|pair| digit(pair[1])).filter(|digit| *digit != b'0');
    code[1..].iter_mut().zip(digits).for_each(|(place, digit)| *place = digit);
    Some(code)
}

/// How many characters of the codes are equal.
pub fn difference(one: &str, other: &str) -> i32 {
    let code = |text| soundex(text).unwrap_or_default();
    code(one).iter().zip(code(other)).filter(|(a, b)| **a == *b).count() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_sound_have_one_code() {
        assert_eq!(soundex("Robert"), soundex("rupert"));
        assert_eq!(soundex(" Ashcraft").as_ref(), Some(b"A226"));
        assert_eq!(soundex("-"), None);
        assert_eq!((difference("Anne", "Ann"), difference("Anne", "Margaret"), difference("", "")), (4, 0, 4));
    }
}
