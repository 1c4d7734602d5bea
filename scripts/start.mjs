/** `npm start`: builds when something has changed, then runs the command in this process. */
import { spawn } from "node:child_process"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { pathToFileURL } from "node:url"
import { buildServer, isStale } from "./build.mjs"
import { dist } from "./seed.mjs"
import { isUiStale } from "./ui.mjs"

if (isStale())
  process.stderr.write("Building Spoke; this takes a few seconds and happens after changes only …\n")
await buildServer()
// The API does not wait for the dashboard, whose build takes longer than the start of the server.
if (isUiStale()) {
  spawn(process.execPath, [Path.join(import.meta.dirname, "ui.mjs")], {
    stdio: ["ignore", "ignore", "inherit"]
  }).unref()
}
const main = Path.join(dist, "main.js")
if (Fs.existsSync(main)) await import(pathToFileURL(main).href)
else {
  process.stderr.write("There is no src/main.ts to run.\n")
  process.exitCode = 1
}
