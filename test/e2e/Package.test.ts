/** The package as it is installed: the real tarball in an empty project, its examples run, its types read by a program. */
import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { pack, textRow, xlsxFiles } from "../fixtures/documents/OfficeWriter.ts"
import { handbook } from "../fixtures/documents/PdfWriter.ts"

const run = promisify(execFile)
const root = Path.join(import.meta.dirname, "../..")
const project = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-package-"))
const modules = Path.join(project, "node_modules")
const stepTimeoutMillis = 300_000

const manifest: { peerDependencies: Record<string, string>; devDependencies: Record<string, string> } =
  JSON.parse(Fs.readFileSync(Path.join(root, "package.json"), "utf8"))

const atVersion = (name: string) => `${name}@${manifest.devDependencies[name]}`

/** What the examples are about, beside the package. */
const beside = ["hono", "@hono/node-server", "@types/node"].map(atVersion)

/** What a program of `spoke/effect` installs, too. */
const ofEffect = Object.keys(manifest.peerDependencies)
  .filter((name) => name === "effect" || name.startsWith("@effect/"))
  .map(atVersion)

/** What npm has at hand already need not come over the network again. */
const quiet = ["--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]

const filesBelow = (folder: string) =>
  Fs.readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => Path.join(entry.parentPath, entry.name))

const docx = (text: string) =>
  pack({
    "[Content_Types].xml":
      '<Types><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>',
    "_rels/.rels":
      '<Relationships><Relationship Id="a" Type="x/officeDocument" Target="word/document.xml"/></Relationships>',
    "word/document.xml": `<w:document><w:body><w:p><w:t>${text}</w:t></w:p></w:body></w:document>`
  })

/** One of each kind that is read by other code. */
const documents = {
  "tea.md": Buffer.from("# Tea\n\nGreen tea is brewed at eighty degrees."),
  "tea.html": Buffer.from(
    "<html><body><main><h1>Black</h1><p>A darjeeling is black.</p></main></body></html>"
  ),
  "tea.txt": Buffer.from(
    "The crème brûlée goes with any tea, à la française. Déjà vu, très élégant.",
    "latin1"
  ),
  "tea.docx": docx("An oolong is half of each."),
  "tea.xlsx": pack(xlsxFiles([{ name: "Teas", rows: textRow(1, ["assam", "strong"]) }])),
  "tea.pdf": handbook(1),
  "tea.png": Buffer.from(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "base64"
  )
}

const npm = (cwd: string, ...args: ReadonlyArray<string>) =>
  run("npm", args, { cwd, timeout: stepTimeoutMillis, maxBuffer: 64 * 1_048_576 })

const node = (...args: ReadonlyArray<string>) =>
  run(process.execPath, args, {
    cwd: project,
    timeout: stepTimeoutMillis,
    env: { PATH: process.env["PATH"], SPOKE_DATA_DIR: Path.join(project, "data") }
  })

/** `file` in the folders of SPOKE_TEST_RUNTIMES (scripts/runtimes.mjs fills one) or on the path. */
const found = (file: string): string | undefined =>
  `${process.env["SPOKE_TEST_RUNTIMES"] ?? ""}${Path.delimiter}${process.env["PATH"] ?? ""}`
    .split(Path.delimiter)
    .filter((folder) => folder !== "")
    .map((folder) => Path.join(folder, file))
    .find((name) => Fs.existsSync(name))

interface Trial {
  readonly name: string
  /** None where the runtime is not on this machine. */
  readonly program: string | undefined
  readonly args: ReadonlyArray<string>
}

const nodes = [
  { name: "this Node", program: process.execPath },
  { name: "Node 22", program: found("node22") },
  { name: "Node 24", program: found("node24") }
]
const jest = found("jest")
const vitest = Path.join(root, "node_modules/vitest/vitest.mjs")

const trials: ReadonlyArray<Trial> = [
  ...nodes.flatMap(({ name, program }) => [
    { name: `${name}, imported`, program, args: ["esm.mjs"] },
    { name: `${name}, by require`, program, args: ["require.cjs"] },
    { name: `${name}, on a thread`, program, args: ["thread.mjs"] },
    {
      name: `Jest on ${name}`,
      program: jest === undefined ? undefined : program,
      args: [
        "--experimental-vm-modules",
        "--disable-warning=ExperimentalWarning",
        jest ?? "",
        "--config",
        JSON.stringify({ testMatch: ["**/spoke.test.mjs"], transform: {}, silent: true })
      ]
    },
    ...["forks", "threads", "vmThreads"].map((pool) => ({
      name: `Vitest on ${name}, in its ${pool}`,
      program,
      args: [vitest, "run", "--root", ".", "--globals", "--pool", pool]
    }))
  ]),
  { name: "Bun", program: found("bun"), args: ["esm.mjs"] },
  { name: "Deno", program: found("deno"), args: ["run", "--allow-all", "--quiet", "esm.mjs"] }
]

