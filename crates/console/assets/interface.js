// The requests to the console's server. All of them are POSTs with the session's token, which no other page has.

const KEY = "melba-session";
let login = null;
try {
  login = JSON.parse(localStorage.getItem(KEY));
} catch {
  localStorage.removeItem(KEY);
}

export const session = () => login;

/** A failure with the server's error: message, detail, hint, position. */
export class Failure extends Error {
  constructor(error) {
    super(error.message);
    this.error = error;
  }
}

const end = () => {
  login = null;
  localStorage.removeItem(KEY);
  window.dispatchEvent(new Event("melba-logout"));
};

const post = async (path, body) => {
  let response;
  try {
    response = await fetch(`/api/${path}`, {
      method: "POST",
      headers: { "X-Melba-Token": login?.token ?? "" },
      body: body instanceof Blob ? body : JSON.stringify(body ?? null),
    });
  } catch {
    throw new Failure({ message: "the console does not answer; it may have been stopped" });
  }
  let answer;
  try {
    answer = await response.json();
  } catch {
    answer = { error: { message: `the console answered ${response.status}` } };
  }
  if (response.status === 401) end();
  if (!response.ok && !answer?.error) throw new Failure({ message: `the console answered ${response.status}` });
  if (answer?.error && !response.ok) throw new Failure(answer.error);
  return answer;
};

export const logIn = async (user, password, database) => {
  login = await post("login", { user, password, database });
  localStorage.setItem(KEY, JSON.stringify(login));
  return login;
};

export const logOut = async () => {
  try {
    await post("logout");
  } finally {
    end();
  }
};

// Requests on one connection wait for each other, except in the editor, which knows that it is busy.
const turns = { page: Promise.resolve(), monitor: Promise.resolve() };
const inTurn = (connection, run) => {
  if (!turns[connection]) return run();
  const turn = turns[connection].then(run, run);
  turns[connection] = turn.catch(() => {});
  return turn;
};

const texts = (parameters) => parameters.map((value) => (value === null || value === undefined ? null : String(value)));

/** A statement's answer, also when it failed; with `more`, `fetchMore` returns the next rows. */
export const run = (sql, { parameters = [], connection = "editor", limit = 200, valueBytes } = {}) =>
  inTurn(connection, () => post("query", { connection, sql, parameters: texts(parameters), limit, value_bytes: valueBytes }));
export const fetchMore = (connection, limit) => post("fetch", { connection, limit });
export const reports = () => post("reports");
export const cancel = (connection) => post("cancel", { connection });

// The columns of a row of which the answer has the first part only.
const cuts = new WeakMap();
export const isCut = (row, column) => cuts.get(row)?.has(column) ?? false;

/** The rows of a statement as objects; fails with its error. `more`: an answer was full before the last of them. */
export const rows = async (sql, parameters = [], { connection = "page", limit = 10000 } = {}) => {
  const answer = await run(sql, { parameters, connection, limit, valueBytes: 8 << 20 });
  if (answer.error) throw new Failure(answer.error);
  const names = (answer.columns ?? []).map((column) => column.name);
  const found = answer.rows.map((row) => Object.fromEntries(row.map((value, at) => [names[at], value])));
  for (const { row, column } of answer.cut) {
    if (!cuts.has(found[row])) cuts.set(found[row], new Set());
    cuts.get(found[row]).add(names[column]);
  }
  return Object.assign(found, { more: answer.more });
};

/** Lets the browser download a statement's result; the link serves once. */
export const download = async (sql, format, name, { parameters = [], connection = "editor" } = {}) => {
  const ticket = await post("export", { connection, sql, parameters: texts(parameters), format, name });
  const link = document.createElement("a");
  link.href = `/api/download/${ticket}`;
  link.download = `${name}.${format}`;
  document.body.append(link);
  link.click();
  link.remove();
};

/** COPY ... FROM STDIN with a file's content. */
export const upload = async (sql, blob) => {
  const answer = await post(`import?${encodeURIComponent(sql)}`, blob);
  if (answer.error) throw new Failure(answer.error);
  return answer.tag;
};
