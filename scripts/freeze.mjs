/**
 * Before a release: writes the checksums of all migrations to migrations/frozen.json. A listed file must not change
 * any more, because databases have applied it. test/store/database/FrozenMigrations.test.ts checks that.
 */
import { createHash } from "node:crypto"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { fileURLToPath } from "node:url"

const folder = fileURLToPath(new URL("../migrations", import.meta.url))
const list = Path.join(folder, "frozen.json")
const frozen = JSON.parse(Fs.readFileSync(list, "utf8"))

const files = Fs.readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(".sql"))
for (const file of files.sort()) {
  const text = Fs.readFileSync(Path.join(folder, file), "utf8").replaceAll("\r\n", "\n")
  // Existing entries are not changed.
  frozen[file] ??= createHash("sha256").update(text).digest("hex")
}
Fs.writeFileSync(list, `${JSON.stringify(frozen, null, 2)}\n`)
