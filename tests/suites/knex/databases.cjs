// What Knex's tests connect to (KNEX_TEST).
const { PGHOST, PGPORT, PGUSER, PGDATABASE } = process.env;
module.exports = { postgres: { host: PGHOST, port: Number(PGPORT), user: PGUSER, database: PGDATABASE } };
