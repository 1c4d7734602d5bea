import * as Fs from "node:fs"
import * as Path from "node:path"
import { expect, it } from "vitest"

const folder = Path.resolve(import.meta.dirname, "../../dist/ui")

/** Bytes of a file as it is sent. */
const sizeOf = (file: string) => Fs.statSync(Path.join(folder, `${file}.gz`)).size

/** `file` and the files that it imports at once. */
const closure = (file: string, found = new Set<string>()): Set<string> => {
  if (found.has(file)) return found
  found.add(file)
  if (!file.endsWith(".js")) return found
  const text = Fs.readFileSync(Path.join(folder, file), "utf8")
  for (const [, next = ""] of text.matchAll(/(?:from|import)"\.\/([^"]+)"/gu)) closure(next, found)
  return found
}

const index = Fs.readFileSync(Path.join(folder, "index.html"), "utf8")
const first = new Set(["index.html"])
for (const [, file = ""] of index.matchAll(/\/assets\/([^"]+\.(?:js|css))"/gu)) closure(file, first)

const pages: ReadonlyArray<{ readonly pattern: string; readonly files: ReadonlyArray<string> }> = JSON.parse(
  Fs.readFileSync(Path.join(folder, "pages.json"), "utf8")
)

const maxBytes = 180_000

it.each(pages)("The first view of $pattern loads at most 180 kB compressed", ({ files }) => {
  expect(first.size).toBeGreaterThan(2)
  const bytes = [...new Set([...first, ...files])].reduce((sum, file) => sum + sizeOf(file), 0)
  expect(bytes).toBeLessThan(maxBytes)
})
