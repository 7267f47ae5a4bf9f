"""Writes ../values.tsv anew: the binary form of each value is what a PostgreSQL server sends for its text.

Usage: PGHOST=... PGPORT=... PGUSER=... python record.py, against PostgreSQL. Only the first and the third column are read.
"""

import pathlib

import psycopg
from psycopg import pq

PATH = pathlib.Path(__file__).parent.parent / "values.tsv"
HEADER = "# type, binary form in hexadecimal, text form; recorded from PostgreSQL by psycopg/record.py\n"


def main():
    with psycopg.connect("options='-c timezone=UTC'", autocommit=True) as connection:
        lines = [line.split("\t") for line in PATH.read_text().splitlines() if not line.startswith("#")]
        recorded = HEADER
        for type_name, _, text in lines:
            query = f"select $1::{type_name}".encode()
            as_text, as_binary = (
                connection.pgconn.exec_params(query, [text.encode()], result_format=format)
                for format in (pq.Format.TEXT, pq.Format.BINARY)
            )
            for result in (as_text, as_binary):
                assert result.status == pq.ExecStatus.TUPLES_OK, result.error_message.decode()
            assert as_text.get_value(0, 0).decode() == text, (type_name, text, as_text.get_value(0, 0))
            recorded += f"{type_name}\t{as_binary.get_value(0, 0).hex()}\t{text}\n"
        PATH.write_text(recorded)


if __name__ == "__main__":
    main()
