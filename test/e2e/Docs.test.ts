import * as Fs from "node:fs"
import * as Path from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { hasShell, removeFolder, root, run, type Spoke, startFresh, temporaryFolder } from "./Spoke.ts"

/** Installing and testing are what runs this very test; starting is what its servers do. */
const provenElsewhere = ["npm ci && npm start", "npm ci && npm test"]

const documents = Fs.readdirSync(Path.join(root, "docs")).filter((name) => name.endsWith(".md"))
const pages = ["README.md", ...documents.map((name) => `docs/${name}`)]

const snippets = (page: string, language: string): ReadonlyArray<string> =>
  Array.from(
    Fs.readFileSync(Path.join(root, page), "utf8").matchAll(/^```(\w+)\n([\s\S]*?)^```$/gmu),
    ([, name = "", code = ""]) => ({ name, code: code.trim() })
  )
    .filter(({ code, name }) => name === language && !provenElsewhere.includes(code))
    .map(({ code }) => code)

describe("Every snippet of the README and of docs/ runs as it is printed", () => {
  const dataDir = temporaryFolder()
  let spoke: Spoke
  let variables: Readonly<Record<string, string>> = {}

  beforeAll(async () => {
    spoke = await startFresh(dataDir)
    variables = {
      SPOKE_URL: spoke.url,
      SPOKE_API_KEY: spoke.apiKey,
      SPOKE_OPERATOR_TOKEN: spoke.operatorToken,
      SPOKE_DATA_DIR: dataDir
    }
  })

  afterAll(async () => {
    await spoke.kill()
    removeFolder(dataDir)
  })

  for (const page of pages.filter((name) => snippets(name, "sh").length > 0)) {
    it.skipIf(!hasShell)(
      `${page} (shell)`,
      async () => {
        // With job control, as in a terminal: `kill %1` ends npx and what it runs.
        const script = ["set -euo pipefail; set -m", ...snippets(page, "sh")].join("\n")
        const { code, stdout, stderr } = await run(["-c", script], variables, ["bash"])
        expect({ code, stderr: code === 0 ? "" : `${stdout}\n${stderr}` }).toEqual({ code: 0, stderr: "" })
        expect(stdout).not.toContain('"error":{')
      },
      120_000
    )
  }

  for (const page of pages.filter((name) => snippets(name, "js").length > 0)) {
    it(`${page} (JavaScript)`, async () => {
      for (const code of snippets(page, "js")) {
        const ended = await run(["--input-type=module", "-e", code], variables, [process.execPath])
        expect(ended.stderr).toBe("")
        expect(ended.code).toBe(0)
        expect(ended.stdout.trim()).not.toBe("")
      }
    }, 60_000)
  }
})
