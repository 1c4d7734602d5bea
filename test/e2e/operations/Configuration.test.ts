/** `spoke pull`, `spoke plan` and `spoke apply` at a running server. */
import * as Fs from "node:fs"
import * as Path from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { ask, csrf, makeTenant, type Owner } from "../routes/RouteWorld.ts"
import { removeFolder, run, type Spoke, start, temporaryFolder } from "../Spoke.ts"

const folder = temporaryFolder()
const dataDir = temporaryFolder()
let spoke: Spoke
let owner: Owner
let variables: Readonly<Record<string, string>> = {}

beforeAll(async () => {
  spoke = await start(dataDir)
  owner = await makeTenant(spoke, "files")
  const made = await ask(spoke, "POST", "/api/tokens", {
    cookie: owner.cookie,
    headers: csrf,
    body: { name: "Deploy", scopes: ["agents:write", "sources:read"] }
  })
  variables = {
    SPOKE_URL: spoke.url,
    SPOKE_TOKEN: JSON.parse(made.text).data.secret,
    SPOKE_DATA_DIR: folder
  }
})

afterAll(async () => {
  await spoke.kill()
  removeFolder(folder)
  removeFolder(dataDir)
})

const write = (name: string, content: unknown) => {
  const file = Path.join(folder, name)
  Fs.writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content))
  return file
}

it("a file is planned, applied, and then there is nothing left to do", async () => {
  write("prompt.md", "Answer in one sentence.\n")
  const file = write("agents.json", {
    agents: { Shop: { instructions: { file: "prompt.md" }, retrieval: { topK: 3 } } }
  })
  const planned = await run(["plan", file], variables)
  expect([planned.code, planned.stdout]).toEqual([2, expect.stringContaining("+ Shop is created")])
  expect(planned.stdout).toContain('instructions: "Answer in one sentence.\\n"')
  expect(planned.stderr).toContain("1 to create, 0 to change, 0 to delete.")
  const unasked = await run(["apply", file], variables)
  expect([unasked.code, unasked.stderr]).toEqual([1, expect.stringContaining("--yes")])
  const unread = await run(["apply", file, "--json"], variables)
  expect([unread.code, unread.stdout]).toEqual([1, ""])
  expect(unread.stderr).toContain("+ Shop is created")
  const applied = await run(["apply", file, "--yes"], variables)
  expect([applied.code, applied.stderr]).toEqual([0, expect.stringContaining("Applied: 1 to create")])
  const again = await run(["plan", file], variables)
  expect([again.code, again.stdout.trim()]).toEqual([0, "Nothing would change."])
  const pulled = await run(["pull", "--json"], variables)
  expect(JSON.parse(pulled.stdout)).toEqual({
    agents: { Shop: { instructions: "Answer in one sentence.\n", retrieval: { topK: 3 } } }
  })
  const kept = write("pulled.json", pulled.stdout)
  const same = await run(["plan", kept, "--json"], variables)
  expect([same.code, JSON.parse(same.stdout).changes]).toEqual([0, []])
})

it("sources and tools stand in YAML and modules, with texts and secrets by reference", async () => {
  write("handbook.md", "# Tolls\n\nThe ferryman keeps the tolls in a tin.\n")
  const file = write(
    "desk.yaml",
    `
agents:
  Desk:
    sources:
      Handbook: { type: TEXT, config: { text: { file: handbook.md } } }
      Hours:
        type: QA
        config: { pairs: [{ question: When are you open?, answer: From nine to five. }] }
    remoteTools:
      stock:
        description: How many are left.
        http: { url: "https://shop.example/stock/{sku}" }
        parameters: { type: object, properties: { sku: { type: string } } }
        auth: { kind: bearer, secret: { env: STOCK_KEY } }
`
  )
  const unset = await run(["plan", file], variables)
  expect([unset.code, unset.stderr]).toEqual([1, expect.stringContaining("STOCK_KEY is not set")])
  const withSecret = { ...variables, STOCK_KEY: "canary-of-the-stock" }
  const outputs = [await run(["plan", file], withSecret)]
  expect([outputs[0]?.code, outputs[0]?.stdout]).toEqual([2, expect.stringContaining("sources.Handbook")])
  const applied = await run(["apply", file, "--yes", "--wait"], withSecret)
  expect([applied.code, applied.stderr]).toEqual([0, expect.stringContaining("2 of 2 sources are read.")])
  expect((await run(["plan", file], withSecret)).code).toBe(0)
  const pulled = await run(["pull"], variables)
  outputs.push(applied, pulled)
  expect(outputs.map(({ stderr, stdout }) => stdout + stderr).join("")).not.toContain("canary")
  const desk = JSON.parse(pulled.stdout).agents.Desk
  expect(Object.keys(desk.sources)).toEqual(["Handbook", "Hours"])
  expect(desk.remoteTools.stock.auth).toEqual({ kind: "bearer" })
  const alone = await run(["pull", "--agents-only"], variables)
  expect(JSON.parse(alone.stdout).agents.Desk).toEqual({})
  const module = write(
    "desk.mjs",
    `export default { agents: { Desk: ${JSON.stringify({ sources: {} })} } }\n`
  )
  const emptied = await run(["plan", module, "--json"], variables)
  expect(
    JSON.parse(emptied.stdout).changes[0].fields.map((change: { field: string }) => change.field)
  ).toEqual(["sources.Handbook", "sources.Hours"])
  const spoken = write("spoken.json", {
    agents: {
      Desk: {
        remoteTools: {
          stock: { http: { url: "https://shop.example/" }, auth: { kind: "bearer", secret: "canary" } }
        }
      }
    }
  })
  const refused = await run(["plan", spoken], variables)
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("named by reference")])
  const token = write("token.json", {
    agents: { Desk: { channels: { telegram: { accessToken: "canary" } } } }
  })
  const shown = await run(["plan", token], variables)
  expect([shown.code, shown.stderr]).toEqual([1, expect.stringContaining("named by reference")])
  const unasked = await run(["destroy", module], variables)
  expect([unasked.code, unasked.stderr]).toEqual([1, expect.stringContaining("--yes")])
  const destroyed = await run(["destroy", module, "--yes"], variables)
  expect([destroyed.code, destroyed.stderr]).toEqual([0, expect.stringContaining("1 to delete")])
  const left = await run(["pull"], variables)
  expect(Object.keys(JSON.parse(left.stdout).agents)).toEqual(["Shop"])
})

