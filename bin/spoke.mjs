#!/usr/bin/env node
/** The command `spoke` of an installed package, which brings dist/ along. */
import * as Fs from "node:fs"

const main = new URL("../dist/main.js", import.meta.url)
if (Fs.existsSync(main)) await import(main.href)
else {
  process.stderr.write("Spoke is not built yet: run `npm run build` first.\n")
  process.exitCode = 1
}
