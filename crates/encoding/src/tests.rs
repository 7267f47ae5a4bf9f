//! The mappings equal those recorded from PostgreSQL 18.

use super::*;

fn named(name: &str) -> Encoding {
    Encoding::by_name(name).expect("an encoding")
}

/// FNV-1a over numbers.
fn hash(numbers: impl Iterator<Item = u32>) -> u64 {
    let bytes = numbers.flat_map(u32::to_be_bytes);
    bytes.fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |n, b| n << 8 | u32::from(*b))
}

/// Of convert_from over all sequences of up to three bytes, and of convert_to over the plane 0 (to U+26AC for single bytes).
const RECORDED: [(&str, u64, u64); 34] = [
    ("LATIN2", 0xbc33_4321_2ccf_6e14, 0xcf63_eaef_b3e4_0604),
    ("LATIN3", 0x9eac_b9e2_b4d2_f440, 0x4553_2ea3_73fa_0ae8),
    ("LATIN4", 0xd405_9035_1d96_5762, 0x9918_515e_1152_a98a),
    ("LATIN5", 0xa0ec_3476_1ae2_fac6, 0x98c5_ec85_f5b7_0482),
    ("LATIN6", 0xf0fb_7b42_dc53_f8e3, 0xc46a_5fec_1d65_0ff3),
    ("LATIN7", 0x8aae_d89b_6127_039c, 0xb5ea_54b5_bfef_3380),
    ("LATIN8", 0x06a3_9ceb_6881_8533, 0x2c6f_a5a7_c567_0833),
    ("LATIN9", 0xf3b6_2f41_c8d0_205e, 0x59cb_c787_5a8b_5a92),
    ("LATIN10", 0x6d51_314b_fb6d_cd1e, 0x8dda_4b0f_b6bb_8072),
    ("ISO_8859_5", 0x379c_0e4b_8dd6_dea0, 0xce1f_7b31_be5b_ed34),
    ("ISO_8859_6", 0x865a_3325_2da6_404d, 0x819b_b34e_37e2_5255),
    ("ISO_8859_7", 0x5924_a8cb_07e0_f317, 0xad5c_857e_efc1_b277),
    ("ISO_8859_8", 0xfd76_6c34_1615_90f6, 0x1168_4b75_90f1_1cc6),
    ("WIN1250", 0x63da_4e03_b2f9_a552, 0xa852_e352_4509_3ea2),
    ("WIN1251", 0x410a_75a7_1755_6f4f, 0xc7e1_668a_47e9_6847),
    ("WIN1252", 0x0d88_03f4_4744_8856, 0x8f3c_c414_d196_00b2),
    ("WIN1253", 0x580d_41c5_bede_e8d4, 0x33a0_a17d_384b_72c4),
    ("WIN1254", 0x3485_ce2a_50ba_a958, 0xaf69_3d86_ebdb_3c00),
    ("WIN1255", 0x3913_40e4_8ef8_e0d6, 0x0453_a01e_dd43_e73a),
    ("WIN1256", 0xf52c_ae3a_4dce_6236, 0xd14f_b78a_18d6_c99a),
    ("WIN1257", 0xbcab_3bb2_1281_f361, 0x6ba1_feb6_bbf8_c439),
    ("WIN1258", 0x91b3_d6a2_38af_d578, 0x65c7_5cac_5328_9cf8),
    ("WIN866", 0x1a18_3198_39b9_cb9d, 0x841e_3ff0_9e5f_6d79),
    ("WIN874", 0xc988_4532_0249_0701, 0x742e_0212_d76a_43d9),
    ("KOI8R", 0x180d_234a_31a2_d624, 0x6b6c_82c7_1709_7c78),
    ("KOI8U", 0x1131_4f70_e850_7f2b, 0x5f68_e1a2_0dad_a993),
    ("SJIS", 0x01bb_bc71_2d10_815b, 0xded6_648f_896e_f8a8),
    ("BIG5", 0x29de_fbca_4863_95a1, 0xba48_daea_a649_469c),
    ("GBK", 0x8b0d_849d_1fb5_0a61, 0x91a0_9b4c_7fd1_97f1),
    ("GB18030", 0x4789_964a_5a54_8147, 0x1608_abee_f341_20cd),
    ("UHC", 0x1e53_ef5f_4396_50bd, 0xbc9a_c8ce_6f03_781d),
    ("EUC_JP", 0x1220_2ff0_fe63_8b1e, 0x36eb_f7f5_47a8_13aa),
    ("EUC_CN", 0x169b_a6f0_02dc_82ea, 0x9bd3_55d6_7c94_8f06),
    ("EUC_KR", 0x9ccc_0aa3_a803_2b72, 0xa40f_a5ee_2b8b_1752),
];