it("a removal is planned with --prune alone", async () => {
  const none = write("none.json", { agents: {} })
  expect((await run(["plan", none], variables)).code).toBe(0)
  const pruned = await run(["plan", none, "--prune", "--json"], variables)
  expect([pruned.code, JSON.parse(pruned.stdout).changes]).toMatchObject([
    2,
    [{ action: "delete", agent: "Shop" }]
  ])
})

it("a file that is wrong changes nothing, and the words say what is", async () => {
  for (const [content, words] of [
    ["{", "is not valid JSON"],
    [{ agent: {} }, "has no agents"],
    [{ agents: { A: { instruction: "x" } } }, "instruction"],
    [{ agents: { A: { retrieval: { topK: 99 } } } }, "topK"],
    [{ agents: { A: { instructions: { file: "missing.md" } } } }, "missing.md cannot be read"],
    [{ agents: { A: {} }, more: 1 }, "more"]
  ] as const) {
    const refused = await run(["apply", write("wrong.json", content), "--yes"], variables)
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining(words)])
  }
  const pulled = await run(["pull"], variables)
  expect(Object.keys(JSON.parse(pulled.stdout).agents)).toEqual(["Shop"])
})

it("a token that may not, or none, is refused with what to do", async () => {
  const none = await run(["pull"], { ...variables, SPOKE_TOKEN: "" })
  expect([none.code, none.stderr]).toEqual([1, expect.stringContaining("SPOKE_TOKEN")])
  const wrong = await run(["pull"], { ...variables, SPOKE_TOKEN: "spt_wrong" })
  expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining("UNAUTHORIZED")])
})

it("settings by which clearly fewer test cases pass are not applied, unless that is allowed", async () => {
  const question = (place: number) => `Where does the ferryman keep the tolls, traveller ${place}?`
  const cases = Array.from({ length: 8 }, (_, place) => ({
    question: question(place),
    expectFacts: ["in a tin"]
  }))
  const config = { text: "# Tolls\n\nThe ferryman keeps the tolls in a tin." }
  const said = (retrieval: object, style: object = {}) =>
    write("ferry.json", {
      agents: { Ferry: { retrieval, style, sources: { Tolls: { type: "TEXT", config } }, cases } }
    })
  const made = await run(["apply", said({}), "--yes", "--wait"], variables)
  expect([made.code, made.code === 0 ? "" : made.stderr]).toEqual([0, ""])
  const pulled = JSON.parse((await run(["pull", "--json"], variables)).stdout)
  expect(pulled.agents.Ferry.cases).toMatchObject(cases)

  const fine = await run(["plan", said({ topK: 4 }), "--json"], variables)
  expect(fine.code).toBe(2)
  expect(JSON.parse(fine.stdout).gates).toEqual([
    {
      agent: "Ferry",
      experiment: expect.stringMatching(/^exp_/),
      cases: 8,
      passed: 8,
      regression: false,
      broken: [],
      mended: []
    }
  ])

  const brief = await run(["plan", said({}, { length: "short" }), "--json"], variables)
  expect(JSON.parse(brief.stdout).gates).toMatchObject([{ agent: "Ferry", cases: 8, passed: 8 }])

  const file = said({ minScore: 1 })
  const planned = await run(["plan", file], variables)
  expect([planned.code, planned.stdout]).toEqual([
    1,
    expect.stringContaining("! Ferry: 0 of 8 test cases pass, clearly fewer than now")
  ])
  expect(planned.stdout).toContain(`fails now:  ${question(0)}`)
  expect(planned.stderr).toContain("--allow-regression")
  const unasked = await run(["plan", file, "--no-cases"], variables)
  expect([unasked.code, unasked.stdout.includes("test cases pass")]).toEqual([2, false])
  const refused = await run(["apply", file, "--yes"], variables)
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("Nothing has been changed")])
  expect(JSON.parse((await run(["pull", "--json"], variables)).stdout).agents.Ferry.retrieval).toBeUndefined()
  const allowed = await run(["apply", file, "--yes", "--allow-regression"], variables)
  expect([allowed.code, allowed.stderr]).toEqual([
    0,
    expect.stringContaining("Applied: 0 to create, 1 to change")
  ])

  const without = { retrieval: { topK: 5 }, widget: { allowedOrigins: ["https://ferry.example"] }, cases: [] }
  const emptied = await run(
    ["apply", write("ferry.json", { agents: { Ferry: without } }), "--yes"],
    variables
  )
  expect([emptied.code, emptied.stderr]).toEqual([
    0,
    expect.stringContaining("Applied: 0 to create, 1 to change")
  ])
  expect(JSON.parse((await run(["pull", "--json"], variables)).stdout).agents.Ferry.cases).toBeUndefined()
}, 120_000)
