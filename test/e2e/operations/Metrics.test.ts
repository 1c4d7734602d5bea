import * as fs from "node:fs"
import * as path from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { removeFolder, root, type Spoke, start, temporaryFolder } from "../Spoke.ts"

const folder = temporaryFolder()
let spoke: Spoke

beforeAll(async () => {
  spoke = await start(folder)
}, 60_000)

afterAll(async () => {
  await spoke.kill()
  removeFolder(folder)
})

/** Of all that answer, as a scraper that knows each of them. */
const metrics = async () =>
  (await Promise.all(spoke.each.map(async (url) => (await fetch(`${url}/metrics`)).text()))).join("\n")

const page = fs.readFileSync(path.join(root, "docs/observability.md"), "utf8")

it("requests are counted by the pattern of their route, never by an address", async () => {
  await spoke.request("GET", "/v1/sources/src_canary")
  await spoke.request("GET", "/nowhere/canary")
  await spoke.request("GET", "/v1/sources")
  const text = await metrics()
  const count = (route: string, status: number) =>
    `spoke_http_request_duration_seconds_count{method="GET",route="${route}",status="${status}"} 1\n`
  expect(text).toContain(count("/v1/sources/:id", 404))
  expect(text).toContain(count("/v1/sources", 200))
  expect(text).toContain(count("none", 404))
  expect(text).not.toContain("canary")
})

it("deliveries of messaging providers are counted like every request", async () => {
  const response = await fetch(`${spoke.url}/api/webhooks/whatsapp`, { method: "POST", body: "{}" })
  const labels = `method="POST",route="/api/webhooks/whatsapp",status="${response.status}"`
  expect(await metrics()).toContain(`spoke_http_request_duration_seconds_count{${labels}} 1\n`)
})

it("turns are counted by how they ended, with their tokens, from 0 on", async () => {
  const answered = () => spoke.request("POST", "/v1/chat", { body: { message: "What is a turn?" } })
  const told = async (name: string, label: string) =>
    Array.from((await metrics()).matchAll(new RegExp(`^${name}\\{${label}\\} (\\d+)$`, "gmu")))
      .map(([, value]) => Number(value))
      .reduce((sum, value) => sum + value, 0)
  const complete = await told("spoke_turns_total", 'outcome="complete"')
  expect((await answered()).status).toBe(200)
  expect((await answered()).status).toBe(200)
  expect(await told("spoke_turns_total", 'outcome="complete"')).toBe(complete + 2)
  const text = await metrics()
  for (const outcome of ["failed", "timed_out", "taken_over"])
    expect(text).toContain(`spoke_turns_total{outcome="${outcome}"} 0\n`)
  for (const direction of ["input", "output"])
    expect(text).toContain(`spoke_turn_tokens_total{direction="${direction}"} `)
  for (const supported of ["yes", "partly", "no"])
    expect(text).toContain(`spoke_turn_citations_total{supported="${supported}"} `)
  for (const rating of ["up", "down"]) expect(text).toContain(`spoke_ratings_total{rating="${rating}"} 0\n`)
  for (const by of ["agent", "person", "service"])
    expect(text).toContain(`spoke_handoffs_total{by="${by}"} 0\n`)
  for (const kind of ["draft", "experiment", "image", "judge", "replay"])
    expect(text).toContain(`spoke_other_model_calls_total{kind="${kind}"} 0\n`)
})

it("the pool of connections tells how much of it is used, and the program which one it is", async () => {
  const text = await metrics()
  for (const line of [
    /^spoke_database_connections\{state="busy"\} \d+$/mu,
    /^spoke_database_connections\{state="idle"\} \d+$/mu,
    /^spoke_database_connections_limit [1-9]\d*$/mu,
    /^spoke_limit_waiting\{limit="database-connections"\} \d+$/mu
  ])
    expect(text).toMatch(line)
  const { version } = JSON.parse(fs.readFileSync(path.join(root, "package.json"), "utf8"))
  const build = /^spoke_build_info\{(.*)\} 1$/mu.exec(text)?.[1]?.split(",").toSorted()
  expect(build).toEqual([expect.stringMatching(/^node="2\d\./u), `version="${version}"`])
})

it("every queue tells how long it is and how long its oldest job has waited", async () => {
  const names = [
    "artifact-cleanup",
    "channel-inbound",
    "channel-outbound",
    "embedding",
    "experiments",
    "ingestion",
    "webhook-outbound"
  ]
  const text = await metrics()
  for (const name of names) expect(text).toContain(`spoke_queue_oldest_waiting_seconds{queue="${name}"}`)
  const { body } = await spoke.request("GET", "/readyz", { key: null })
  expect(body.data.queues.map(({ name }: { readonly name: string }) => name).toSorted()).toEqual(names)
})

it("the metrics that the documentation promises from the start are there", async () => {
  const text = await metrics()
  const listed = Array.from(page.matchAll(/^\| `([a-z_]+)` \| from the start \|/gmu), ([, name = ""]) => name)
  expect(listed.length).toBeGreaterThan(5)
  expect(listed.filter((name) => !text.includes(`# TYPE ${name} `))).toEqual([])
  const ours = Array.from(text.matchAll(/^# TYPE ((?:spoke|process)_\w+)/gmu), ([, name = ""]) => name)
  expect(ours.filter((name) => !page.includes(`\`${name}\``))).toEqual([])
})
