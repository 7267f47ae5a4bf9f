"""mysql_proxy.py PORT HOST PORT: a proxy to MySQL 9 for pgloader, which cannot read it otherwise, whatever it loads into.

Of users without a password: pgloader knows no caching_sha2_password, the only plugin that MySQL 9 has by default; without a password the plugins' answers
are alike, and their names are exchanged in the first packet of each side. Nor does it know collations 76 and 255, those of names in information_schema and of
utf8mb4: columns' definitions (their last part is the length 12, collation, width, type) get 45 instead."""
import asyncio
import re
import sys

OLD, NEW = b"mysql_native_password", b"caching_sha2_password"
COLLATION = re.compile(rb"\x0c[\x4c\xff]\x00(?=.{4}[\x0f\xfc\xfd\xfe].{3}\x00\x00)", re.DOTALL)


async def relay(reader, writer, change):
    first = True
    while piece := await reader.read(1 << 16):
        writer.write(change(piece, first))
        await writer.drain()
        first = False
    writer.close()


async def serve(reader, writer):
    there, back = await asyncio.open_connection(sys.argv[2], int(sys.argv[3]))
    down = relay(there, writer, lambda piece, first: piece.replace(NEW, OLD) if first else COLLATION.sub(b"\x0c\x2d\x00", piece))
    up = relay(reader, back, lambda piece, first: piece.replace(OLD, NEW) if first else piece)
    await asyncio.gather(down, up, return_exceptions=True)


async def main():
    async with await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1])) as server:
        await server.serve_forever()


asyncio.run(main())
