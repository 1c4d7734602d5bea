/** Rules and dashboards ask for what a started server tells, and what it tells is what Prometheus wants. */
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import * as Fs from "node:fs"
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
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
const hasPrometheus = spawnSync("prometheus", ["--version"]).status === 0

/** As Prometheus asks for metrics. */
const accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"

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

  /** What a collector of traces was sent. */
  let traced = ""
  const collector = Http.createServer((request, response) => {
    request.setEncoding("utf8").on("data", (part: string) => (traced += part))
    request.on("end", () => response.setHeader("content-type", "application/json").end("{}"))
  })

  beforeAll(async () => {
    const stub = await Effect.runPromise(Scope.extend(ModelStub.make, scope))
    await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve))
    spoke = await start(folder, {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(collector.address() as AddressInfo).port}`,
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
    collector.closeAllConnections()
    collector.close()
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

  it.skipIf(!hasPromtool)(
    "opens a ticket for a job that failed for good, however many are stored already",
    () => {
      const failed = {
        eval_time: "20m",
        alertname: "SpokeJobsFailed",
        exp_alerts: [
          {
            exp_labels: { severity: "ticket", queue: "embedding" },
            exp_annotations: { summary: "Jobs of queue embedding have failed for good." }
          }
        ]
      }
      const file = Path.join(folder, "rules-test.json")
      Fs.writeFileSync(
        file,
        JSON.stringify({
          rule_files: [rulesFile],
          tests: [
            {
              interval: "1m",
              input_series: [
                {
                  series: 'spoke_queue_jobs{queue="embedding",state="failed",instance="a"}',
                  values: "500x60"
                },
                {
                  series: 'spoke_queue_jobs{queue="ingestion",state="failed",instance="a"}',
                  values: "500x60"
                },
                {
                  series: 'spoke_queue_failed_jobs_total{queue="embedding",instance="a"}',
                  values: "0x15 1x44"
                },
                { series: 'spoke_queue_failed_jobs_total{queue="embedding",instance="b"}', values: "7x60" },
                { series: 'spoke_queue_failed_jobs_total{queue="ingestion",instance="a"}', values: "9x60" }
              ],
              alert_rule_test: [
                failed,
                { ...failed, eval_time: "14m", exp_alerts: [] },
                { ...failed, eval_time: "50m", exp_alerts: [] }
              ]
            }
          ]
        })
      )
      const tested = promtool(["test", "rules", file])
      expect([tested.status, tested.stdout, tested.stderr]).toEqual([
        0,
        expect.stringContaining("SUCCESS"),
        ""
      ])
    }
  )

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

  it("leads from slow turns, searches, calls to providers and requests to their traces", async () => {
    const response = await fetch(`${spoke.url}/metrics`, { headers: { accept } })
    expect(response.headers.get("content-type")).toBe(
      "application/openmetrics-text; version=1.0.0; charset=utf-8"
    )
    const open = await response.text()
    const tracesOf = (name: string) =>
      Array.from(
        open.matchAll(new RegExp(`^${name}_bucket.* # \\{trace_id="(\\w{32})"\\} `, "gmu")),
        ([, id = ""]) => id
      )
    const names = [
      "spoke_turn_duration_seconds",
      "spoke_turn_first_text_seconds",
      "spoke_retrieval_duration_seconds",
      "spoke_provider_request_duration_seconds",
      "spoke_http_request_duration_seconds"
    ]
    for (const name of names) expect([name, tracesOf(name).length > 0]).toEqual([name, true])
    const [turn = ""] = tracesOf("spoke_turn_duration_seconds")
    expect(tracesOf("spoke_http_request_duration_seconds")).toContain(turn)
    // The collector has that trace.
    await until(
      async () => traced.includes(turn),
      (found) => found
    )
    // Without exemplars it is what the text format tells, but for the names of counters.
    const plain = open
      .replace(/ # \{trace_id=.*$/gmu, "")
      .replace(/^# (HELP|TYPE) (\S+)(?= .*$)/gmu, (line, kind, name) =>
        families.get(`${name}_total`)?.type === "counter" ? `# ${kind} ${name}_total` : line
      )
      .replace(/# EOF\n$/u, "")
    expect(read(plain).problems).toEqual([])
  })

  it.skipIf(!hasPrometheus)(
    "is scraped by Prometheus, which keeps the exemplars",
    async () => {
      const home = Path.join(folder, "prometheus")
      Fs.mkdirSync(home)
      const file = Path.join(home, "prometheus.yml")
      const target = spoke.url.replace("http://", "")
      Fs.writeFileSync(
        file,
        JSON.stringify({
          global: { scrape_interval: "1s", evaluation_interval: "1s" },
          rule_files: [rulesFile],
          scrape_configs: [{ job_name: "spoke", static_configs: [{ targets: [target] }] }]
        })
      )
      const probe = Http.createServer().listen(0, "127.0.0.1")
      await once(probe, "listening")
      const { port } = probe.address() as AddressInfo
      probe.close()
      const url = `http://127.0.0.1:${port}`
      const server = spawn(
        "prometheus",
        [
          `--config.file=${file}`,
          `--storage.tsdb.path=${home}`,
          `--web.listen-address=127.0.0.1:${port}`,
          "--enable-feature=exemplar-storage",
          "--log.level=error"
        ],
        { stdio: "ignore" }
      )
      const exited = once(server, "exit")
      try {
        const end = () => Date.now() / 1_000
        const query = async (path: string) => {
          try {
            return JSON.parse(await (await fetch(`${url}/api/v1/${path}`)).text())
          } catch {
            return undefined
          }
        }
        const asked = encodeURIComponent("spoke_turn_duration_seconds_bucket")
        const found = await until(
          async () => query(`query_exemplars?query=${asked}&start=${end() - 600}&end=${end()}`),
          (answer) => answer?.data?.length > 0,
          30_000
        )
        expect(found.data[0].exemplars[0].labels.trace_id).toMatch(/^\w{32}$/u)
        const up = await query("query?query=up")
        expect(up.data.result[0]).toMatchObject({
          metric: { job: "spoke" },
          value: [expect.any(Number), "1"]
        })
        const told = await query("rules")
        const loaded = told.data.groups.flatMap(
          (group: { readonly rules: ReadonlyArray<Rule> }) => group.rules
        )
        expect(loaded).toHaveLength(rules.length)
        expect(
          loaded.filter(({ lastError }: { readonly lastError?: string }) => lastError !== undefined)
        ).toEqual([])
      } finally {
        server.kill("SIGKILL")
        await exited
      }
    },
    60_000
  )

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