#[test]
fn every_escape_sequence_has_postgresqls_meaning() {
    for (name, decoded, encoded) in RECORDED {
        let encoding = named(name);
        let mut sequences: Vec<Vec<u8>> = (0x80..=0xff).map(|a| vec![a]).collect();
        let mut last = 9900;
        if encoding.forms() != crate::forms::Forms::Single {
            last = 0xffff;
            sequences.extend((0x80..=0xff).flat_map(|a| (0x30..=0xff).map(move |b| vec![a, b])));
            sequences.extend((0xa1..=0xfe).flat_map(|a| (0xa1..=0xfe).map(move |b| vec![0x8f, a, b])));
        }
        let decode = |s: &Vec<u8>| match encoding.decode(s).map(|text| text.chars().collect::<Vec<_>>()).as_deref() {
            Ok([c]) => Some([number(s), *c as u32]),
            _ => None,
        };
        assert_eq!(hash(sequences.iter().filter_map(decode).flatten()), decoded, "decoding {name}");
        let encode = |c: char| Some([c as u32, number(&encoding.encode(&c.to_string()).ok()?)]);
        let pairs = (0x80..=last).filter_map(char::from_u32).filter_map(encode);
        assert_eq!(hash(pairs.flatten()), encoded, "encoding {name}");
    }
}

#[test]
fn latin1_is_the_first_256_characters() {
    let bytes: Vec<u8> = (1..=255).collect();
    let text = named("iso-8859-1").decode(&bytes).expect("all are characters");
    assert!(text.chars().map(|c| c as u32).eq(1..=255));
    assert_eq!(named("LATIN1").encode(&text).expect("they come back"), bytes);
}

#[test]
fn gb18030_reaches_beyond_plane_0() {
    let encoding = named("GB18030");
    for c in ['\u{10000}', '\u{1f600}', '\u{20001}', '\u{10ffff}'] {
        let bytes = encoding.encode(c.encode_utf8(&mut [0; 4])).expect("all of Unicode").into_owned();
        assert_eq!((bytes.len(), encoding.decode(&bytes).expect("its own")), (4, c.to_string().into()));
    }
    assert_eq!(encoding.encode("\u{1f600}").expect("a face").as_ref(), b"\x94\x39\xfc\x36");
}

#[test]
fn errors_name_the_bytes_and_the_encodings() {
    let message = |result: Result<Cow<'_, str>>| {
        let error = result.expect_err("an error");
        format!("{} {}", error.sqlstate().as_str(), error.message())
    };
    let cases: [(&str, &[u8], &str); 6] = [
        (
            "WIN1252",
            b"a\x81",
            "22P05 character with byte sequence 0x81 in encoding \"WIN1252\" has no equivalent in encoding \"UTF8\"",
        ),
        ("EUC_JP", b"\x81\x80", "22021 invalid byte sequence for encoding \"EUC_JP\": 0x81 0x80"),
        ("EUC_JP", b"\xa1", "22021 invalid byte sequence for encoding \"EUC_JP\": 0xa1"),
        ("LATIN1", b"\0A", "22021 invalid byte sequence for encoding \"LATIN1\": 0x00"),
        ("SJIS", b"\x81\x40\xff", "22021 invalid byte sequence for encoding \"SJIS\": 0xff"),
        ("UTF8", b"a\xc3(", "22021 invalid byte sequence for encoding \"UTF8\": 0xc3 0x28"),
    ];
    for (name, bytes, expected) in cases {
        assert_eq!(message(named(name).decode(bytes)), expected);
    }
    let error = named("LATIN1").encode("\u{20ac}").expect_err("no euro");
    assert!(error.message().starts_with("character with byte sequence 0xe2 0x82 0xac in encoding \"UTF8\" has no equi"));
    assert_eq!(named("LATIN1").encode_lossy("5 \u{20ac}").as_ref(), b"5 ?");
}

#[test]
fn pieces_end_between_characters() {
    let sjis = named("SJIS");
    // The second byte is a backslash's.
    assert_eq!([sjis.whole(b"a\x83\x5c"), sjis.whole(b"a\x83"), sjis.whole(b"")], [3, 1, 0]);
    assert_eq!(named("GB18030").whole(b"\x84\x31\x82"), 0);
    assert_eq!(named("LATIN1").whole(b"\xff\xff"), 2);
}

#[test]
fn only_postgresql_s_conversions_exist() {
    let convert = |from: &str, bytes: &[u8], to: &str| named(from).convert(bytes, named(to)).map_err(|e| e.message().to_owned());
    assert_eq!(convert("KOI8R", b"\xc1", "WIN1251"), Ok(b"\xe0".to_vec()));
    assert_eq!(convert("UTF8", "é".as_bytes(), "SQL_ASCII"), Ok("é".into()));
    let missing = "default conversion function for encoding \"LATIN1\" to \"WIN1252\" does not exist";
    assert_eq!(convert("LATIN1", b"a", "WIN1252"), Err(missing.to_owned()));
    assert_eq!(convert("EUC_TW", b"a", "UTF8"), Err("conversion between EUC_TW and UTF8 is not supported yet".to_owned()));
}
