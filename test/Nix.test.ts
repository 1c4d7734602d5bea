import * as Fs from "node:fs"
import * as Path from "node:path"
import * as SchemaAST from "effect/SchemaAST"
import { describe, expect, it } from "vitest"
import { Variables } from "../src/app/config/Config.ts"

const root = Path.resolve(import.meta.dirname, "..")
const read = (name: string) => Fs.readFileSync(Path.join(root, name), "utf8")

/** What problems of the locks `nix/locks.mjs` finds; plain JavaScript, for it runs before anything is installed. */
const problemsOf = async (folder: string): Promise<unknown> => {
  const module: { problems: (folder: string) => unknown } = await import(Path.join(root, "nix/locks.mjs"))
  return module.problems(folder)
}

describe("The Nix files", () => {
  it("rest on locks with a hash for every package, no address, and the reviewed nixpkgs", async () => {
    expect(await problemsOf(root)).toEqual([])
  })

  it("have a module that knows every secret among the variables", () => {
    const module = read("nix/module.nix")
    const [, list = ""] = /secrets = \[([^\]]*)\]/u.exec(module) ?? []
    const listed = Array.from(list.matchAll(/"(\w+)"/gu), ([, name = ""]) => name)
    const secret = SchemaAST.getPropertySignatures(Variables.ast)
      .map(({ name }) => String(name))
      .filter((name) => /SECRET|TOKEN|PASSWORD|_KEY$|ACCESS_KEY_ID|SMTP_URL|HEADERS/u.test(name))
    expect(listed.toSorted()).toEqual(secret.toSorted())
  })

  it("have a module that sets and names no variable that the service does not have", () => {
    const known = SchemaAST.getPropertySignatures(Variables.ast).map(({ name }) => String(name))
    const named = Array.from(
      `${read("nix/module.nix")}${read("nix/vm-test.nix")}`.matchAll(
        /\b(?:SPOKE|OPENAI|AWS|APP|API|DATABASE|REDIS|SMTP|LOG)_[A-Z_]+\b/gu
      ),
      ([name]) => name
    )
    const ofTheWalk = ["SPOKE_URL", "SPOKE_TOKEN"]
    expect(named.filter((name) => !known.includes(name) && !ofTheWalk.includes(name))).toEqual([])
  })
})
