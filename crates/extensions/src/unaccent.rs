//! unaccent: text without accents, by Unicode's decompositions and a table of letters and signs that have none.

use std::collections::HashMap;
use std::sync::LazyLock;

use melba_fmgr::ScalarFn;
use melba_types::Datum;
use unicode_normalization::UnicodeNormalization;

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[("unaccent_dict", |_, a| {
    let text = &a[a.len() - 1];
    Ok(if text.as_str().is_ascii() { text.clone() } else { Datum::text(unaccented(text.as_str())) })
})];

/// Letters that are not composed: by their Unicode names (D WITH STROKE, LIGATURE OE), and by convention.
#[rustfmt::skip]
const LETTERS: &[(&str, &str)] = &[
    ("A", "Ⱥᴀ"),
    ("a", "ᶏⱥ"),
    ("AA", "Ꜳ"),
    ("aa", "ꜳ"),
    ("AE", "Æᴁ"),
    ("ae", "æ"),
    ("AO", "Ꜵ"),
    ("ao", "ꜵ"),
    ("AU", "Ꜷ"),
    ("au", "ꜷ"),
    ("AV", "ꜸꜺ"),
    ("av", "ꜹꜻ"),
    ("AY", "Ꜽ"),
    ("ay", "ꜽ"),
    ("B", "ƁƂɃʙᴃ"),
    ("b", "ƀƃɓᵬᶀ"),
    ("C", "ƇȻᴄꞒ"),
    ("c", "ƈȼɕꞓ"),
    ("D", "ÐĐƉƊƋᴅᴆꝹ"),
    ("d", "ðđƌȡɖɗᵭᶁᶑꝱꝺ"),
    ("db", "ȸ"),
    ("dz", "ʣʥ"),
    ("E", "ƐɆᴇ"),
    ("e", "ɇɛᶒᶓⱸ"),
    ("F", "ƑꜰꝻ"),
    ("f", "ƒᵮᶂꝼ"),
    ("G", "ƓǤɢʛꞠ"),
    ("g", "ǥɠɡᶃꞡ"),
    ("H", "ĦʜⱧꞪ"),
    ("h", "ħɦɧⱨ"),
    ("hv", "ƕ"),
    ("I", "ƖƗɪ"),
    ("i", "ıɨᶖⁱ"),
    ("J", "Ɉᴊ"),
    ("j", "ȷɉɟʝ"),
    ("K", "ƘᴋⱩꝀꝂꝄꞢ"),
    ("k", "ƙᶄⱪꝁꝃꝅꞣ"),
    ("L", "ŁȽʟᴌⱠⱢꝆꝈ"),
    ("l", "łƚȴɫɬɭᶅⱡꝇꝉꝲ"),
    ("LL", "Ỻ"),
    ("ll", "ỻ"),
    ("ls", "ʪ"),
    ("lz", "ʫ"),
    ("M", "ᴍⱮ"),
    ("m", "ɱᵯᶆꝳ"),
    ("N", "ŊƝɴꞐꞤ"),
    ("n", "ŋƞȵɲɳᵰᶇⁿꞑꞥꝴ"),
    ("O", "ØᴏꝊꝌ"),
    ("o", "øⱺꝋꝍ"),
    ("OE", "Œɶ"),
    ("oe", "œ"),
    ("OI", "Ƣ"),
    ("oi", "ƣ"),
    ("OO", "Ꝏ"),
    ("oo", "ꝏ"),
    ("P", "ƤᴘⱣꝐꝒꝔ"),
    ("p", "ƥᵱᵽᶈꝑꝓꝕ"),
    ("Q", "ꝖꝘ"),
    ("q", "ĸʠꝗꝙ"),
    ("qp", "ȹ"),
    ("R", "ɌʀⱤꝶꞦ"),
    ("r", "ɍɼɽɾᵲᵳᶉꝵꞧ"),
    ("S", "ⱾꜱꞨ"),
    ("s", "ȿʂᵴᶊẜẝꞩ"),
    ("SS", "ẞ"),
    ("ss", "ß"),
    ("T", "ŦƬƮȾᴛꞆ"),
    ("t", "ŧƫƭȶʈᵵⱦꝷꞇ"),
    ("TH", "ÞꝤꝦ"),
    ("th", "þᵺꝥꝧ"),
    ("ts", "ʦ"),
    ("U", "Ʉᴜ"),
    ("u", "ʉᶙ"),
    ("ue", "ᵫ"),
    ("V", "ƲᴠỼꝞ"),
    ("v", "ʋᶌỽⱱⱴꝟ"),
    ("VY", "Ꝡ"),
    ("vy", "ꝡ"),
    ("W", "ᴡⱲ"),
    ("w", "ⱳ"),
    ("x", "ᶍ"),
    ("Y", "ƳɎʏỾ"),
    ("y", "ƴɏỿ"),
    ("Z", "ƵȤᴢⱫⱿ"),
    ("z", "ƶȥɀʐʑᵶᶎⱬ"),
];

