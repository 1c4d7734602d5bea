/** The description that clients are generated from: valid, typed, and true of every public call of a real server. */
import { execFile } from "node:child_process"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { promisify } from "node:util"
import { validate } from "@readme/openapi-parser"
import { Validator } from "@seriousme/openapi-schema-validator"
import { transform } from "esbuild"
import openapiTS from "openapi-typescript"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { schemaProblems } from "../http/Conformance.ts"
import { removeFolder, root, type Spoke, start, temporaryFolder } from "./Spoke.ts"

const run = promisify(execFile)

type Json = ReturnType<typeof JSON.parse>

/** Version 7 of openapi-typescript, which `scripts/runtimes.mjs` installs: it needs an older compiler than this project. */
const newest = (process.env["SPOKE_TEST_RUNTIMES"] ?? "")
  .split(Path.delimiter)
  .map((runtimes) => Path.resolve(runtimes, "openapi-typescript"))
  .find((program) => Fs.existsSync(program))

const folder = temporaryFolder()
/** Below the project, so that its packages are found. */
const generated = Fs.mkdtempSync(Path.join(root, "node_modules/.openapi-"))
let spoke: Spoke
let document: Json

beforeAll(async () => {
  spoke = await start(folder, { SPOKE_EMBEDDING_MODEL: "offline", SPOKE_FETCH_ALLOW: "127.0.0.1" })
  document = await (await fetch(`${spoke.url}/openapi.json`)).json()
}, 60_000)

afterAll(async () => {
  await spoke.kill()
  removeFolder(folder)
  Fs.rmSync(generated, { recursive: true })
})

const get = (path: string, headers: Readonly<Record<string, string>> = {}) =>
  fetch(`${spoke.url}${path}`, { headers })

/** The fields of a value and of what is in it; of an array those of its first item. A `config` depends on the source's type. */
const shapeOf = (value: Json): Json => {
  if (Array.isArray(value)) return value.length === 0 ? [] : [shapeOf(value[0])]
  if (typeof value !== "object" || value === null) return null
  return Object.fromEntries(
    Object.keys(value)
      .toSorted()
      .map((name) => [name, name === "config" ? null : shapeOf(value[name])])
  )
}

/** True where `example` shows every field that `real` has, as far as both have something there. */
const isAlike = (example: Json, real: Json): boolean => {
  if (example === null || real === null) return true
  if (Array.isArray(example) || Array.isArray(real)) {
    return example.length === 0 || real.length === 0 || isAlike(example[0], real[0])
  }
  return Object.keys(real).every((name) => name in example && isAlike(example[name], real[name]))
}

