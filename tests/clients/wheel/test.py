"""The wheel: DB-API 2.0 on a directory, results in columns, and the life of the server behind it."""

import datetime
import decimal
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import melba


def servers(data):
    """The processes that serve a directory."""
    found = []
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = line.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"serve" in words and str(data).encode() in words and words[0].endswith(b"melba"):
            found.append(int(line.parent.name))
    return found


class OnDirectory(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.data = Path(folder.name) / "data"

    def test_module(self):
        self.assertEqual((melba.apilevel, melba.threadsafety, melba.paramstyle), ("2.0", 1, "format"))
        for error in (melba.InterfaceError, melba.DatabaseError):
            self.assertTrue(issubclass(error, melba.Error))
        for error in ("DataError", "OperationalError", "IntegrityError", "InternalError", "ProgrammingError", "NotSupportedError"):
            self.assertTrue(issubclass(getattr(melba, error), melba.DatabaseError))
        self.assertEqual(melba.Date(2024, 2, 29), datetime.date(2024, 2, 29))
        self.assertEqual(melba.Timestamp(2024, 2, 29, 1, 2, 3), datetime.datetime(2024, 2, 29, 1, 2, 3))
        self.assertEqual(melba.Binary(b"\0\1"), b"\0\1")

    def test_cursor(self):
        with melba.connect(self.data) as connection:
            cursor = connection.cursor()
            self.assertIsNone(cursor.description)
            cursor.execute("create table t (id int primary key, name text compression dense, price numeric(10,2), at date)")
            rows = [(n, f"tea {n}", decimal.Decimal(n) / 4, datetime.date(2024, 1, n)) for n in range(1, 8)]
            cursor.executemany("insert into t values (%s, %s, %s, %s)", rows)
            cursor.execute("select * from t where id > %s order by id", (0,))
            self.assertEqual([(c[0], c[1]) for c in cursor.description], [("id", 23), ("name", 25), ("price", 1700), ("at", 1082)])
            kinds = [column[1] for column in cursor.description]
            self.assertTrue(kinds[0] == melba.NUMBER and kinds[1] == melba.STRING and kinds[3] == melba.DATETIME)
            self.assertFalse(kinds[0] == melba.STRING or kinds[1] == melba.BINARY)
            self.assertEqual(cursor.rowcount, 7)
            self.assertEqual(cursor.fetchone(), rows[0])
            self.assertEqual(cursor.fetchmany(2), rows[1:3])
            self.assertEqual(cursor.fetchall(), rows[3:])
            self.assertIsNone(cursor.fetchone())
            cursor.close()
            with self.assertRaises(melba.Error):
                cursor.execute("select 1")

    def test_transactions_last_and_directories_stay(self):
        with melba.connect(self.data) as connection:
            cursor = connection.cursor()
            cursor.execute("create table t (id int primary key)")
            connection.commit()
            cursor.execute("insert into t values (1)")
            connection.rollback()
            cursor.execute("insert into t values (2)")
            connection.commit()
            with self.assertRaises(melba.DatabaseError) as raised:
                cursor.execute("insert into t values (2)")
            self.assertEqual(raised.exception.args[0]["C"], "23505")
            connection.rollback()
        with melba.connect(self.data) as connection:
            cursor = connection.cursor()
            cursor.execute("select id from t")
            self.assertEqual([row[0] for row in cursor.fetchall()], [2])

    def test_connections_share_a_server_which_ends_with_the_last(self):
        first = melba.connect(self.data, memory="256MB")
        second = melba.connect(self.data)
        self.assertEqual(len(servers(self.data)), 1)
        with self.assertRaises(ValueError):
            melba.connect(self.data, memory="512MB")
        first.close()
        cursor = second.cursor()
        cursor.execute("show memory")
        self.assertEqual(cursor.fetchone()[0], "256MB")
        second.close()
        self.assertEqual(servers(self.data), [])
        with self.assertRaises(melba.InterfaceError):
            second.close()

    def test_no_port_is_open(self):
        with melba.connect(self.data) as connection:
            cursor = connection.cursor()
            cursor.execute("show listen_addresses")
            self.assertEqual(cursor.fetchone()[0], "")
            private = connection._server.private
            self.assertEqual(private.stat().st_mode & 0o777, 0o700)
        self.assertFalse(private.exists())

    def test_without_a_directory_nothing_is_left(self):
        connection = melba.connect()
        cursor = connection.cursor()
        cursor.execute("select 6 * 7")
        self.assertEqual(cursor.fetchone()[0], 42)
        data = connection._server.data
        self.assertTrue(data.exists())
        connection.close()
        self.assertFalse(data.exists())

    def test_a_directory_has_one_process(self):
        with melba.connect(self.data):
            code = f"import melba\ntry: melba.connect({str(self.data)!r})\nexcept melba.OperationalError as e: print(e)"
            said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
            self.assertIn("another server is using", said)

    def test_a_foreign_directory_is_refused(self):
        self.data.mkdir(mode=0o700)
        (self.data / "letter.txt").write_text("dear")
        with self.assertRaisesRegex(melba.OperationalError, "holds no database of Melba"):
            melba.connect(self.data)

    def test_the_server_ends_when_its_program_is_killed(self):
        code = f"import melba, time\nc = melba.connect({str(self.data)!r})\nprint('open', flush=True)\ntime.sleep(60)"
        program = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        self.assertEqual(program.stdout.readline(), "open\n")
        self.assertEqual(len(servers(self.data)), 1)
        os.kill(program.pid, signal.SIGKILL)
        program.wait()
        program.stdout.close()
        until = time.monotonic() + 30
        while servers(self.data) and time.monotonic() < until:
            time.sleep(0.05)
        self.assertEqual(servers(self.data), [])

    def test_columns(self):
        import pyarrow

        with melba.connect(self.data) as connection:
            cursor = connection.cursor()
            ask = (
                "select n::int2 as a, n::int4 as b, n::int8 as c, n::float8 / 2 as d, n % 2 = 0 as e, 'x' || n as f, nullif(n, 2)::numeric(6,2) as g, "
                "date '2024-01-01' + n as h, timestamp '2024-01-01' + n * interval '1 hour' as i, null::int8 as j, '\\x00ff'::bytea as k, "
                "timestamptz '2024-01-01 00:00+00' as l, array[n, 2] as m from generate_series(1, 3) n"
            )
            cursor.execute(ask)
            table = cursor.arrow()
            self.assertEqual(
                [str(kind) for kind in table.schema.types],
                ["int16", "int32", "int64", "double", "bool", "large_string", "decimal128(3, 2)", "date32[day]", "timestamp[us]", "int64",
                 "large_binary", "timestamp[us, tz=UTC]", "list<item: int64>"],
            )
            self.assertEqual(table.column("g").to_pylist(), [decimal.Decimal("1.00"), None, decimal.Decimal("3.00")])
            self.assertEqual(table.column("m").to_pylist(), [[1, 2], [2, 2], [3, 2]])
            cursor.execute("select 1 as a, 'x' as b, 'NaN'::numeric as c where false")
            self.assertEqual(cursor.arrow().schema.names, ["a", "b", "c"])
            cursor.execute("select 'NaN'::numeric as a, 1 as a")
            self.assertEqual([column.to_pylist() for column in cursor.arrow().columns], [["NaN"], [1]])
            cursor.execute(ask)
            self.assertEqual(cursor.df()["c"].tolist(), [1, 2, 3])
            cursor.execute(ask)
            self.assertEqual(cursor.pl()["f"].to_list(), ["x1", "x2", "x3"])
            cursor.execute("create table u (a int)")
            with self.assertRaises(melba.ProgrammingError):
                cursor.arrow()
            self.assertIsInstance(table, pyarrow.Table)


if __name__ == "__main__":
    unittest.main()
