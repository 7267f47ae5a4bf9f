// The page: login, the bar of views, and the view that the address names.
//
// dom.js       elements from data
// interface.js requests to the server
// sql.js       statements, quoted names, keywords
// grid.js      tables of values
// chart.js     pictures in SVG
// plot.js      pictures of a result
// plan.js      plans as trees
// complete.js  completion in the editor
// the others   a view each: its `view` returns {element, focus?, close?}

import { button, errorBox, field, h } from "./dom.js";
import { logIn, logOut, session } from "./interface.js";
import * as activity from "./activity.js";
import * as editor from "./editor.js";
import * as load from "./import.js";
import * as overview from "./overview.js";
import * as reports from "./reports.js";
import * as schema from "./schema.js";
import * as queries from "./statements.js";
import * as tables from "./tables.js";

const VIEWS = [
  ["editor", "Editor", editor],
  ["overview", "Overview", overview],
  ["schema", "Schema", schema],
  ["tables", "Tables", tables],
  ["statements", "Statements", queries],
  ["sessions", "Sessions", activity],
  ["import", "Import", load],
  ["reports", "Reports", reports],
];

// Reports are there when the console was given a folder of them.
const views = () => VIEWS.filter(([key]) => key !== "reports" || session()?.reports);

let current = null;

const close = () => {
  current?.close?.();
  current = null;
};

const loginPage = (note) => {
  close();
  const user = h("input", { name: "user", value: "postgres", required: true, autocomplete: "username", autocapitalize: "off", spellcheck: "false" });
  const password = h("input", { name: "password", type: "password", autocomplete: "current-password" });
  const database = h("input", { name: "database", autocapitalize: "off", spellcheck: "false", placeholder: "postgres" });
  const problem = h("div", { "aria-live": "assertive" }, note && h("p", { class: "notice" }, note));
  const enter = h("button", { class: "primary" }, "Log in");
  const form = h("form", { class: "login", onsubmit: async (event) => {
    event.preventDefault();
    enter.disabled = true;
    try {
      await logIn(user.value, password.value, database.value);
      mainPage();
    } catch (e) {
      problem.replaceChildren(errorBox(e.error ?? { message: e.message }));
      password.focus();
    }
    enter.disabled = false;
  } },
  h("h1", null, h("img", { src: "/icon.svg", alt: "", width: "28", height: "28" }), " Melba console"),
  field("Role", user), field("Password", password), field("Database", database), problem, enter);
  document.body.replaceChildren(h("main", { class: "center" }, form));
  user.focus();
  user.select();
};

const mainPage = () => {
  const place = h("main", { id: "main", tabindex: "-1" });
  const present = views();
  const links = present.map(([key, title], at) => h("a", { href: `#${key}`, accesskey: String(at + 1), title: `Alt+${at + 1}` }, title));
  const who = session();
  const bar = h("header", null,
    h("a", { class: "skip", href: "#main", onclick: (event) => { event.preventDefault(); place.focus(); } }, "Skip to the content"),
    h("nav", { "aria-label": "Views" }, links),
    h("div", { class: "who" }, h("span", { title: who.place }, `${who.user}@${who.database}`),
      button("Log out", () => logOut().catch(() => {}))));
  document.body.replaceChildren(bar, place);
  const show = () => {
    const [key, ...rest] = location.hash.slice(1).split("/").map(decodeURIComponent);
    const at = Math.max(0, present.findIndex(([known]) => known === key));
    close();
    current = present[at][2].view(rest);
    links.forEach((link, other) => (other === at ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current")));
    links[at].scrollIntoView({ block: "nearest", inline: "nearest" });
    document.title = `${present[at][1]} · Melba console`;
    place.replaceChildren(current.element);
    current.focus?.();
  };
  window.onhashchange = show;
  show();
};

// Alt and a digit go to a view, also in browsers that want other keys for `accesskey`.
document.addEventListener("keydown", (event) => {
  const at = event.altKey && !event.ctrlKey && !event.metaKey ? Number(event.key) : 0;
  if (session() && at >= 1 && at <= views().length) {
    event.preventDefault();
    location.hash = views()[at - 1][0];
  }
});

window.addEventListener("melba-logout", () => {
  window.onhashchange = null;
  loginPage("You are logged out.");
});

if (session()) mainPage();
else loginPage();
