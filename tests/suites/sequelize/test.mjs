import assert from "node:assert/strict";
import { DataTypes, Op, Sequelize, Transaction, QueryTypes, fn, col, literal, where, cast } from "sequelize";
import { connection, run, test } from "./outcomes.mjs";

const db = new Sequelize(connection.database, connection.user, null, { ...connection, dialect: "postgres", logging: false });

const Person = db.define("person", {
  name: { type: DataTypes.STRING(80), allowNull: false, validate: { len: [1, 80] } },
  email: { type: DataTypes.CITEXT, unique: true },
  mood: DataTypes.ENUM("sad", "ok", "happy"),
  born: DataTypes.DATEONLY,
  balance: { type: DataTypes.DECIMAL(10, 2), defaultValue: 0 },
  tags: DataTypes.ARRAY(DataTypes.TEXT),
  info: DataTypes.JSONB,
  settings: DataTypes.HSTORE,
  active: { type: DataTypes.BOOLEAN, defaultValue: true },
  token: { type: DataTypes.UUID, defaultValue: DataTypes.UUIDV4 },
  stay: DataTypes.RANGE(DataTypes.DATEONLY),
  photo: DataTypes.BLOB,
  score: DataTypes.DOUBLE,
  seen: { type: DataTypes.BIGINT, defaultValue: 0 },
}, { paranoid: true, version: true, indexes: [{ fields: ["name"] }, { unique: true, fields: [fn("lower", col("name")), "born"], name: "person_name_born" }] });
const Post = db.define("post", { title: DataTypes.STRING, body: DataTypes.TEXT, rank: DataTypes.INTEGER });
const Label = db.define("label", { word: { type: DataTypes.STRING, primaryKey: true } }, { timestamps: false });
Person.hasMany(Post, { as: "posts", onDelete: "CASCADE" });
Post.belongsTo(Person, { as: "author", foreignKey: "personId" });
Post.belongsToMany(Label, { through: "post_label" });
Label.belongsToMany(Post, { through: "post_label" });
Person.hasOne(db.define("profile", { bio: DataTypes.TEXT }), { as: "profile" });

