// What the page knows of SQL's text: where statements end, how names are quoted, keywords.

/** A name in double quotes. Values never become part of a statement: they are parameters. */
export const name = (text) => `"${text.replaceAll('"', '""')}"`;
export const qualified = (schema, relation) => `${name(schema)}.${name(relation)}`;

const PIECES = new RegExp(
  [
    String.raw`--[^\n]*`,
    String.raw`/\*`,
    String.raw`[eE]'(?:[^'\\]|\\[\s\S]|'')*(?:'|$)`,
    String.raw`'(?:[^']|'')*(?:'|$)`,
    String.raw`"(?:[^"]|"")*(?:"|$)`,
    String.raw`\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$`,
    String.raw`[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*`,
    String.raw`[();]`,
  ].join("|"),
  "gy",
);

// The end of a comment, which may contain others.
const commentEnd = (text, from) => {
  let depth = 1;
  const ends = /\/\*|\*\//g;
  ends.lastIndex = from;
  for (let found = ends.exec(text); found; found = ends.exec(text)) {
    depth += found[0] === "/*" ? 1 : -1;
    if (depth === 0) return ends.lastIndex;
  }
  return text.length;
};

/** The statements of a text: `{start, end, text}`, without the semicolon; semicolons in strings, parentheses and bodies end none. */
export const statements = (text) => {
  const found = [];
  let [start, at, parentheses, blocks, isRoutine, isEmpty] = [0, 0, 0, 0, false, true];
  const finish = (end) => {
    if (!isEmpty) found.push({ start, end, text: text.slice(start, end) });
    [start, parentheses, blocks, isRoutine, isEmpty] = [end + 1, 0, 0, false, true];
  };
  while (at < text.length) {
    PIECES.lastIndex = at;
    const piece = PIECES.exec(text)?.[0];
    if (piece === undefined) {
      if (text[at].trim() !== "") isEmpty = false;
      at += 1;
      continue;
    }
    at += piece.length;
    if (piece.startsWith("--")) continue;
    if (piece === "/*") {
      at = commentEnd(text, at);
      continue;
    }
    if (piece.startsWith("$")) {
      const end = text.indexOf(piece, at);
      at = end < 0 ? text.length : end + piece.length;
    }
    if (piece === ";" && parentheses <= 0 && blocks <= 0) {
      finish(at - 1);
      continue;
    }
    isEmpty = false;
    const word = piece.toLowerCase();
    if (piece === "(") parentheses += 1;
    else if (piece === ")") parentheses -= 1;
    else if (word === "function" || word === "procedure") isRoutine ||= /^\s*create\b/i.test(text.slice(start, at));
    else if (isRoutine && (word === "begin" || (word === "case" && blocks > 0))) blocks += 1;
    else if (isRoutine && word === "end" && blocks > 0) blocks -= 1;
  }
  finish(text.length);
  return found;
};

/** The place of a character position (from 1, by code points as the server counts) as an offset of the text. */
export const offsetOf = (text, position) => {
  let offset = 0;
  for (let left = position - 1; left > 0 && offset < text.length; left -= 1) {
    offset += text.codePointAt(offset) > 0xffff ? 2 : 1;
  }
  return offset;
};

export const KEYWORDS = (
  "ADD ALL ALTER ANALYZE AND ANY AS ASC BEGIN BETWEEN BY CASCADE CASE CAST CHECK COALESCE COLUMN COMMENT COMMIT CONSTRAINT COPY " +
  "CREATE CROSS DATABASE DEFAULT DELETE DESC DISTINCT DO DROP ELSE END EXCEPT EXISTS EXPLAIN FALSE FETCH FILTER FOREIGN FROM FULL " +
  "FUNCTION GRANT GROUP HAVING IF ILIKE IN INDEX INNER INSERT INTERSECT INTERVAL INTO IS JOIN KEY LATERAL LEFT LIKE LIMIT NOT NULL " +
  "NULLS OFFSET ON OR ORDER OUTER OVER PARTITION PRIMARY REFERENCES RETURNING REVOKE RIGHT ROLE ROLLBACK SCHEMA SELECT SEQUENCE SET " +
  "SHOW TABLE THEN TO TRUE TRUNCATE UNION UNIQUE UPDATE USING VACUUM VALUES VIEW WHEN WHERE WINDOW WITH"
).split(" ");