describe("/openapi.json", () => {
  it("is valid OpenAPI 3.1 by two validators", async () => {
    expect(document.openapi).toBe("3.1.0")
    expect(await new Validator().validate(structuredClone(document))).toMatchObject({ valid: true })
    expect(await validate(structuredClone(document))).toMatchObject({ valid: true })
  })

  it("names what operations take and answer, and where they are asked", () => {
    expect(document.servers).toEqual([{ url: spoke.url }])
    expect(Object.keys(document.components.schemas)).toEqual(
      expect.arrayContaining([
        "Chunk",
        "Citation",
        "Conversation",
        "IngestionJob",
        "Media",
        "Message",
        "RetrieveFilter",
        "RunEvent",
        "Source",
        "ChatCompleteRequest",
        "ChatCompleteData",
        "NotFoundError",
        "ValidationError"
      ])
    )
    const { parameters } = document.paths["/v1/sources"].get
    expect(parameters.find(({ name }: Json) => name === "limit").schema).toMatchObject({
      type: "integer",
      minimum: 1,
      maximum: 100
    })
    for (const each of ["/v1/agent-runs/{runId}", "/v1/conversations/{id}/messages"]) {
      const limit = document.paths[each].get.parameters.find(({ name }: Json) => name === "limit")
      expect([each, limit.schema.type]).toEqual([each, "integer"])
    }
  })

  const program = Fs.readFileSync(Path.join(root, "test/fixtures/openapi/Calls.ts.txt"), "utf8")
  /** What the compiler says of the program with these types. */
  const complaintsWith = async (types: string) => {
    Fs.writeFileSync(Path.join(generated, "schema.d.ts"), types)
    Fs.writeFileSync(Path.join(generated, "calls.ts"), program)
    const options = ["--noEmit", "--strict", "--skipLibCheck", "--target", "es2023", "--module", "nodenext"]
    const compiler = Path.join(root, "node_modules/typescript/bin/tsc")
    const compiled = await run(
      process.execPath,
      [compiler, ...options, "--types", "node", "--ignoreConfig", Path.join(generated, "calls.ts")],
      { cwd: generated }
    ).catch((error: { readonly stdout: string }) => error)
    return compiled.stdout
  }

  it.skipIf(newest === undefined)(
    "gives types with which that program compiles also by version 7 of the generator",
    async () => {
      const description = Path.join(generated, "openapi.json")
      Fs.writeFileSync(description, JSON.stringify(document))
      const { stdout } = await run(process.execPath, [Fs.realpathSync(newest ?? ""), description], {
        maxBuffer: 64 * 1024 * 1024
      })
      expect(stdout).toContain("export interface paths")
      expect(await complaintsWith(stdout)).toBe("")
    }
  )

  it("gives types with which a program compiles that makes every public call, and the answers are as described", async () => {
    expect(await complaintsWith(await openapiTS(structuredClone(document)))).toBe("")
    const { code } = await transform(program, { loader: "ts", format: "esm" })
    Fs.writeFileSync(Path.join(generated, "calls.mjs"), code)
    const { stdout } = await run(process.execPath, [Path.join(generated, "calls.mjs")], {
      env: { ...process.env, SPOKE_URL: spoke.url, SPOKE_API_KEY: spoke.apiKey },
      maxBuffer: 64 * 1024 * 1024
    })
    const { seen, told }: Json = JSON.parse(stdout)
    expect(told.code).toBe("NOT_FOUND")

    const described = Object.entries<Json>(document.paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method} ${path}`)
    )
    expect(new Set(seen.map(({ method, path }: Json) => `${method} ${path}`))).toEqual(new Set(described))

    const unlike: Array<Json> = []
    for (const { body, method, path, status } of seen) {
      const operation = document.paths[path][method]
      const answer = operation.responses[status]
      expect([path, status, answer !== undefined]).toEqual([path, status, true])
      const media = answer.content?.["application/json"]
      if (typeof body === "string" || media === undefined) continue
      expect([path, schemaProblems(media.schema, body)]).toEqual([path, []])
      if (media.example === undefined) continue
      const [example, real] = [shapeOf(media.example), shapeOf(body)]
      if (!isAlike(example, real)) unlike.push({ path, example, real })
    }
    expect(unlike).toEqual([])
  }, 120_000)

  it("is kept by clients that have it, and compressed for those that can read that", async () => {
    for (const path of ["/openapi.json", "/openapi.compact.json", "/api/manage/v1/openapi.json"]) {
      const first = await get(path, { "accept-encoding": "identity" })
      const etag = first.headers.get("etag") ?? ""
      expect([first.status, first.headers.get("content-encoding")]).toEqual([200, null])
      const text = await first.text()
      const kept = await get(path, { "accept-encoding": "identity", "if-none-match": `W/${etag}, "x"` })
      expect([kept.status, kept.headers.get("etag"), await kept.text()]).toEqual([304, etag, ""])
      const refused = await get(path, { "accept-encoding": "gzip;q=0, identity" })
      expect(refused.headers.get("content-encoding")).toBe(null)
      const small = await get(path, { "accept-encoding": "gzip" })
      expect(small.headers.get("content-encoding")).toBe("gzip")
      expect(small.headers.get("etag")).not.toBe(etag)
      expect(Number(small.headers.get("content-length"))).toBeLessThan(text.length / 3)
      expect(await small.text()).toBe(text)
      expect((await get(path, { "if-none-match": '"another"' })).status).toBe(200)
    }
  })

  it("is the whole description, and has a compact one beside it", async () => {
    expect(await (await get("/openapi.full.json")).text()).toBe(await (await get("/openapi.json")).text())
    const compact: Json = await (await get("/openapi.compact.json")).json()
    expect(Object.keys(compact.paths).toSorted()).toEqual(Object.keys(document.paths).toSorted())
    expect(JSON.stringify(compact)).not.toMatch(/"(?:content|requestBody|components)"/u)
  })
})