test("authenticate and version", async () => {
  await db.authenticate();
  assert.match(await db.databaseVersion(), /^\d+/);
});
test("extensions and sync", async () => {
  await db.query("create extension if not exists citext");
  await db.query("create extension if not exists hstore");
  await db.sync({ force: true });
});
test("sync again changes nothing", () => db.sync());
test("sync alter", () => db.sync({ alter: true }));
test("create with every type", async () => {
  const ann = await Person.create({
    name: "Ann", email: "Ann@x.org", mood: "happy", born: "1990-05-17", balance: "12.50", tags: ["a", "b,c", 'd"'],
    info: { city: "Oslo", n: [1, { x: null }] }, settings: { theme: "dark" }, stay: ["2020-01-01", "2020-02-01"],
    photo: Buffer.from([0, 1, 255]), score: 1.5, seen: "9007199254740993",
  });
  await ann.reload();
  assert.equal(ann.balance, "12.50");
  assert.deepEqual(ann.tags, ["a", "b,c", 'd"']);
  assert.deepEqual(ann.info, { city: "Oslo", n: [1, { x: null }] });
  assert.deepEqual(ann.settings, { theme: "dark" });
  assert.deepEqual(ann.photo, Buffer.from([0, 1, 255]));
  assert.equal(ann.seen, "9007199254740993");
  assert.equal(ann.stay[0].value, "2020-01-01");
  assert.equal(ann.born, "1990-05-17");
});
test("bulk create", async () => {
  const people = await Person.bulkCreate([{ name: "Bob", email: "bob@x.org", mood: "sad", balance: 3 }, { name: "Cid", mood: "ok", info: { city: "Rome" } }, { name: "Dan" }], { validate: true, returning: true });
  assert.equal(people.length, 3);
  assert.ok(people[2].id > people[0].id);
});
test("bulk create updates on duplicate", async () => {
  await Person.bulkCreate([{ name: "Bobby", email: "bob@x.org" }], { updateOnDuplicate: ["name"], conflictAttributes: ["email"] });
  assert.equal((await Person.findOne({ where: { email: "BOB@X.ORG" } })).name, "Bobby");
});
test("bulk create ignores duplicates", () => Person.bulkCreate([{ name: "Bob", email: "bob@x.org" }], { ignoreDuplicates: true }));
test("upsert", async () => {
  const [person] = await Person.upsert({ name: "Robert", email: "bob@x.org" }, { conflictFields: ["email"] });
  assert.equal(person.name, "Robert");
});
test("unique constraint error", async () => {
  await assert.rejects(Person.create({ name: "Z", email: "ANN@x.org" }), (e) => e.name === "SequelizeUniqueConstraintError" && e.fields.email !== undefined);
});
test("not null is validated by the database", async () => {
  await assert.rejects(db.query('insert into people ("createdAt", "updatedAt") values (now(), now())'), /null value in column "name"/);
});
test("foreign key error", async () => {
  await assert.rejects(Post.create({ title: "x", personId: 999 }), (e) => e.name === "SequelizeForeignKeyConstraintError" && e.table === "posts");
});
test("operators", async () => {
  const names = async (where) => (await Person.findAll({ where, order: ["name"], attributes: ["name"] })).map((p) => p.name).join();
  assert.equal(await names({ name: { [Op.iLike]: "%a%" } }), "Ann,Dan");
  assert.equal(await names({ [Op.or]: [{ mood: "sad" }, { name: { [Op.startsWith]: "C" } }] }), "Cid,Robert");
  assert.equal(await names({ balance: { [Op.between]: [1, 5] } }), "Robert");
  assert.equal(await names({ tags: { [Op.contains]: ["a"] } }), "Ann");
  assert.equal(await names({ tags: { [Op.overlap]: ["zz", "a"] } }), "Ann");
  assert.equal(await names({ "info.city": "Rome" }), "Cid");
  assert.equal(await names({ info: { [Op.contains]: { city: "Oslo" } } }), "Ann");
  assert.equal(await names({ settings: { theme: "dark" } }), "Ann");
  assert.equal(await names({ stay: { [Op.contains]: "2020-01-15" } }), "Ann");
  assert.equal(await names({ stay: { [Op.overlap]: ["2020-01-20", "2021-01-01"] } }), "Ann");
  assert.equal(await names({ name: { [Op.regexp]: "^[AC]" } }), "Ann,Cid");
  assert.equal(await names({ name: { [Op.any]: ["Ann", "Dan"] } }), "Ann,Dan");
  assert.equal(await names({ name: { [Op.notIn]: ["Ann", "Dan"] } }), "Cid,Robert");
  assert.equal(await names(where(fn("char_length", col("name")), 3)), "Ann,Cid,Dan");
  assert.equal(await names({ mood: { [Op.is]: null } }), "Dan");
});
test("associations", async () => {
  const ann = await Person.findOne({ where: { name: "Ann" } });
  const post = await ann.createPost({ title: "one", body: "x".repeat(100_000), rank: 1 });
  await ann.createPost({ title: "two", rank: 2 });
  await post.addLabels(await Label.bulkCreate([{ word: "red" }, { word: "blue" }]));
  await ann.createProfile({ bio: "b" });
  assert.equal(await ann.countPosts(), 2);
  const found = await Person.findOne({ where: { id: ann.id }, include: [{ association: "posts", include: [{ model: Label, through: { attributes: [] } }] }, "profile"], order: [["posts", "rank", "DESC"]] });
  assert.deepEqual(found.posts.map((p) => p.title), ["two", "one"]);
  assert.deepEqual(found.posts[1].labels.map((l) => l.word).sort(), ["blue", "red"]);
  assert.equal(found.profile.bio, "b");
});
test("include with limit, separate, required", async () => {
  const one = await Person.findAll({ include: { association: "posts", where: { rank: { [Op.gt]: 0 } }, required: true }, limit: 1, subQuery: true });
  assert.equal(one[0].posts.length, 2);
  const all = await Person.findAndCountAll({ include: { association: "posts", separate: true, limit: 1, order: [["rank", "DESC"]] }, distinct: true });
  assert.equal(all.count, 4);
});
test("aggregates and groups", async () => {
  assert.equal(await Person.count(), 4);
  assert.equal(Number(await Person.sum("balance")), 15.5);
  assert.equal(Number(await Post.max("rank")), 2);
  const groups = await Person.findAll({ attributes: ["mood", [fn("count", col("id")), "n"], [cast(fn("sum", col("balance")), "integer"), "s"]], group: "mood", having: where(fn("count", col("id")), Op.gte, 1), order: [["mood", "ASC"]], raw: true });
  assert.deepEqual(groups.map((g) => g.mood), ["sad", "ok", "happy", null]);
  assert.deepEqual(await Person.count({ group: ["active"] }), [{ active: true, count: 4 }]);
});
test("increment and decrement", async () => {
  const ann = await Person.findOne({ where: { name: "Ann" } });
  await ann.increment({ seen: 2, score: 0.5 });
  await ann.decrement("score", { by: 1 });
  await ann.reload();
  assert.deepEqual([ann.seen, ann.score], ["9007199254740995", 1]);
});
test("update with returning, and with a literal", async () => {
  const [count, rows] = await Person.update({ balance: literal("balance + 1") }, { where: { active: true }, returning: true });
  assert.deepEqual([count, rows.length], [4, 4]);
});
test("soft deletion and restore", async () => {
  const dan = await Person.findOne({ where: { name: "Dan" } });
  await dan.destroy();
  assert.equal(await Person.count(), 3);
  assert.equal(await Person.count({ paranoid: false }), 4);
  await dan.restore();
  assert.equal(await Person.count(), 4);
});
test("optimistic locking", async () => {
  const [a, b] = [await Person.findOne({ where: { name: "Cid" } }), await Person.findOne({ where: { name: "Cid" } })];
  await a.update({ mood: "sad" });
  await assert.rejects(b.update({ mood: "happy" }), { name: "SequelizeOptimisticLockError" });
});
test("transactions, savepoints, isolation", async () => {
  await assert.rejects(db.transaction(async (transaction) => {
    await Person.create({ name: "Eve" }, { transaction });
    throw new Error("no");
  }), /no/);
  assert.equal(await Person.count({ where: { name: "Eve" } }), 0);
  await db.transaction({ isolationLevel: Transaction.ISOLATION_LEVELS.SERIALIZABLE }, async (t) => {
    await Person.create({ name: "Fay" }, { transaction: t });
    await db.transaction({ transaction: t }, async (inner) => { await Person.create({ name: "Gus" }, { transaction: inner }); throw new Error("inner"); }).catch(() => {});
  });
  assert.deepEqual((await Person.findAll({ where: { name: ["Fay", "Gus"] } })).map((p) => p.name), ["Fay"]);
});
test("locks", () => db.transaction(async (transaction) => {
  const rows = await Person.findAll({ where: { name: "Ann" }, lock: { level: transaction.LOCK.UPDATE, of: Person }, skipLocked: true, transaction });
  assert.equal(rows.length, 1);
  await Person.findOne({ where: { name: "Ann" }, lock: transaction.LOCK.KEY_SHARE, transaction });
}));
test("raw queries: replacements, bind, mapping", async () => {
  assert.deepEqual(await db.query("select :a::int + ? as x".replace("?", ":b"), { replacements: { a: 1, b: 2 }, type: QueryTypes.SELECT }), [{ x: 3 }]);
  assert.deepEqual(await db.query("select $1::text as t, $n::int[] as l".replace("$n", "$2"), { bind: ["x", [1, 2]], type: QueryTypes.SELECT }), [{ t: "x", l: [1, 2] }]);
  assert.equal((await db.query("select * from people where name = 'Ann'", { model: Person, mapToModel: true }))[0].name, "Ann");
});
test("query interface: tables, columns, constraints", async () => {
  const q = db.getQueryInterface();
  await q.createTable("things", { id: { type: DataTypes.INTEGER, primaryKey: true, autoIncrement: true }, a: DataTypes.STRING });
  await q.addColumn("things", "b", { type: DataTypes.INTEGER, defaultValue: 3, allowNull: false });
  await q.changeColumn("things", "b", { type: DataTypes.BIGINT, allowNull: true });
  await q.renameColumn("things", "a", "c");
  await q.addConstraint("things", { fields: ["b"], type: "check", where: { b: { [Op.gt]: 0 } }, name: "b_is_positive" });
  await q.addConstraint("things", { fields: ["c"], type: "unique", name: "c_is_unique" });
  await q.addConstraint("things", { fields: ["b"], type: "foreign key", name: "b_is_person", references: { table: "people", field: "id" }, onDelete: "set null" });
  await q.addIndex("things", ["b"], { name: "things_b", where: { b: 5 } });
  const columns = await q.describeTable("things");
  assert.deepEqual(Object.keys(columns), ["id", "c", "b"]);
  assert.equal(columns.id.primaryKey, true);
  assert.equal(columns.b.type, "BIGINT");
  const indexes = await q.showIndex("things");
  assert.deepEqual(indexes.map((i) => i.name).sort(), ["c_is_unique", "things_b", "things_pkey"]);
  assert.ok((await q.showAllTables()).includes("things"));
  const keys = await q.getForeignKeyReferencesForTable("things");
  assert.equal(keys[0].referencedTableName, "people");
  await q.removeConstraint("things", "b_is_positive");
  await q.removeIndex("things", "things_b");
  await q.removeColumn("things", "c");
  await q.renameTable("things", "objects");
  await q.dropTable("objects");
});
test("index by another method", () => db.getQueryInterface().addIndex("people", ["info"], { using: "gin", operator: "jsonb_path_ops", name: "people_info" }));
test("schemas", async () => {
  await db.createSchema("other");
  const Item = db.define("item", { a: DataTypes.INTEGER, kind: DataTypes.ENUM("x", "y") }, { schema: "other" });
  await Item.sync({ force: true });
  await Item.create({ a: 1, kind: "y" });
  assert.equal((await Item.findOne()).kind, "y");
  assert.ok((await db.showAllSchemas()).includes("other"));
  await db.dropSchema("other");
});
test("enum gets a value by sync alter", async () => {
  const first = db.define("enumerated", { kind: DataTypes.ENUM("a", "b") });
  await first.sync({ force: true });
  const next = db.define("enumerated", { kind: DataTypes.ENUM("a", "c", "b") });
  await next.sync({ alter: true });
  await next.create({ kind: "c" });
  await next.drop({});
});
test("truncate and drop", async () => {
  await Post.truncate({ cascade: true, restartIdentity: true });
  assert.equal(await Post.count(), 0);
  await db.drop({});
});
await run(() => db.close());