const plainConsumer = `
import { createSpoke, SpokeError, type Spoke, type StreamPart } from "spoke"
import { makeClient } from "spoke/client"
import { spoke as mounted } from "spoke/hono"

export const use = async (spoke: Spoke) => {
  const agent = spoke.agent((await spoke.agents.create({ name: "A" })).id)
  const reply: string = (await agent.chat({ message: "Hi" })).reply
  // @ts-expect-error a turn needs a message
  await agent.chat({})
  // @ts-expect-error a source of this type needs a url
  await agent.sources.create({ type: "URL", name: "x", config: {} })
  // @ts-expect-error there is no such permission
  await agent.keys.create({ name: "x", permissions: ["everything"] })
  for await (const part of agent.stream({ message: "Hi" })) {
    const kind: StreamPart["type"] = part.type
    if (part.type === "text-delta") part.delta.toUpperCase()
    // @ts-expect-error only text has a delta
    if (part.type === "finish") part.delta
    if (part.type === "data-done") part.data.result.citations[0]?.sourceName.trim()
    void kind
  }
  const status: "PENDING" | "PROCESSING" | "READY" | "FAILED" = (await agent.sources.get("s")).status
  const created: string = (await agent.conversations.get("c")).createdAt
  return [reply, status, created]
}
export const failed = (error: unknown) =>
  error instanceof SpokeError && (error.code === "NOT_FOUND" || error.code === "DATA_DIRECTORY_IN_USE")
// @ts-expect-error there is no such code
export const never = (error: SpokeError) => error.code === "NO_SUCH_CODE"
export const remote = makeClient({ baseUrl: "http://127.0.0.1:3000", apiKey: "spk" }).retrieve({ query: "x" })
// @ts-expect-error a client needs a key
makeClient({ baseUrl: "http://127.0.0.1:3000" })
export const opened = () => createSpoke({ dataDir: "x", openai: { apiKey: "k" } })
// @ts-expect-error there is no such setting
export const unknown = () => createSpoke({ folder: "x" })
export const handler = mounted({ dataDir: "x" })
`

const effectConsumer = `
import { makeClient as makeEffectClient } from "spoke/client/effect"
import { AuditLog, AuditLogSql, Spoke as Composed, createSpoke as createWith } from "spoke/effect"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"

export const effects = Effect.gen(function* () {
  const client = yield* makeEffectClient({ baseUrl: "http://127.0.0.1:3000", apiKey: Redacted.make("spk") })
  const { chunks } = yield* client.retrieve.retrieve({ payload: { query: "x", topK: 1, minScore: 0 } })
  return chunks.length
})
export const replaced = () => createWith({}, { replace: AuditLogSql.layerSql })
class Greeting extends Context.Tag("host/Greeting")<Greeting, string>() {}
// @ts-expect-error nothing requires such a tag
export const refused = () => createWith({}, { replace: Layer.succeed(Greeting, "Hello") })
// @ts-expect-error nor beside one that can be replaced
export const both = () => createWith({}, { replace: Layer.merge(AuditLogSql.layerSql, Layer.succeed(Greeting, "Hello")) })
// @ts-expect-error nor in the composed service
export const composedRefused = (settings: Parameters<typeof Composed.layer>[0]) => Composed.layer(settings, { replace: Layer.succeed(Greeting, "Hello") })
export const composed = Composed.layer
export const audit = Layer.map(Layer.effect(AuditLog, AuditLog), (context) => context)
`

const resolutions = [
  { module: "nodenext", moduleResolution: "nodenext" },
  { module: "esnext", moduleResolution: "bundler" }
]

/** What the compiler says of `program`, and how it ends. */
const compiled = async (program: string, options: Readonly<Record<string, unknown>>) => {
  Fs.writeFileSync(Path.join(project, "consumer.ts"), program)
  const compilerOptions = { ...options, strict: true, target: "es2023", noEmit: true, types: ["node"] }
  Fs.writeFileSync(
    Path.join(project, "tsconfig.json"),
    JSON.stringify({ compilerOptions, files: ["consumer.ts"] })
  )
  const compiler = Path.join(root, "node_modules/typescript/bin/tsc")
  return node(compiler, "-p", project).then(
    ({ stdout }) => ({ code: 0, stdout }),
    ({ code, stdout }: { readonly code: number; readonly stdout: string }) => ({ code, stdout })
  )
}

