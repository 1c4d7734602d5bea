/** Readings that wait, vectors that are made while processes die, and texts in many scripts: real processes on PostgreSQL. */
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Pg from "pg"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { binaries } from "../servers/PostgresServer.ts"
import { serverUrl } from "../TestDatabase.ts"
import { waitForJob, removeFolder, type Spoke, start, temporaryFolder, until } from "./Spoke.ts"
import { makeTeam } from "./Team.ts"

const skipped = binaries === undefined && process.env["CI"] !== "true"

/** What is read, what is asked, and a piece of the answer. No word is shared between two of them. */
const texts = [
  {
    name: "Chinese",
    says: "图书馆星期一至星期五上午九点开门。退款申请必须在三十天之内提交。",
    query: "退款申请期限",
    answer: "三十天"
  },
  {
    name: "Japanese",
    says: "返品は商品到着後十四日以内にご連絡ください。送料はお客様のご負担となります。",
    query: "送料は誰の負担ですか",
    answer: "お客様のご負担"
  },
  {
    name: "Korean",
    says: "박물관은 매주 월요일에 휴관합니다. 입장료는 성인 오천 원입니다.",
    query: "박물관 입장료",
    answer: "오천 원"
  },
  {
    name: "Thai",
    says: "ร้านเปิดทุกวันตั้งแต่เก้าโมงเช้า สินค้ามีการรับประกันหนึ่งปี",
    query: "การรับประกันสินค้า",
    answer: "หนึ่งปี"
  },
  {
    name: "Russian",
    says: "Гарантия на аккумулятор составляет два года. Доставка бесплатна по всей стране.",
    query: "гарантия на аккумулятор",
    answer: "два года"
  },
  {
    name: "Arabic",
    says: "يمكن إلغاء الاشتراك في أي وقت من صفحة الحساب. لا توجد رسوم إضافية.",
    query: "إلغاء الاشتراك",
    answer: "صفحة الحساب"
  }
] as const

/** Long enough that their vectors take seconds. */
const parts = 120
const book = Array.from(
  { length: parts },
  (_, part) =>
    `<h2>Chapter ${part}</h2>` +
    `<p>${`The inventory of hall ${part} lists lamps, chairs and the register number R-${part}. `.repeat(16)}</p>`
).join("\n")

describe.skipIf(skipped)("Readings and vectors on one PostgreSQL server", () => {
  const folder = temporaryFolder()
  const site = Http.createServer((request, response) => {
    const text = texts.find(({ name }) => request.url === `/${name}.txt`)
    response.setHeader("content-type", text === undefined ? "text/html" : "text/plain; charset=utf-8")
    response.end(text?.says ?? `<!doctype html><title>Inventory</title><main>${book}</main>`)
  })
  let database: Pg.Client
  let variables: Readonly<Record<string, string>> = {}
  let api: Spoke
  let worker: Spoke | undefined
  let key = ""

  beforeAll(async () => {
    await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve))
    const server = new URL(Redacted.value(await Effect.runPromise(serverUrl)))
    const admin = new Pg.Client({ connectionString: server.href })
    await admin.connect()
    await admin.query("create database embedding")
    await admin.end()
    server.pathname = "/embedding"
    database = new Pg.Client({ connectionString: server.href })
    await database.connect()
    variables = {
      DATABASE_URL: server.href,
      SPOKE_SECRET: "a secret of these tests, thirty-two bytes",
      SPOKE_OPERATOR_TOKEN: "operator",
      SPOKE_FETCH_ALLOW: "127.0.0.1"
    }
    api = await start(folder, variables, ["--role", "api"])
    const team = await makeTeam(api)
    key = (await team.key({ permissions: ["retrieve", "ingest"] })).secret
  }, 60_000)

  afterAll(async () => {
    await worker?.kill()
    await api.kill()
    await database.end()
    site.close()
    removeFolder(folder)
  })

  const add = async (type: string, path: string, config: "url" | "fileUrl"): Promise<string> => {
    const url = `http://127.0.0.1:${(site.address() as AddressInfo).port}${path}`
    const { body } = await api.request("POST", "/v1/sources", {
      key,
      body: { type, name: path, config: { [config]: url } }
    })
    return body.data.ingestionJob.id
  }
  const read = (jobId: string) => waitForJob({ ...api, request: asKey }, jobId, 90_000)
  const asKey: Spoke["request"] = (method, path, options) => api.request(method, path, { ...options, key })
  const oldest = async () => (await api.request("GET", "/readyz", { key: null })).body.data.queue

  /** The vectors of each chunk that the built-in model knows, and the transaction that wrote each. */
  const vectors = async () => {
    const { rows } = await database.query<{ id: string; xmin: string | null }>(
      "select c.id, e.xmin::text from chunks c left join chunk_embeddings e on e.chunk_id = c.id where c.version is not null and c.english"
    )
    return rows
  }
  const made = async () => (await vectors()).filter(({ xmin }) => xmin !== null)

  it("/readyz tells how long the oldest reading has waited for a worker, and null when none does", async () => {
    expect(await oldest()).toEqual({ oldestWaitingSeconds: null })
    const jobs = [await add("FILE", "/Russian.txt", "fileUrl")]
    const { oldestWaitingSeconds } = await until(oldest, (queue) => queue.oldestWaitingSeconds >= 1)
    expect(oldestWaitingSeconds).toBeLessThan(60)
    worker = await start(folder, variables, ["--role", "worker"])
    for (const job of jobs) expect((await read(job)).body.data.status).toBe("SUCCEEDED")
    expect(await oldest()).toEqual({ oldestWaitingSeconds: null })
  }, 120_000)

  it("what is read in Chinese, Japanese, Korean, Thai, Russian and Arabic is found in it", async () => {
    for (const { name } of texts.filter(({ name }) => name !== "Russian")) {
      expect((await read(await add("FILE", `/${name}.txt`, "fileUrl"))).body.data.status).toBe("SUCCEEDED")
    }
    for (const { answer, name, query } of texts) {
      const { body } = await asKey("POST", "/v1/retrieve", { body: { query, topK: 3 } })
      expect([name, body.data.chunks[0]?.text]).toEqual([name, expect.stringContaining(answer)])
    }
  }, 120_000)

  it("a worker killed (-9) among vectors: another makes those that are missing, and none twice", async () => {
    const earlier = (await until(vectors, (rows) => rows.every(({ xmin }) => xmin !== null))).length
    await add("URL", "/inventory", "url")
    await until(made, (rows) => rows.length > earlier, 90_000)
    await worker?.kill()
    const before = await made()
    const all = await vectors()
    expect(before.length).toBeLessThan(all.length)
    worker = await start(folder, variables, ["--role", "worker"])
    const after = await until(vectors, (rows) => rows.every(({ xmin }) => xmin !== null), 180_000)
    expect(after.map(({ id }) => id).toSorted()).toEqual(all.map(({ id }) => id).toSorted())
    expect(new Set(after.map(({ id }) => id)).size).toBe(after.length)
    // What was there was not written again.
    expect(after).toEqual(expect.arrayContaining(before))
  }, 330_000)
})
