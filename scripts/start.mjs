/** `npm start`: builds when something has changed, then runs the command in this process. */
import * as Fs from "node:fs"
import * as Path from "node:path"
import { pathToFileURL } from "node:url"
import { buildAll, isStale } from "./build.mjs"
import { dist } from "./seed.mjs"

if (isStale())
  process.stderr.write("Building Spoke; this takes a few seconds and happens after changes only …\n")
await buildAll()
const main = Path.join(dist, "main.js")
if (Fs.existsSync(main)) await import(pathToFileURL(main).href)
else {
  process.stderr.write("There is no src/main.ts to run.\n")
  process.exitCode = 1
}
