"""Melba in a Python program: DB-API 2.0 (PEP 249) on a directory, without a port.

    import melba

    with melba.connect("shop.melba") as connection:
        cursor = connection.cursor()
        cursor.execute("create table items (id int primary key, name text compression dense)")
        cursor.execute("insert into items values (%s, %s)", (1, "tea"))
        connection.commit()

`connect` starts the server that the package carries, for this process alone, and stops it with the last connection. SQL is PostgreSQL's. The
driver is pg8000, whose module functions and types are this module's, too. Cursors also give whole results as Arrow tables (`arrow`), pandas data
frames (`df`) and polars data frames (`pl`), where these packages are installed.
"""

from pg8000 import dbapi as _dbapi
from pg8000.dbapi import (
    Binary,
    DatabaseError,
    DataError,
    Date,
    DateFromTicks,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
    Warning,
)

from . import server as _server

apilevel = "2.0"
threadsafety = 1
paramstyle = "format"


class _TypeObject:
    """Equal to the type codes (pg_type.oid) of a description that it stands for."""

    def __init__(self, *codes):
        self._codes = frozenset(codes)

    def __eq__(self, other):
        return self is other or other in self._codes

    __hash__ = None


STRING = _TypeObject(18, 19, 25, 114, 142, 1042, 1043, 2950, 3802)
BINARY = _TypeObject(17)
NUMBER = _TypeObject(20, 21, 23, 700, 701, 1700)
DATETIME = _TypeObject(1082, 1083, 1114, 1184, 1186, 1266)
ROWID = _TypeObject(26, 27)


class Cursor(_dbapi.Cursor):
    """A cursor of pg8000 with rows as tuples in lists, as sqlite3's, and whole results in columns."""

    def __next__(self):
        return tuple(super().__next__())

    def fetchmany(self, num=None):
        return list(super().fetchmany(num))

    def fetchall(self):
        return list(super().fetchall())

    def arrow(self):
        """The remaining rows as a `pyarrow.Table`; types follow from the columns' types, not from the values.

        :raises ProgrammingError: the last statement has no rows.
        """
        from . import arrow

        rows = self.fetchall()
        return arrow.table(self.description, rows)

    def df(self):
        """The remaining rows as a `pandas.DataFrame`."""
        return self.arrow().to_pandas()

    def pl(self):
        """The remaining rows as a `polars.DataFrame`."""
        import polars

        return polars.from_arrow(self.arrow())


class Connection(_dbapi.Connection):
    """A session on the server of a directory. `close` ends it, and the server with the last session."""

    def __init__(self, server, user, database):
        self._server = server
        try:
            super().__init__(user, database=database, unix_sock=str(server.socket))
        except BaseException:
            self._server = None
            _server.release(server)
            raise

    def cursor(self):
        return Cursor(self)

    def close(self):
        super().close()
        server, self._server = self._server, None
        if server is not None:
            _server.release(server)


def connect(directory=None, *, user="postgres", database="postgres", **settings):
    """Opens a directory, which is made if it is missing; a temporary one without `directory`.

    :param directory: a data directory; one process at a time may have it open.
    :param settings: settings of the server, such as `memory="512MB"`, as in melba.conf.
    :raises OperationalError: the directory belongs to another server, or is not Melba's.
    """
    return Connection(_server.acquire(directory, settings), user, database)
