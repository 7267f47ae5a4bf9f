"""A database that Python reaches, driven by lines of JSON on standard input; answers are lines of JSON, each followed by so many
bytes of rows: values as text with tabs between them. Times are those of the database alone: what brings rows here is not in them."""
import io
import json
import os
import sys
import threading
import time

KIND, FOLDER, THREADS, SERVER = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
# Nothing but answers goes out there, whatever a package prints.
OUT = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)


def bytes_below(folder):
    return sum(os.path.getsize(os.path.join(path, name)) for path, _, names in os.walk(folder) for name in names)


class DuckDb:
    def __init__(self):
        import duckdb
        import pyarrow.csv
        self.csv = pyarrow.csv
        self.version = "DuckDB " + duckdb.__version__
        self.connection = duckdb.connect(os.path.join(FOLDER, "olap.duckdb"))
        self.connection.execute(f"SET threads = {THREADS}")
        self.connection.execute("SET enable_progress_bar = false")

    def execute(self, sql):
        self.connection.execute(sql)

    def copy(self, table, file, types):
        self.execute(f"COPY {table} FROM '{file}' (DELIMITER '\t', HEADER false, QUOTE '')")

    def maintain(self, table):
        self.execute("CHECKPOINT")

    def bytes(self, tables):
        self.execute("CHECKPOINT")
        return bytes_below(FOLDER)

    def batches(self, sql):
        yield from self.connection.sql(sql).to_arrow_reader(100_000)

    def text(self, batch):
        out = io.BytesIO()
        options = self.csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
        self.csv.write_csv(batch, out, options)
        return out.getvalue()

    def client(self):
        cursor = self.connection.cursor()
        return lambda sql: len(cursor.execute(sql).fetchall())


class ClickHouse:
    def __init__(self):
        import chdb
        from chdb import session
        self.version = "ClickHouse (chdb) " + chdb.engine_version
        self.session = session.Session(os.path.join(FOLDER, "clickhouse"))
        self.execute("CREATE DATABASE lab ENGINE = Atomic")
        self.execute("USE lab")
        # A condition that was asked before would be answered from what it found then: a later round measures no scan.
        for setting in (f"max_threads = {THREADS}", "union_default_mode = 'DISTINCT'", "use_query_condition_cache = 0"):
            self.execute("SET " + setting)

    def execute(self, sql):
        self.session.query(sql)

    def copy(self, table, file, types):
        types = types.replace("'", "\\'")
        self.execute(f"INSERT INTO {table} SELECT * FROM file('{file}', 'TSV', '{types}')")

    def maintain(self, table):
        self.execute(f"OPTIMIZE TABLE {table} FINAL")

    def bytes(self, tables):
        names = ", ".join(f"'{table}'" for table in tables)
        sql = f"SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = 'lab' AND table IN ({names})"
        return int(self.session.query(sql, "TSV").bytes())

    def batches(self, sql):
        yield from self.session.send_query(sql, "TSV")

    def text(self, chunk):
        return bytes(chunk.bytes())

    def client(self):
        return lambda sql: bytes(self.session.query(sql, "TSV").bytes()).count(b"\n")


class MySql:
    def __init__(self):
        import pymysql
        import pymysql.cursors
        self.module = pymysql
        self.server = json.loads(SERVER)
        self.connection = self.connect()
        self.version = "MySQL " + self.connection.get_server_info()

    def connect(self):
        return self.module.connect(**self.server, local_infile=True, autocommit=True)

    def execute(self, sql):
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            cursor.fetchall()

    def copy(self, table, file, types):
        self.execute(f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE {table}")

    def maintain(self, table):
        self.execute(f"ANALYZE TABLE {table}")

    def bytes(self, tables):
        names = ", ".join(f"'{table}'" for table in tables)
        with self.connection.cursor() as cursor:
            cursor.execute(f"ANALYZE TABLE {', '.join(tables)}")
            cursor.fetchall()
            cursor.execute("SELECT sum(data_length + index_length) FROM information_schema.tables "
                           f"WHERE table_schema = database() AND table_name IN ({names})")
            return int(cursor.fetchone()[0])

    def batches(self, sql):
        with self.connection.cursor(self.module.cursors.SSCursor) as cursor:
            cursor.execute(sql)
            while rows := cursor.fetchmany(10_000):
                yield rows

    def text(self, rows):
        return "".join("\t".join(map(str, row)) + "\n" for row in rows).encode()

    def client(self):
        cursor = self.connect().cursor()
        return lambda sql: cursor.execute(sql)


def answer(fields, payload=b""):
    OUT.write(json.dumps({**fields, "length": len(payload)}).encode() + b"\n" + payload)
    OUT.flush()


def query(database, sql):
    seconds, started = 0.0, time.perf_counter()
    for batch in database.batches(sql):
        seconds += time.perf_counter() - started
        answer({"more": True}, database.text(batch))
        started = time.perf_counter()
    return seconds + time.perf_counter() - started


def rate(database, statements, rows, clients, seconds):
    done, problems = [], []
    ready = threading.Barrier(clients)

    def body(number):
        try:
            run, count = database.client(), 0
            ready.wait()
            started = time.perf_counter()
            while (passed := time.perf_counter() - started) < seconds:
                at = (number * len(statements) // clients + count) % len(statements)
                found = run(statements[at])
                if found != rows[at]:
                    raise ValueError(f"{found} rows instead of {rows[at]}, in {statements[at]}")
                count += 1
            done.append(count / passed)
        except Exception as error:
            problems.append(error)
            ready.abort()

    threads = [threading.Thread(target=body, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
    return sum(done)


def timed(function, *arguments):
    started = time.perf_counter()
    function(*arguments)
    answer({"seconds": time.perf_counter() - started})


def serve(database):
    answer({"version": database.version})
    for line in sys.stdin:
        asked = json.loads(line)
        what = asked.pop("do")
        if what == "execute":
            timed(lambda: [database.execute(sql) for sql in asked["statements"]])
        elif what in ("copy", "maintain"):
            timed(getattr(database, what), *asked.values())
        elif what == "bytes":
            answer({"number": database.bytes(asked["tables"])})
        elif what == "query":
            answer({"seconds": query(database, asked["sql"])})
        elif what == "rate":
            answer({"number": rate(database, **asked)})


try:
    serve({"duckdb": DuckDb, "clickhouse": ClickHouse, "mysql": MySql}[KIND]())
except Exception as error:  # The one who asked says it to the person at the terminal.
    answer({"error": f"{type(error).__name__}: {error}"})
    sys.exit(1)
