/**
 * What a real server answers in the lane beside the framework. That both answer alike is in test/http/Direct.test.ts and
 * test/http/Webhooks.test.ts; here nothing but who did.
 */
import * as Path from "node:path"
import { pathToFileURL } from "node:url"
import { afterAll, beforeAll, expect, it } from "vitest"
import { signed } from "./Deliveries.ts"
import { removeFolder, root, type Spoke, start, temporaryFolder } from "./Spoke.ts"

const folder = temporaryFolder()
const appSecret = "the app secret of the lane"
let spoke: Spoke

beforeAll(async () => {
  const preload = pathToFileURL(Path.join(root, "test/e2e/framework.mjs")).href
  spoke = await start(folder, {
    SPOKE_EMBEDDING_MODEL: "offline",
    CHANNEL_APP_SECRET: appSecret,
    NODE_OPTIONS: `--import=${preload}`
  })
})

afterAll(async () => {
  await spoke.kill()
  removeFolder(folder)
})

/** The requests that the framework has seen, once that which ends them has come there. */
const seen = async () => {
  const last = `/v1/usage?${performance.now()}`
  expect((await spoke.request("GET", last)).status).toBe(200)
  while (!spoke.output().includes(`framework: GET ${last}`))
    await new Promise((resolve) => setTimeout(resolve, 10))
  return [...spoke.output().matchAll(/^framework: (POST .*)$/gmu)].map(([, request]) => request)
}

const send = async (path: string, body: string, headers: Readonly<Record<string, string>> = {}) => {
  const response = await fetch(`${spoke.url}${path}`, {
    method: "POST",
    headers: { "x-api-key": spoke.apiKey, "content-type": "application/json", ...headers },
    body
  })
  return { status: response.status, text: await response.text() }
}

it("Turns, streams, searches and deliveries are answered in the lane, their refusals too", async () => {
  const turn = JSON.stringify({ message: "How do I add a source?" })
  expect((await send("/v1/chat", turn)).status).toBe(200)
  expect((await send("/v1/chat/stream", turn)).text).toMatch(/data-done[\s\S]*\[DONE\]/u)
  expect((await send("/v1/retrieve", JSON.stringify({ query: "source" }))).status).toBe(200)
  expect((await send("/v1/retrieve", "{")).status).toBe(400)
  expect((await send("/v1/chat", turn, { "x-api-key": "spk_unknown" })).status).toBe(401)
  const delivery = JSON.stringify({ entry: [] })
  for (const channel of ["whatsapp", "messenger"]) {
    const path = `/api/webhooks/${channel}`
    expect((await send(path, delivery, signed(appSecret, delivery))).status).toBe(200)
    expect((await send(path, delivery, { "x-hub-signature-256": "sha256=00" })).status).toBe(401)
  }
  expect(await seen()).toEqual([])
})

it("What the lane leaves alone is answered by the framework", async () => {
  const query = JSON.stringify({ query: "source" })
  expect((await send("/v1/retrieve?of=ours", query)).status).toBe(200)
  expect((await send("/v1/sources", "{}")).status).toBe(400)
  expect(await seen()).toEqual(["POST /v1/retrieve?of=ours", "POST /v1/sources"])
})
