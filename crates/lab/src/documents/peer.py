"""A database inside of Python as a form of storage: driven by lines of JSON on standard input, each followed by so many bytes of
rows (number, then each document after its length); answers in the same way."""
import json
import os
import struct
import sys
import time

KIND, FOLDER, COLUMNS = sys.argv[1], sys.argv[2], int(sys.argv[3])
NAMES = [f"d{i + 1}" for i in range(COLUMNS)]


def rows_of(data):
    at, rows = 0, []
    while at < len(data):
        row = [struct.unpack_from("<Q", data, at)[0]]
        at += 8
        for _ in range(COLUMNS):
            (length,) = struct.unpack_from("<I", data, at)
            row.append(data[at + 4:at + 4 + length])
            at += 4 + length
        rows.append(row)
    return rows


def bytes_below(folder):
    return sum(os.path.getsize(os.path.join(path, name)) for path, _, names in os.walk(folder) for name in names)


class DuckDb:
    def __init__(self):
        import duckdb
        self.version = "DuckDB " + duckdb.__version__
        self.connection = duckdb.connect(os.path.join(FOLDER, "documents.duckdb"))
        columns = ", ".join(f"{name} TEXT" for name in NAMES)
        self.connection.execute(f"CREATE TABLE documents (id BIGINT PRIMARY KEY, {columns})")

    def change(self, sql, values):
        started = time.perf_counter()
        self.connection.execute("BEGIN")
        self.connection.executemany(sql, values)
        self.connection.execute("COMMIT")
        return time.perf_counter() - started

    def insert(self, rows):
        texts = [[row[0]] + [document.decode() for document in row[1:]] for row in rows]
        return self.change(f"INSERT INTO documents VALUES (?{', ?' * COLUMNS})", texts)

    def update(self, rows):
        texts = [[document.decode() for document in row[1:]] + [row[0]] for row in rows]
        columns = ", ".join(f"{name} = ?" for name in NAMES)
        return self.change(f"UPDATE documents SET {columns} WHERE id = ?", texts)

    def delete(self, ids):
        return self.change("DELETE FROM documents WHERE id = ?", [[number] for number in ids])

    def maintain(self):
        started = time.perf_counter()
        self.connection.execute("CHECKPOINT")
        return time.perf_counter() - started

    def read(self, number):
        started = time.perf_counter()
        row = self.connection.execute(f"SELECT {', '.join(NAMES)} FROM documents WHERE id = ?", [number]).fetchone()
        took = time.perf_counter() - started
        return (None if row is None else [text.encode() for text in row]), took

    def bytes(self):
        return bytes_below(FOLDER)


class ClickHouse:
    def __init__(self, codec):
        import chdb
        from chdb import session
        self.version = "ClickHouse (chdb) " + chdb.engine_version
        self.session = session.Session(os.path.join(FOLDER, "clickhouse"))
        self.types = "id UInt64, " + ", ".join(f"{name} String" for name in NAMES)
        columns = ", ".join(f"{name} String CODEC({codec})" for name in NAMES)
        self.run("CREATE DATABASE lab ENGINE = Atomic")
        self.run(f"CREATE TABLE lab.documents (id UInt64, {columns}) ENGINE = MergeTree ORDER BY id")

    def run(self, sql, form="RowBinary"):
        return bytes(self.session.query(sql, form).bytes())

    def insert(self, rows):
        path = os.path.join(FOLDER, "rows.bin")
        with open(path, "wb") as file:
            for row in rows:
                file.write(struct.pack("<Q", row[0]))
                for document in row[1:]:
                    file.write(varint(len(document)) + document)
        started = time.perf_counter()
        self.run(f"INSERT INTO lab.documents SELECT * FROM file('{path}', 'RowBinary', '{self.types}')")
        took = time.perf_counter() - started
        os.remove(path)
        return took

    def update(self, rows):
        return self.delete([row[0] for row in rows]) + self.insert(rows)

    def delete(self, ids):
        started = time.perf_counter()
        self.run(f"DELETE FROM lab.documents WHERE id IN ({', '.join(map(str, ids))})")
        return time.perf_counter() - started

    def maintain(self):
        started = time.perf_counter()
        self.run("OPTIMIZE TABLE lab.documents FINAL")
        return time.perf_counter() - started

    def read(self, number):
        started = time.perf_counter()
        data = self.run(f"SELECT {', '.join(NAMES)} FROM lab.documents WHERE id = {number}")
        took = time.perf_counter() - started
        documents, at = [], 0
        while at < len(data):
            length, shift = 0, 0
            while True:
                byte = data[at]
                at += 1
                length |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    break
            documents.append(data[at:at + length])
            at += length
        return documents or None, took

    def bytes(self):
        sql = "SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = 'lab' AND table = 'documents'"
        return int(self.run(sql, "CSV"))


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def answer(fields, payload=b""):
    sys.stdout.buffer.write(json.dumps({**fields, "length": len(payload)}).encode() + b"\n" + payload)
    sys.stdout.buffer.flush()


def serve(form):
    answer({"version": form.version})
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        data = sys.stdin.buffer.read(asked["length"])
        what = asked["do"]
        if what in ("insert", "update"):
            answer({"seconds": getattr(form, what)(rows_of(data))})
        elif what == "delete":
            answer({"seconds": form.delete(asked["ids"])})
        elif what == "maintain":
            answer({"seconds": form.maintain()})
        elif what == "bytes":
            answer({"number": form.bytes()})
        elif what == "read":
            documents, took = form.read(asked["ids"][0])
            payload = b"".join(struct.pack("<I", len(d)) + d for d in documents or [])
            answer({"seconds": took, "found": documents is not None}, payload)


try:
    serve(DuckDb() if KIND == "duckdb" else ClickHouse(KIND))
except Exception as error:  # The one who asked says it to the person at the terminal.
    answer({"error": f"{type(error).__name__}: {error}"})
    sys.exit(1)
