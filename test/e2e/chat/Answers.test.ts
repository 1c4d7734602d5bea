import * as Fs from "node:fs"
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import * as Path from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { waitForJob, removeFolder, root, type Spoke, startFresh, temporaryFolder } from "../Spoke.ts"

/** The documentation of undici as its package ships it: some forty pages of Markdown. */
const library = Path.join(root, "node_modules/undici/docs/docs")

/** A question and the pages that answer it. */
const questions: ReadonlyArray<readonly [question: string, ...pages: ReadonlyArray<string>]> = [
  ["What is the maximum number of retries of a failed request by default?", "RetryHandler", "RetryAgent"],
  ["How do I send requests through a SOCKS5 proxy?", "Socks5ProxyAgent"],
  ["How can I read the cookies of an incoming request's headers?", "Cookies"],
  ["How do I send a ping frame on a websocket?", "WebSocket"],
  ["Which error is thrown when the headers take too long to arrive?", "Errors"],
  ["How do I intercept a request in a test and reply with a fixed status?", "MockPool"],
  ["How do I record real HTTP responses and play them back in tests?", "SnapshotAgent"],
  [
    "How do I subscribe to the diagnostics channel that reports when a request is created?",
    "DiagnosticsChannel"
  ],
  ["How do I listen to server-sent events?", "EventSource"],
  ["How do I store cached responses in SQLite?", "CacheStore"]
]

describe("Answers from the documentation of a large public project", () => {
  const dataDir = temporaryFolder()
  const pages = Fs.readdirSync(Path.join(library, "api")).filter((name) => name.endsWith(".md"))
  const site = Http.createServer((request, response) => {
    const file = Path.join(library, "api", Path.basename(request.url ?? ""))
    if (!Fs.existsSync(file) || Fs.statSync(file).isDirectory()) return void response.writeHead(404).end()
    response.setHeader("content-type", "text/markdown; charset=utf-8").end(Fs.readFileSync(file))
  })
  let spoke: Spoke

  beforeAll(async () => {
    await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve))
    const origin = `http://127.0.0.1:${(site.address() as AddressInfo).port}`
    spoke = await startFresh(dataDir, { SPOKE_FETCH_ALLOW: "127.0.0.1" })
    const jobs = await Promise.all(
      pages.map(async (name, place) => {
        const config =
          place % 2 === 0
            ? { type: "URL", config: { url: `${origin}/${name}` } }
            : { type: "FILE", config: { fileUrl: `${origin}/${name}` } }
        const { body } = await spoke.request("POST", "/v1/sources", { body: { name, ...config } })
        expect(body.error).toBeUndefined()
        return body.data.ingestionJob.id as string
      })
    )
    for (const id of jobs) {
      const { body } = await waitForJob(spoke, id, 120_000)
      expect(body.data).toMatchObject({ status: "SUCCEEDED", error: null })
    }
  }, 180_000)

  afterAll(async () => {
    await spoke.kill()
    site.close()
    removeFolder(dataDir)
  })

  it("cite the right document for at least nine of ten questions, before the vectors are there", async () => {
    const wrong: Array<string> = []
    for (const [question, ...right] of questions) {
      const { body, status } = await spoke.request("POST", "/v1/chat", {
        body: { message: question, persist: false }
      })
      expect(status).toBe(200)
      const cited: ReadonlyArray<string> = body.data.citations.map(({ url }: { url: string }) =>
        Path.basename(url, ".md")
      )
      if (!cited.some((page) => right.includes(page))) wrong.push(`${question} → ${cited.join(", ")}`)
    }
    // One may go wrong; all of them stand in the failure.
    expect(wrong.slice(1)).toEqual([])
  }, 60_000)
})