/// Signs with a similar one in ASCII.
#[rustfmt::skip]
const SIGNS: &[(&str, &str)] = &[
    ("!", "¡"), ("?", "¿"), ("(C)", "©"), ("(R)", "®"), ("(P)", "℗"), ("+/-", "±"), ("*", "×⁎"), ("/", "÷⁄∕"), ("\\", "∖"),
    ("|", "∣"), ("||", "‖∥"), ("-", "\u{ad}‐‑‒–—―−˗"), ("+", "˖"), ("~", "˜"), ("^", "˄ˆ"), ("`", "ˋ"), (":", "ː"), ("0", "〇"),
    ("'", "‘’‛′ʹʻʼʽˈ"), ("\"", "“”‟″ʺ〝〞"), (",", "‚、"), (",,", "„"), (".", "。"), ("<", "‹〈˂"), (">", "›〉˃"),
    ("<<", "«《≪"), (">>", "»》≫"), ("[", "⁅〔〘〚"), ("]", "⁆〕〙〛"), ("((", "⦅"), ("))", "⦆"), ("<-", "￩"), ("->", "￫"),
    ("CE", "₠"), ("Cr", "₢"), ("Fr.", "₣"), ("L.", "₤"), ("Pts", "₧"), ("Rs", "₹"), ("TL", "₺"), ("P", "℘"), ("Rx", "℞"),
    ("°C", "℃"), ("°F", "℉"), ("\'n", "ŉ"), ("L", "Ŀ"), ("l", "ŀ"), ("a", "ẚ"),
];

type Plain = HashMap<char, &'static str>;

fn plain_of(table: &'static [(&str, &str)]) -> Plain {
    table.iter().flat_map(|(plain, accented)| accented.chars().map(|c| (c, *plain))).collect()
}

fn letter(c: char) -> Option<&'static str> {
    static MAP: LazyLock<Plain> = LazyLock::new(|| plain_of(LETTERS));
    MAP.get(&c).copied()
}

fn sign(c: char) -> Option<&'static str> {
    static MAP: LazyLock<Plain> = LazyLock::new(|| plain_of(SIGNS));
    MAP.get(&c).copied()
}

/// Superscripts, letters and numbers in circles, some units and lines: their decomposition is not the character without an accent.
fn is_kept(c: char) -> bool {
    matches!(c, '²' | '³' | '¹' | '\u{374}' | '\u{37e}' | 'ϓ' | 'ϔ' | 'ᵸ' | 'ẛ' | '\u{1fef}' | '\u{2034}' | '\u{2057}' | '₨' | '℠' | '™'
        | '≠' | '≮' | '≯' | '﬩' | '\u{2070}' | '\u{2074}'..='\u{207e}' | '\u{2080}'..='\u{208e}' | '①'..='⑳' | 'Ⓐ'..='⓪'
        | '\u{3250}'..='\u{32cf}' | '㍸' | '㍹' | '㎖'..='㎘' | '㎟'..='㎦' | '㎨' | '㎯' | '㏿' | '︳' | '︴' | '﹍'..='﹏')
}

/// Marks that are dropped everywhere.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{362}' | '\u{20dd}'..='\u{20e0}' | '\u{20e2}'..='\u{20e4}')
}

fn is_fraction(c: char) -> bool {
    matches!(c, '¼'..='¾' | '⅐'..='⅟' | '↉')
}

fn push(c: char, out: &mut String) {
    if let Some(plain) = letter(c).or_else(|| sign(c)) {
        return out.push_str(plain);
    }
    if c.is_ascii() || is_kept(c) {
        return out.push(c);
    }
    let start = out.len();
    // "1½" is one and a half.
    out.extend(is_fraction(c).then_some(' '));
    for part in std::iter::once(c).nfkd().filter(|p| !is_mark(*p)) {
        match sign(part) {
            Some(plain) => out.push_str(plain),
            None => out.push(part),
        }
    }
    let plain = &out[start..];
    let is_greek = |c: char| matches!(c, '\u{370}'..='\u{3ff}');
    let of_greek = plain.chars().count() == 1 && plain.chars().all(is_greek);
    let of_ascii = plain.is_ascii() && (is_mark(c) || !plain.trim_matches(' ').is_empty());
    // Other scripts keep their marks, except one Cyrillic letter.
    if !of_ascii && !of_greek && !matches!(c, 'ё' | 'Ё') {
        out.truncate(start);
        out.push(c);
    }
}

fn unaccented(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    text.chars().for_each(|c| push(c, &mut out));
    out
}

#[cfg(test)]
mod tests {
    use super::unaccented;

    #[test]
    fn letters_lose_their_accents() {
        let pairs = [
            ("Hôtel", "Hotel"),
            ("ёлка", "елка"),
            ("Œuvre ßtraße", "OEuvre sstrasse"),
            ("ﬁ ½ ΰ", "fi  1/2 υ"),
            ("e\u{301}", "e"),
            ("日本 é й", "日本 e й"),
            ("Łódź Ørsted", "Lodz Orsted"),
            ("m² ①", "m² ①"),
            ("“x” – y", "\"x\" - y"),
        ];
        for (accented, plain) in pairs {
            assert_eq!(unaccented(accented), plain);
        }
    }
}
