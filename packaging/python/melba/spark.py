"""Tables of a running server in Spark, by JDBC: partitions are ranges of ctid, and all are read on one snapshot.

    from melba.spark import Snapshot

    with Snapshot("127.0.0.1", 5432, user="postgres", database="shop") as snapshot:
        orders = snapshot.table(spark, "orders", partitions=8)
        orders.groupBy("region").sum("amount").show()

The snapshot is exported by a transaction that the object keeps open; each of Spark's connections takes it up (SET TRANSACTION SNAPSHOT). Spark
reads when a result is asked for: ask before the block ends. Tables that are read within one block are of one commit.
"""

from functools import reduce
from urllib.parse import quote, urlencode

from pg8000 import dbapi

DRIVER = "org.postgresql.Driver"
# Rows of a round trip. Without one the driver reads a whole partition into memory, and outside of a transaction: on no snapshot.
FETCH_ROWS = 10_000
# A ctid is (block, offset), and Melba's row ids fill all 16 bits of the offset.
OFFSET_BITS = 16


class Snapshot:
    """One state of a database, for as long as the `with` block lasts.

    :param parameters: of the JDBC URL, such as `{"sslmode": "verify-full"}`.
    :param ssl_context: for the connection that exports the snapshot.
    """

    def __init__(self, host="localhost", port=5432, *, user="postgres", password=None, database="postgres", parameters=None, ssl_context=None):
        self.url = f"jdbc:postgresql://{host}:{port}/{quote(database, safe='')}"
        if parameters:
            self.url += "?" + urlencode(parameters)
        self._account = {"user": user} if password is None else {"user": user, "password": password}
        self.connection = dbapi.connect(user, host=host, port=port, password=password, database=database, ssl_context=ssl_context)
        try:
            self._export()
        except BaseException:
            self.connection.close()
            raise

    def _export(self):
        self._ask("set transaction isolation level repeatable read, read only")
        self._ask("set local idle_in_transaction_session_timeout = 0")
        self.id = self._ask("select pg_export_snapshot()")[0][0]
        # Elsewhere a block has as many rows as fit in a page.
        is_melba = "Melba" in self._ask("select version()")[0][0]
        self._bits = OFFSET_BITS if is_melba else 0

    def _ask(self, statement, arguments=()):
        cursor = self.connection.cursor()
        try:
            cursor.execute(statement, arguments)
            return cursor.fetchall() if cursor.description else []
        finally:
            cursor.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends the snapshot: what has not been read by then is an error in Spark."""
        self.connection.close()

    def options(self, **options):
        """The options of `spark.read.jdbc` with which a connection reads on this snapshot."""
        begin = f"set transaction isolation level repeatable read, read only; set transaction snapshot '{self.id}'"
        own = {"driver": DRIVER, "fetchsize": str(FETCH_ROWS), "sessionInitStatement": begin, **self._account, **options}
        if int(own["fetchsize"]) <= 0:
            raise ValueError("fetchsize must be positive: without one the driver reads outside of a transaction")
        return own

    def ranges(self, table, partitions):
        """Conditions on ctid, at most `partitions`, of which each row of a table meets one."""
        last = self._ask(f"select max(ctid)::text from {table}")[0][0]
        if last is None or partitions <= 1:
            return ["ctid >= '(0,0)'"]
        block, offset = (int(number) for number in last.strip("()").split(","))
        end = (block << self._bits) + (offset if self._bits else 0) + 1
        cuts = sorted({end * part // partitions for part in range(1, partitions)} - {0})
        ctids = [f"'({cut >> self._bits},{cut & (1 << self._bits) - 1})'" for cut in cuts]
        if not ctids:
            return ["ctid >= '(0,0)'"]
        between = [f"ctid >= {low} and ctid < {high}" for low, high in zip(ctids, ctids[1:])]
        # Without outer bounds nothing can be beyond them.
        return [f"ctid < {ctids[0]}", *between, f"ctid >= {ctids[-1]}"]

    def table(self, spark, table, partitions=8, **options):
        """A table as a `DataFrame` that Spark reads in so many tasks; of a partitioned table each partition in so many.

        :param table: the name as in SQL, such as `orders` or `shop."Order lines"`.
        :param options: more options of Spark's JDBC source, as text.
        """
        columns = [name for name, in self._ask(COLUMNS, (table,))]
        parts = [name for name, in self._ask(LEAVES, (table, table))]
        frames = [
            spark.read.jdbc(self.url, name, predicates=self.ranges(name, partitions), properties=self.options(**options)).select(*columns)
            for name in parts
        ]
        return reduce(lambda all, one: all.unionAll(one), frames)


# As Spark writes them: a column's name between grave accents.
COLUMNS = """select '`' || replace(attname, '`', '``') || '`' from pg_attribute
where attrelid = cast(%s as regclass) and attnum > 0 and not attisdropped order by attnum"""

# The table itself, or its partitions.
LEAVES = """select quote_ident(nspname) || '.' || quote_ident(relname) from pg_class c join pg_namespace n on n.oid = relnamespace
where c.oid = cast(%s as regclass) and relkind <> 'p' or c.oid in (select relid from pg_partition_tree(cast(%s as regclass)) where isleaf)
order by c.oid"""
