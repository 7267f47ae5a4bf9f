// The roles and the database that the tests of postgres.js connect to. What they would change of the server's settings stays as it is.
import { spawnSync } from "node:child_process";

export function exec(command, args) {
  if (args.some((a) => a.startsWith("alter system"))) return;
  const { status, stderr } = spawnSync(command, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(stderr);
}

exec("dropdb", ["--if-exists", "--force", "postgres_js_test"]);
for (const [role, method] of [["postgres_js_test"], ["postgres_js_test_md5", "md5"], ["postgres_js_test_scram", "scram-sha-256"]]) {
  const password = method ? ` password '${role}'` : "";
  exec("psql", ["-qc", `set password_encryption to '${method ?? "scram-sha-256"}'`, "-c", `drop role if exists ${role}`, "-c", `create role ${role} login${password}`]);
}
exec("createdb", ["-O", "postgres_js_test", "postgres_js_test"]);

/** What a failed test has left: the next ones make tables of the same names. */
export function clean() {
  const { stderr } = spawnSync("psql", ["-q", "-d", "postgres_js_test", "-c", "set lock_timeout to '2s'", "-c", "drop owned by postgres_js_test cascade"], { encoding: "utf8" });
  if (stderr) console.error(stderr);
}
