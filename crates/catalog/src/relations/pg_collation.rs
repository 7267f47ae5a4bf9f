//! pg_collation.

use melba_types::Datum;

use super::{GeneratorInput, RelationRows, push, values::*};

const UTF8: i32 = 6;

pub(super) fn rows(s: &GeneratorInput<'_>, out: &mut RelationRows<'_>) {
    for c in s.by_oid(|oid| s.catalog.collation(oid), s.catalog.collations()) {
        let libc = c.provider == b'c';
        let libc_locale = || if libc { text_or_null(&c.locale) } else { Datum::Null };
        let own_locale = || if libc { Datum::Null } else { text_or_null(&c.locale) };
        // C and POSIX work in every encoding, as do ICU's; a builtin one is UTF-8's.
        let any_encoding = c.provider != b'b' && !matches!(&c.locale, Some(l) if libc && &**l != "C" && &**l != "POSIX");
        push!(
            out,
            [
                oid(c.oid),
                text(&c.name),
                oid(c.namespace),
                oid(c.owner),
                char(c.provider),
                bool(c.deterministic),
                Datum::Int4(if any_encoding { -1 } else { UTF8 }),
                libc_locale(),
                libc_locale(),
                own_locale(),
                Datum::Null,
                text_or_null(&c.version),
                // The old name of colllocale.
                own_locale(),
            ]
        );
    }
}
