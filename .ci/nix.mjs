/**
 * Puts the tarballs of package-lock.json into the nix store, under the names the build looks for them: from npm's cache,
 * which an `npm ci` has just filled, so nothing is fetched twice. What is not in the cache is left to the build.
 * Reads the list of nix/npm-lock.nix from standard input.
 */
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Path from "node:path"

const [cache, folder] = process.argv.slice(2)
const tarballs = new Map(JSON.parse(Fs.readFileSync(0, "utf8")).map(({ name, integrity }) => [integrity, name]))

const names = []
for (const [integrity, name] of tarballs) {
  const hex = Buffer.from(integrity.replace(/^sha512-/, ""), "base64").toString("hex")
  const content = Path.join(
    cache,
    "_cacache/content-v2/sha512",
    hex.slice(0, 2),
    hex.slice(2, 4),
    hex.slice(4)
  )
  if (!Fs.existsSync(content)) continue
  // Equal names have different contents only when a registry's scope is flattened into the name: a folder each.
  const own = Path.join(folder, hex.slice(0, 16))
  Fs.mkdirSync(own, { recursive: true })
  Fs.copyFileSync(content, Path.join(own, name))
  names.push(Path.join(own, name))
}
// Hashed by nix itself: a file that is not what the lock says gets another path, which nobody asks for.
execFileSync("nix-store", ["--add-fixed", "sha512", ...names], { stdio: ["ignore", "ignore", "inherit"] })
process.stdout.write(`${names.length} of ${tarballs.size} tarballs were in npm's cache\n`)
