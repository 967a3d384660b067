// What if: sends an access log and a configuration to the gateway, which simulates them aside, and shows how far it is.

import type { WhatIfDocument } from "./documents.ts";
import { byId, say } from "./dom.ts";

const PATH = "/what-if";
/** The time between two looks at a simulation (ms). */
const EACH = 1000;

const form = byId("ask") as HTMLFormElement;
const start = byId("start") as HTMLButtonElement;
const stop = byId("stop") as HTMLButtonElement;
const bar = byId("done") as HTMLProgressElement;

/** Asks, and fails with what the gateway says. */
async function ask(method: string, path: string, body?: Blob): Promise<Response> {
  const response = await fetch(path, { method, ...(body ? { body } : {}) });
  if (!response.ok) throw new Error(await response.text());
  return response;
}

function show(document: WhatIfDocument): void {
  const { state, done, message } = document;
  const isRunning = state === "running";
  start.disabled = isRunning;
  stop.hidden = !isRunning;
  bar.hidden = !isRunning;
  if (done === null) bar.removeAttribute("value");
  else bar.value = done;
  byId("report").hidden = state !== "done";
  const words = { idle: "", running: message, done: "Done.", failed: "It failed:" };
  tell(words[state], state === "failed" ? message : "");
}

function tell(outcome: string, wrong: string): void {
  say(byId("outcome"), outcome);
  say(byId("wrong"), wrong.trim());
  byId("wrong").hidden = wrong === "";
}

/** Follows a simulation to its end. */
async function follow(): Promise<void> {
  for (;;) {
    const document = (await (await ask("GET", PATH)).json()) as WhatIfDocument;
    show(document);
    if (document.state !== "running") return;
    await new Promise((resolve) => setTimeout(resolve, EACH));
  }
}

async function simulate(): Promise<void> {
  const sent = new FormData(form);
  const [log, configuration] = [sent.get("log"), sent.get("configuration")];
  start.disabled = true;
  // What was sent before counts no more: without a file the gateway's own configuration is taken.
  await ask("DELETE", PATH);
  for (const [name, file] of Object.entries({ log, configuration })) {
    if (!(file instanceof File) || file.size === 0) continue;
    tell(`sending ${file.name}`, "");
    await ask("PUT", `${PATH}/${name}`, file);
  }
  const question = new URLSearchParams({ scale: String(sent.get("scale")) });
  for (const name of ["capacity", "host"]) {
    if (sent.get(name)) question.set(name, String(sent.get(name)));
  }
  await ask("POST", `${PATH}?${question}`);
  await follow();
}

/** Does it, and says what went wrong. */
function attempt(what: () => Promise<void>): void {
  what().catch((error: unknown) => {
    start.disabled = false;
    tell("It failed:", error instanceof Error ? error.message : String(error));
  });
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(simulate);
});
stop.addEventListener("click", () => attempt(async () => void (await ask("DELETE", PATH))));
// One that was started before this page was opened is shown too.
byId("what-if").closest("details")?.addEventListener("toggle", (event) => {
  const details = event.target as HTMLDetailsElement;
  if (details.open && !start.disabled) attempt(follow);
});
