"""Results as Arrow tables."""

import decimal

import pyarrow

# Arrow's types for PostgreSQL's (pg_type.oid); others are what Arrow finds in their Python values.
TYPES = {
    16: pyarrow.bool_(),
    17: pyarrow.large_binary(),
    20: pyarrow.int64(),
    21: pyarrow.int16(),
    23: pyarrow.int32(),
    25: pyarrow.large_string(),
    26: pyarrow.uint32(),
    700: pyarrow.float32(),
    701: pyarrow.float64(),
    1042: pyarrow.large_string(),
    1043: pyarrow.large_string(),
    1082: pyarrow.date32(),
    1083: pyarrow.time64("us"),
    1114: pyarrow.timestamp("us"),
    1184: pyarrow.timestamp("us", tz="UTC"),
}
NUMERIC = 1700
DECIMAL_DIGITS_MAX = 76


def _numeric(values):
    """Decimals of one scale; as text where they are too long for Arrow, or not numbers."""
    known = [value for value in values if value is not None]
    if not all(isinstance(value, decimal.Decimal) and value.is_finite() for value in known):
        return pyarrow.array([None if value is None else str(value) for value in values], pyarrow.large_string())
    scale = max((-value.as_tuple().exponent for value in known), default=0)
    scale = max(scale, 0)
    whole = max((value.adjusted() + 1 for value in known), default=1)
    digits = max(whole, 1) + scale
    if digits > DECIMAL_DIGITS_MAX:
        return pyarrow.array([None if value is None else str(value) for value in values], pyarrow.large_string())
    kind = pyarrow.decimal128(max(digits, 1), scale) if digits <= 38 else pyarrow.decimal256(digits, scale)
    return pyarrow.array(values, kind)


def _column(oid, values):
    if oid == NUMERIC:
        return _numeric(values)
    kind = TYPES.get(oid)
    try:
        return pyarrow.array(values, kind)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, pyarrow.ArrowNotImplementedError, OverflowError):
        # Such as dates beyond Python's, which the driver gives as text.
        return pyarrow.array([None if value is None else str(value) for value in values], pyarrow.large_string())


def table(description, rows):
    """Rows of a cursor as a table. Columns may have one name."""
    columns = list(zip(*rows)) or [()] * len(description)
    arrays = [_column(column[1], list(values)) for column, values in zip(description, columns)]
    return pyarrow.Table.from_arrays(arrays, names=[column[0] for column in description])
