// Reports of `melba lab` and `melba advise` in the folder of --reports. A report opens in a window of its own, in which no script runs.

import { bytes, h, shown } from "./dom.js";
import { list } from "./grid.js";
import { reports } from "./interface.js";

const time = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ");

export const view = () => {
  const place = h("div", null, h("p", { class: "faint" }, "asking…"));
  shown(place, async () => {
    const found = await reports();
    const link = (report) => h("a", { href: `/reports/${report.name}`, target: "_blank", rel: "noopener" }, report.name);
    place.replaceChildren(found.length === 0 ? h("p", { class: "faint" }, "there are no reports in the folder")
      : list("Reports", [["Report", link, false, (report) => report.name], ["Written (UTC)", (report) => time(report.written), false, (report) => report.written],
        ["Size", (report) => bytes(report.bytes), true, (report) => report.bytes]], found));
  });
  return { element: h("div", null, h("h1", null, "Reports"), place) };
};
