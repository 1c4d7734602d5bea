/** Rules and dashboards ask for what a started server tells, and what it tells is what Prometheus wants. */
import { spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { parser } from "@prometheus-io/lezer-promql"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { parse } from "yaml"
import { type Family, read } from "../../http/Exposition.ts"
import * as ModelStub from "../../servers/ModelStub.ts"
import { production, removeFolder, root, type Spoke, start, temporaryFolder, until } from "../Spoke.ts"

interface Selector {
  readonly metric: string
  readonly labels: ReadonlyArray<string>
}

/** The metrics that a query selects, with the labels that it names of them; fails for what is no PromQL. */
const selectorsOf = (query: string): ReadonlyArray<Selector> => {
  const selectors: Array<{ metric: string; readonly labels: Array<string> }> = []
  const broken: Array<number> = []
  parser.parse(query).iterate({
    enter: ({ from, name, node, to, type }) => {
      if (type.isError) broken.push(from)
      const text = query.slice(from, to)
      if (name === "VectorSelector") selectors.push({ metric: "", labels: [] })
      const current = selectors.at(-1)
      if (current === undefined) return
      if (name === "Identifier" && node.parent?.name === "VectorSelector") current.metric = text
      if (name === "LabelName" && node.parent?.name === "UnquotedLabelMatcher") current.labels.push(text)
    }
  })
  expect({ query, broken }).toEqual({ query, broken: [] })
  return selectors
}

const promtool = (args: ReadonlyArray<string>, input = "") =>
  spawnSync("promtool", args, { cwd: root, encoding: "utf8", input })
const hasPromtool = promtool(["--version"]).status === 0

interface Rule {
  readonly alert?: string
  readonly record?: string
  readonly expr: string
  readonly annotations?: { readonly summary: string }
}

const rulesFile = Path.join(root, "deploy/alerts.yml")
const groups: ReadonlyArray<{ readonly rules: ReadonlyArray<Rule> }> = parse(
  Fs.readFileSync(rulesFile, "utf8")
).groups
const rules = groups.flatMap((group) => group.rules)
const recorded = rules.flatMap(({ record }) => (record === undefined ? [] : [record]))

const dashboardFolder = Path.join(root, "deploy/grafana")
const dashboards = Fs.readdirSync(dashboardFolder).map((file) => ({
  file,
  board: JSON.parse(Fs.readFileSync(Path.join(dashboardFolder, file), "utf8"))
}))

/** As Grafana fills them in. */
const filled = (query: string) =>
  query
    .replaceAll("$__rate_interval", "5m")
    .replaceAll("$__range", "6h")
    .replaceAll("$job", ".*")
    .replaceAll(/\$(?:input|output)_price/gu, "1.5")

describe.skipIf(production)("A server that is monitored", () => {
  const scope = Effect.runSync(Scope.make())
  const folder = temporaryFolder()
  let spoke: Spoke
  let text = ""
  let families: ReadonlyMap<string, Family>

  const scrape = async () => (await fetch(`${spoke.url}/metrics`)).text()

  beforeAll(async () => {
    const stub = await Effect.runPromise(Scope.extend(ModelStub.make, scope))
    spoke = await start(folder, {
      OPENAI_API_KEY: "sk-test",
      OPENAI_BASE_URL: stub.url,
      SPOKE_ACCESS_LOG: "enabled",
      LOG_FORMAT: "json"
    })
    const source = { type: "TEXT", name: "Hours", config: { text: "The museum opens at ten." } }
    await spoke.request("POST", "/v1/sources", { body: source })
    await spoke.request("POST", "/v1/chat", { body: { message: "When does the museum open?" } })
    await spoke.request("POST", "/v1/retrieve", { body: { query: "museum" } })
    await fetch(`${spoke.url}/api/webhooks/whatsapp`, { method: "POST", body: "{}" })
    await spoke.request("GET", "/readyz", { key: null })
    text = await until(scrape, (all) => /^spoke_embedded_chunks_total [1-9]/mu.test(all))
    families = read(text).families
  }, 120_000)

  afterAll(async () => {
    await spoke.kill()
    removeFolder(folder)
    await Effect.runPromise(Scope.close(scope, Exit.void))
  })

  /** What of `selectors` no scrape has: neither the metric nor a series with those labels. */
  const absent = (selectors: ReadonlyArray<Selector>) => {
    const all = [...families.values()].flatMap(({ samples }) => samples)
    return selectors.filter(({ labels, metric }) => {
      if (metric === "up" || recorded.includes(metric)) return false
      const own = all.filter(({ name }) => name === metric)
      // The scraper adds these two.
      const told = labels.filter((label) => label !== "job" && label !== "instance")
      return !own.some((sample) => told.every((label) => label in sample.labels))
    })
  }

  it("tells its metrics as Prometheus' linter wants them", () => {
    expect(read(text).problems).toEqual([])
    expect(families.size).toBeGreaterThan(25)
  })

  it.skipIf(!hasPromtool)("passes promtool, and so do the rules", () => {
    const metrics = promtool(["check", "metrics"], text)
    expect([metrics.status, metrics.stdout, metrics.stderr]).toEqual([0, "", ""])
    const checked = promtool(["check", "rules", "deploy/alerts.yml"])
    expect([checked.status, checked.stderr]).toEqual([0, ""])
  })

  it("has every metric and label that the rules ask for, and every alert says what is wrong", () => {
    const selectors = rules.flatMap(({ expr }) => selectorsOf(expr))
    expect(selectors.length).toBeGreaterThan(40)
    expect(absent(selectors)).toEqual([])
    const asked = selectors.map(({ metric }) => metric)
    expect(recorded.filter((name) => !asked.includes(name))).toEqual([])
    for (const { alert, annotations } of rules) {
      if (alert !== undefined) expect(annotations?.summary.length).toBeGreaterThan(20)
    }
  })

  it("watches each objective over a short and a long window, fast and slow", () => {
    const of = (alert: string) =>
      rules.filter((rule) => rule.alert === alert).map(({ expr }) => expr.match(/ratio_rate\w+/gu)?.join(" "))
    for (const alert of [
      "SpokeTurnsFail",
      "SpokeFirstTextSlow",
      "SpokeWebhooksFail",
      "SpokeMessagesWait",
      "SpokeEmbeddingsFail"
    ])
      expect([alert, of(alert)]).toEqual([alert, ["ratio_rate5m ratio_rate1h", "ratio_rate30m ratio_rate6h"]])
  })

  it("has every metric and label that the dashboards ask for, whatever the data source is called", () => {
    expect(dashboards.map(({ file }) => file)).toEqual(["spoke-answers.json", "spoke-service.json"])
    for (const { board, file } of dashboards) {
      expect([file, board.uid, board.templating.list[0]]).toMatchObject([
        file,
        file.replace(".json", ""),
        { name: "datasource", type: "datasource", query: "prometheus" }
      ])
      const panels = board.panels.filter(({ type }: { readonly type: string }) => type !== "row")
      const ids = board.panels.map(({ id }: { readonly id: number }) => id)
      expect(new Set(ids).size).toBe(ids.length)
      for (const panel of panels) {
        expect([panel.title, panel.datasource.uid]).toEqual([panel.title, "${datasource}"])
        const queries: ReadonlyArray<string> = panel.targets.map(
          ({ expr }: { readonly expr: string }) => expr
        )
        const selectors = queries.flatMap((query) => selectorsOf(filled(query)))
        expect(selectors.length).toBeGreaterThan(0)
        expect([panel.title, absent(selectors)]).toEqual([panel.title, []])
      }
    }
  })

  it("measures turns, first texts, searches, providers and waits of jobs, in the same buckets", () => {
    const counted = (name: string, labels: Readonly<Record<string, string>> = {}) =>
      (families.get(name)?.samples ?? [])
        .filter((sample) => sample.name === `${name}_count`)
        .filter((sample) => Object.entries(labels).every(([label, value]) => sample.labels[label] === value))
        .reduce((sum, { value }) => sum + value, 0)
    expect(counted("spoke_turn_duration_seconds", { outcome: "complete" })).toBe(1)
    expect(counted("spoke_turn_first_text_seconds")).toBe(1)
    expect(counted("spoke_retrieval_duration_seconds")).toBeGreaterThan(1)
    for (const operation of ["chat", "embeddings"])
      expect(
        counted("spoke_provider_request_duration_seconds", { operation, provider: "openai", outcome: "ok" })
      ).toBeGreaterThan(0)
    for (const queue of ["ingestion", "embedding"])
      expect(counted("spoke_queue_wait_seconds", { queue })).toBeGreaterThan(0)
    const buckets = [...families.values()]
      .filter(({ name, type }) => type === "histogram" && name.endsWith("_seconds"))
      .map(({ samples }) =>
        [
          ...new Set(samples.flatMap(({ labels }) => (labels["le"] === undefined ? [] : [labels["le"]])))
        ].join(" ")
      )
    expect(new Set(buckets).size).toBe(1)
  })

  it("writes a line for each request that was answered, where that is asked for, without what stands behind a question mark", async () => {
    await spoke.request("GET", "/v1/sources?limit=7")
    const lines = await until(
      async () =>
        spoke
          .output()
          .split("\n")
          .filter((line) => line.includes('"message":"Request"'))
          .map((line) => JSON.parse(line)),
      (all) => all.some(({ route }) => route === "/v1/sources")
    )
    expect(lines.find(({ method, route }) => method === "GET" && route === "/v1/sources")).toMatchObject({
      level: "info",
      path: "/v1/sources",
      status: 200,
      durationMs: expect.any(Number),
      requestId: expect.any(String)
    })
    expect(lines.some(({ route }) => route === "/api/webhooks/whatsapp")).toBe(true)
    expect(lines.some(({ route }) => route === "/readyz" || route === "/metrics")).toBe(false)
    expect(spoke.output()).not.toContain("limit=7")
  })
})
