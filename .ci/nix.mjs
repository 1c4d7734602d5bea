/**
 * Two steps of .ci/nix. `locks` checks that both locks pin everything, without naming a host. `tarballs CACHE FOLDER`
 * adds the tarballs of package-lock.json to the nix store, under the names that the build expects, from npm's cache,
 * which an `npm ci` has just filled. The build fetches the missing ones. Reads the list of nix/npm-lock.nix from
 * standard input.
 */
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { problems } from "../nix/locks.mjs"

const [step, cache, folder] = process.argv.slice(2)

const readLocks = () => {
  const found = problems(process.cwd())
  for (const problem of found) process.stderr.write(`${problem}\n`)
  process.exitCode = found.length === 0 ? 0 : 1
}

/** Where npm keeps content of this integrity: its cache is addressed by hash. */
const cached = (hex) =>
  Path.join(cache, "_cacache/content-v2/sha512", hex.slice(0, 2), hex.slice(2, 4), hex.slice(4))

const addTarballs = () => {
  const wanted = new Map(
    JSON.parse(Fs.readFileSync(0, "utf8")).map(({ name, integrity }) => [
      Buffer.from(integrity.replace(/^sha512-/, ""), "base64").toString("hex"),
      name
    ])
  )
  const found = [...wanted].filter(([hex]) => Fs.existsSync(cached(hex)))
  const files = found.map(([hex, name]) => {
    // Two packages may have the same name after the characters are removed that a store path cannot have.
    const file = Path.join(folder, hex.slice(0, 16), name)
    Fs.mkdirSync(Path.dirname(file), { recursive: true })
    Fs.copyFileSync(cached(hex), file)
    return file
  })
  // Nix hashes the file: one that differs from the lock gets another path, which is not used.
  if (files.length > 0)
    execFileSync("nix-store", ["--add-fixed", "sha512", ...files], {
      stdio: ["ignore", "ignore", "inherit"]
    })
  process.stdout.write(`       ${found.length} of ${wanted.size} tarballs were in npm's cache\n`)
}

if (step === "locks") readLocks()
else addTarballs()
