/** Paths of the files in the package, below its root. The same from `src/` and from `dist/`. */
import * as fs from "node:fs"
import * as path from "node:path"
import { pathToFileURL } from "node:url"
import * as Schema from "effect/Schema"

const rootOf = (folder: string): string =>
  fs.existsSync(path.join(folder, "package.json")) || path.dirname(folder) === folder
    ? folder
    : rootOf(path.dirname(folder))

const root = rootOf(import.meta.dirname)

const Manifest = Schema.parseJson(Schema.Struct({ version: Schema.String }))

export const { version } = Schema.decodeSync(Manifest)(
  fs.readFileSync(path.join(root, "package.json"), "utf8")
)
export const migrations = path.join(root, "migrations")
export const docs = path.join(root, "docs")
/** A migrated, empty database. A new embedded database is unpacked from it. */
export const seed = path.join(root, "dist/seed.tgz")
/** The built dashboard and widget. */
export const ui = path.join(root, "dist/ui")
/** The built entry of a worker thread. */
export const worker = (name: string): URL => pathToFileURL(path.join(root, "dist/workers", `${name}.js`))