describe("The package", () => {
  beforeAll(async () => {
    const { stdout } = await npm(root, "pack", "--json", "--silent", "--pack-destination", project)
    const tarball = /"filename":\s*"([^"]+)"/u.exec(stdout)?.[1] ?? ""
    Fs.writeFileSync(Path.join(project, "package.json"), JSON.stringify({ type: "module" }))
    await npm(project, "install", ...quiet, Path.join(project, tarball), ...beside)
    Fs.cpSync(Path.join(root, "examples"), project, { recursive: true })
    Fs.cpSync(Path.join(import.meta.dirname, "package"), project, { recursive: true })
  }, stepTimeoutMillis)
  afterAll(() => Fs.rmSync(project, { recursive: true, force: true }), stepTimeoutMillis)

  it("brings what it needs at run time: dashboard, migrations, seed archive, declarations", () => {
    const has = (name: string) => Fs.existsSync(Path.join(modules, "spoke", name))
    const needed = [
      "bin/spoke.mjs",
      "dist/main.js",
      "dist/index.js",
      "dist/effect.js",
      "dist/client.js",
      "dist/client/Effect.js",
      "dist/express.js",
      "dist/fastify.js",
      "dist/hono.js",
      "dist/next.js",
      "dist/seed.tgz",
      "dist/ui/index.html",
      "dist/ui/widget.js",
      "dist/ui/widget-markdown.js",
      "dist/workers/parse.js",
      "dist/types/index.d.ts",
      "dist/types/express.d.ts",
      "dist/types/fastify.d.ts",
      "dist/types/hono.d.ts",
      "dist/types/next.d.ts",
      "migrations/0001_accounts.sql"
    ]
    expect(needed.filter((name) => !has(name))).toEqual([])
  })

  it("weighs at most 120 MB in at most 60 packages, what the examples need included", () => {
    const { packages } = JSON.parse(Fs.readFileSync(Path.join(modules, ".package-lock.json"), "utf8"))
    expect(Object.keys(packages).length).toBeLessThanOrEqual(60)
    const bytes = filesBelow(modules).map((file) => Fs.statSync(file).blocks * 512)
    expect(bytes.reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(120 * 1_048_576)
  })

  it("brings no source maps, and no word of any", () => {
    const files = filesBelow(Path.join(modules, "spoke"))
    expect(files.filter((name) => name.endsWith(".map"))).toEqual([])
    const programs = files.filter((name) => name.endsWith(".js") && !name.includes("/ui/"))
    const mapped = programs.filter((name) => /^\/\/# sourceMappingURL=/mu.test(Fs.readFileSync(name, "utf8")))
    expect(mapped).toEqual([])
  })

  it(
    "answers without the optional packages, and says which one is missing where one is needed",
    async () => {
      const encoded = Object.entries(documents).map(([name, bytes]) => [
        name,
        Buffer.from(bytes).toString("base64")
      ])
      Fs.writeFileSync(Path.join(project, "documents.json"), JSON.stringify(Object.fromEntries(encoded)))
      const { stderr, stdout } = await node("optional.mjs")
      expect({ stderr, stdout: stdout.trim() }).toEqual({ stderr: "", stdout: "all is well" })
    },
    stepTimeoutMillis
  )

  it(
    "tells what is not installed when the service is examined, and does not start without what its settings need",
    async () => {
      const spoke = Path.join(modules, "spoke/bin/spoke.mjs")
      const { stdout } = await node(spoke, "doctor")
      expect(stdout).toMatch(/^warning +packages +.*npm install unpdf$/mu)
      expect(stdout).toMatch(/^warning +packages +.*npm install tesseract\.js @tesseract\.js-data\/eng$/mu)
      const started = run(process.execPath, [spoke, "serve"], {
        cwd: project,
        timeout: stepTimeoutMillis,
        env: {
          PATH: process.env["PATH"],
          SPOKE_DATA_DIR: Path.join(project, "redis"),
          REDIS_URL: "redis://127.0.0.1:1"
        }
      })
      await expect(started).rejects.toMatchObject({
        code: 1,
        stderr: expect.stringContaining("npm install ioredis")
      })
    },
    stepTimeoutMillis
  )

  it.each(["node", "hono"])(
    "is what a project of create-spoke answers with, from the template %s",
    async (template) => {
      if (!Fs.existsSync(Path.join(project, "package"))) {
        const { stdout } = await npm(
          Path.join(root, "create-spoke"),
          "pack",
          "--json",
          "--silent",
          "--pack-destination",
          project
        )
        const tarball = /"filename":\s*"([^"]+)"/u.exec(stdout)?.[1] ?? ""
        await run("tar", ["xzf", tarball], { cwd: project })
      }
      await node("package/create-spoke.mjs", `made-${template}`, "--template", template, "--yes")
      const server = spawn(process.execPath, ["server.mjs"], {
        cwd: Path.join(project, `made-${template}`),
        env: { PATH: process.env["PATH"], PORT: "0" },
        stdio: ["ignore", "pipe", "inherit"]
      })
      const ended = once(server, "exit")
      try {
        const [line] = await once(server.stdout, "data")
        const address = /http:\S+/u.exec(String(line))?.[0] ?? ""
        const ask = (body: string) =>
          fetch(`${address}/chat`, { method: "POST", headers: { "content-type": "application/json" }, body })
        const response = await ask(JSON.stringify({ message: "How is green tea brewed?" }))
        expect(await response.json()).toMatchObject({
          reply: expect.stringContaining("eighty degrees"),
          citations: [{ sourceName: "tea.md" }]
        })
        expect((await ask("no JSON")).status).toBe(400)
      } finally {
        server.kill("SIGTERM")
      }
      expect(await ended).toEqual([0, null])
    },
    stepTimeoutMillis
  )

  it(
    "runs the plain example",
    async () => {
      const { stderr, stdout } = await node("node.mjs")
      expect(stdout).toContain("eighty degrees")
      expect(stderr).toBe("")
    },
    stepTimeoutMillis
  )

  it(
    "runs the example of a channel from outside",
    async () => {
      const { stderr, stdout } = await node("extension/channel.mjs")
      expect(stdout).toMatch(/^555-0100: .*stoneware/u)
      expect(stderr).toBe("")
    },
    stepTimeoutMillis
  )

  it(
    "runs the example of a reader from outside",
    async () => {
      const { stderr, stdout } = await node("extension/reader.mjs")
      expect(stdout).toContain("stoneware")
      expect(stderr).toBe("")
    },
    stepTimeoutMillis
  )

  for (const { args, name, program } of trials) {
    it.skipIf(program === undefined)(
      `works in ${name}, which ends by itself and has nothing to complain of`,
      async () => {
        const { stderr, stdout } = await run(program ?? "", args, {
          cwd: project,
          timeout: stepTimeoutMillis,
          env: { PATH: process.env["PATH"], HOME: project, NO_COLOR: "1" }
        })
        // Jest tells on standard error how its tests went.
        expect(/Tests: +1 passed/u.test(stderr) ? "" : stderr).toBe("")
        expect(stdout + stderr).toMatch(/all is well|Tests: +1 passed|Tests +1 passed/u)
      },
      stepTimeoutMillis
    )
  }

  it.each(["README.md", "docs/library.md"])(
    "runs the example of %s",
    async (page) => {
      const text = Fs.readFileSync(Path.join(root, page), "utf8")
      const [, code = ""] = /```ts\n([\s\S]*?createSpoke[\s\S]*?)```/u.exec(text) ?? []
      Fs.writeFileSync(Path.join(project, "readme.mjs"), code)
      const { stdout } = await node("readme.mjs")
      expect(stdout).toMatch(/eighty degrees|No language model/u)
    },
    stepTimeoutMillis
  )

  it(
    "answers inside a Hono application and a Next.js route file",
    async () => {
      const program = `
      const { app, spoke } = await import("./hono.mjs")
      const get = async (path) => (await app.request(path)).status
      console.log(await get("/hello"), await get("/readyz"), await get("/"), await get("/v1/usage"))
      await spoke.close()
      const route = await import("./next/app/[[...spoke]]/route.mjs")
      const answer = await route.GET(new Request("http://localhost:3000/readyz"))
      console.log(answer.status, "meta" in (await answer.json()))
      await (await globalThis.spoke).close()`
      const { stdout } = await node("--input-type=module", "--eval", program)
      expect(stdout.trim().split("\n")).toEqual(["200 200 200 401", "200 true"])
    },
    stepTimeoutMillis
  )

  it.each(resolutions)(
    "is typed for a program under $moduleResolution, without Effect and with the declarations checked",
    async (resolution) => {
      expect(Fs.existsSync(Path.join(modules, "effect"))).toBe(false)
      expect(await compiled(plainConsumer, { ...resolution, skipLibCheck: false })).toEqual({
        code: 0,
        stdout: ""
      })
    },
    stepTimeoutMillis
  )

  describe("with Effect beside it", () => {
    beforeAll(async () => {
      await npm(project, "install", ...quiet, ...ofEffect)
    }, stepTimeoutMillis)

    it(
      "runs the example that replaces a capability",
      async () => {
        const { stderr, stdout } = await node("replace.mjs")
        expect(stdout).toContain("agent.create")
        expect(stderr).toBe("")
      },
      stepTimeoutMillis
    )

    it.each(resolutions)(
      "is typed for a program of Effect under $moduleResolution",
      async (resolution) => {
        expect(await compiled(effectConsumer, { ...resolution, skipLibCheck: true })).toEqual({
          code: 0,
          stdout: ""
        })
      },
      stepTimeoutMillis
    )
  })
})
