/**
 * Turns bench/results.json into the generated part of docs/performance.md and its charts. `npm run bench` does it at its
 * end; `node bench/report.mjs` does it alone, `node bench/report.mjs FOLDER` elsewhere than in docs/.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { bars, lines } from "./charts.mjs"
import { measuredTargets } from "./targets.mjs"

const docs = path.resolve(import.meta.dirname, "../docs")
/** The record of bench/features.mjs, which is a run of its own. */
const features = JSON.parse(fs.readFileSync(path.join(import.meta.dirname, "features.json"), "utf8"))
const begin = "<!-- results: written by npm run bench -->"
const end = "<!-- end of results -->"

const names = {
  bare: "bare",
  handwritten: "hand-written",
  server: "Spoke, PostgreSQL",
  embedded: "Spoke, embedded"
}
const kinds = Object.keys(names)

/** One bar for each target that has a value. */
const row = (group, read) => ({
  group,
  bars: kinds.flatMap((kind) => {
    const value = read(kind)
    return value === undefined || value === null ? [] : [{ kind, name: names[kind], value }]
  })
})

const clientsLabel = (clients) => `${clients} client${clients === 1 ? "" : "s"}`

const at = (rows, clients) => rows.find((each) => each.clients === clients)

const chatCharts = (chat) => {
  const clients = chat.turns.map((each) => each.clients)
  const cost = (rows, count) => row(clientsLabel(count), (kind) => at(rows, count)?.[kind]?.cpuMs)
  return {
    "chat-cpu": {
      text: "What a turn and a stream cost their process (the database's own share is in results.json)",
      svg: bars(
        "CPU of a chat turn and of a stream, 16 clients, ms",
        [
          { ...cost(chat.turns, 16), group: "Turn: /v1/chat" },
          { ...cost(chat.streams, 16), group: "Stream of 50 tokens: /v1/chat/stream" }
        ],
        { unit: " ms" }
      )
    },
    "chat-throughput": {
      text: "Turns a second by the number of clients",
      svg: bars(
        "Turns a second, model answers at once",
        clients.map((count) => row(clientsLabel(count), (kind) => at(chat.turns, count)[kind]?.perSecond)),
        { unit: "/s" }
      )
    },
    "chat-first-token": {
      text: "What is added to the model's first token",
      svg: bars(
        "Added to the first token (the model's own: 200 ms), p50",
        chat.paced.map(({ addedToFirstTokenMs, clients: count }) =>
          row(clientsLabel(count), (kind) => addedToFirstTokenMs[kind])
        ),
        { unit: " ms", ownScale: true }
      )
    }
  }
}

const retrieveCharts = ({ growth, sideBySide }) => {
  const points = (sizes, field) => sizes.map((size) => [size.chunks, size[field]])
  const series = [
    ...(growth.server
      ? [
          { kind: "server", name: "PostgreSQL, small agent", points: points(growth.server, "smallMs") },
          {
            kind: "server",
            name: "PostgreSQL, large agent",
            points: points(growth.server, "largeMs"),
            dashed: true
          },
          {
            kind: "bare",
            name: "bare SQL, large agent",
            points: points(growth.server, "bareLargeMs"),
            dashed: true
          }
        ]
      : []),
    { kind: "embedded", name: "embedded, small agent", points: points(growth.embedded, "smallMs") },
    {
      kind: "embedded",
      name: "embedded, large agent",
      points: points(growth.embedded, "largeMs"),
      dashed: true
    }
  ]
  return {
    retrieve: {
      text: "Searching 5,000 chunks",
      svg: bars(
        "Searches over 5,000 chunks",
        [
          row("Alone, p50 in ms", (kind) => at(sideBySide, 1)[kind]?.p50),
          row("16 clients, requests a second", (kind) => at(sideBySide, 16)[kind]?.perSecond)
        ],
        { ownScale: true }
      )
    },
    "retrieve-growth": {
      text: "Searching as agents grow: one of 1,000 chunks beside a large one",
      svg: lines("A search, p50, as the large agent grows", series, {
        unit: " ms",
        across: "chunks of the large agent"
      })
    }
  }
}

const ingestionCharts = (ingestion) => ({
  ingestion: {
    text: "Documents a second",
    svg: bars(
      "Documents a second, embeddings cost nothing",
      [
        row(
          "Accepted to READY (by hand: to the last vector)",
          (kind) => (ingestion[kind]?.toReady ?? ingestion[kind])?.documentsPerSecond
        ),
        row(
          "To the last vector",
          (kind) => (ingestion[kind]?.toLastVector ?? ingestion[kind])?.documentsPerSecond
        )
      ],
      { unit: "/s" }
    )
  }
})

const webhookCharts = ({ accepted }) => ({
  webhooks: {
    text: "Webhooks accepted a second",
    svg: bars(
      "Webhooks accepted a second, each in its own rounds with the bare server",
      [...new Set(accepted.map(({ clients }) => clients))].map((clients) => ({
        group: clientsLabel(clients),
        bars: accepted
          .filter((each) => each.clients === clients)
          .flatMap(({ bare, engine, ratio, spoke }) => [
            { kind: "bare", name: `bare, beside ${engine}`, value: bare.perSecond },
            { kind: engine, name: names[engine], value: spoke.perSecond, note: `${ratio} ×` }
          ])
      })),
      { unit: "/s" }
    )
  }
})

const startCharts = (start) => ({
  start: {
    text: "Start and memory",
    svg: bars(
      "Start on existing data, and resident memory",
      [
        row("CPU seconds to the first 200", (kind) => start[kind]?.cpuSeconds),
        row("Seconds to the first 200", (kind) => start[kind]?.seconds),
        row("MiB idle", (kind) => start[kind]?.memory?.idleMiB),
        row("MiB at most, under load", (kind) => start[kind]?.memory?.peakMiB)
      ],
      { ownScale: true }
    )
  }
})

const marks = { aim: "●", must: "◐", missed: "○" }

const table = (figures) => [
  "| # | Measure | Must | Aim | PostgreSQL | Embedded |",
  "|---|---|---|---|---|---|",
  ...measuredTargets({ ...figures, features }).map(({ aim, measure, must, number, ...rest }) => {
    const cell = (engine) => [marks[rest[engine].reached], rest[engine].text].filter(Boolean).join(" ")
    return `| ${number} | ${measure} | ${must} | ${aim} | ${cell("server")} | ${cell("embedded")} |`
  })
]

const recall = (growth) =>
  growth?.server === undefined
    ? []
    : [
        "| Chunks of the large agent | Found of the 10 nearest | Found of the 80 nearest |",
        "|---|---|---|",
        ...growth.server.map(
          ({ chunks, recall: found }) =>
            `| ${chunks.toLocaleString("en-US")} | ${found.nearestTen} | ${found.nearest80} |`
        ),
        ""
      ]

const streamsAtOnce = (chat) =>
  chat === undefined
    ? []
    : [
        "| Streams at once | | Errors | First token, ms | CPU of a delta, µs | Memory of a stream, KiB |",
        "|---|---|---|---|---|---|",
        ...chat.atOnce.map(
          ({ clients, cpuMicrosecondsPerDelta, errors, first, memoryKiBPerStream, target }) =>
            `| ${clients.toLocaleString("en-US")} | ${names[target]} | ${errors} | ${first} | ${cpuMicrosecondsPerDelta} | ${memoryKiBPerStream} |`
        ),
        ""
      ]

/** Spoke beside services with frameworks. */
const comparison = ({ clients, services, streams, turns }) => {
  const called = {
    ...names,
    handwritten: "Hono with the AI SDK",
    langchain: "Hono with LangChain.js",
    mastra: "Hono with Mastra"
  }
  const cells = ({ toHandwritten, ...results }, name) =>
    `${results[name].cpuMs} | ${toHandwritten[name]} × | ${results[name].perSecond}`
  const rows = ["handwritten", "langchain", "mastra", "server", "embedded"]
    .filter((name) => name in turns)
    .map((name) => {
      const { lines = "–", megabytes, packages, version } = services[name] ?? services.spoke
      return `| ${called[name]} | ${version} | ${lines} | ${packages}, ${megabytes} MB | ${cells(turns, name)} | ${cells(streams, name)} |`
    })
  return [
    `Measured with ${clients} clients. The CPU time is that of the service, without its database and the model; the embedded`,
    "database has a thread of Spoke's process, and is included.",
    "",
    "| Service | Version | Lines of its own | Installed | Turn: CPU, ms | To the first row | Turns/s | Stream: CPU, ms | To the first row | Streams/s |",
    "|---|---|---|---|---|---|---|---|---|---|",
    ...rows,
    ""
  ]
}

/** The record of bench/profiles/measure.mjs, which is a run of its own. */
const profileFile = path.join(import.meta.dirname, "profile.json")

const profiles = () => {
  if (!fs.existsSync(profileFile)) return []
  const profile = JSON.parse(fs.readFileSync(profileFile, "utf8"))
  const works = ["turn", "stream", "search", "document", "webhook"]
  const columns = ["server", "embedded"].flatMap((engine) =>
    profile[engine] === undefined ? [] : works.map((work) => ({ engine, work, ...profile[engine][work] }))
  )
  const parts = new Map()
  for (const { shares } of columns) {
    for (const [part, share] of Object.entries(shares)) parts.set(part, (parts.get(part) ?? 0) + share)
  }
  const ordered = [...parts].toSorted(([, one], [, other]) => other - one).map(([part]) => part)
  const line = (title, read) => `| ${title} | ${columns.map(read).join(" | ")} |`
  return [
    `What the main thread of a process spends its CPU time on, by a sampling profiler (\`npm run bench:profile\`, ${profile.clients} clients).`,
    "The profiler itself makes everything slower: the shares are what counts.",
    "",
    line("", ({ engine, work }) => `${work}, ${engine === "server" ? "PostgreSQL" : "embedded"}`),
    `|---|${"---|".repeat(columns.length)}`,
    line("CPU, ms", ({ cpuMs }) => cpuMs),
    ...ordered.map((part) => line(part, ({ shares }) => `${Math.round((shares[part] ?? 0) * 100)} %`)),
    ""
  ]
}

const machines = (figures) => {
  const lines = Object.values(figures).map(
    ({ cores, memoryGiB, node, postgres, processor, redis }) =>
      `${cores} cores of ${processor}, ${memoryGiB} GiB, Node ${node}, PostgreSQL ${postgres ?? "none"}, ${redis ? "Redis" : "no Redis"}`
  )
  return [...new Set(lines)]
}

/** Writes a page with `text` between its marks. */
const write = (name, folder, text) => {
  const page = fs.readFileSync(path.join(docs, name), "utf8")
  const [before, after] = [page.indexOf(begin), page.indexOf(end)]
  if (before < 0 || after < 0) throw new Error(`docs/${name} has no marks for the results.`)
  fs.writeFileSync(path.join(folder, name), page.slice(0, before) + text + page.slice(after + end.length))
}

/** Writes the charts and the part of the page between the marks; `folder` instead of docs/ for a trial. */
export const report = ({ figures }, folder = docs) => {
  const charts = {
    ...(figures.chat && chatCharts(figures.chat)),
    ...(figures.retrieve && retrieveCharts(figures.retrieve)),
    ...(figures.ingestion && ingestionCharts(figures.ingestion)),
    ...(figures.webhooks && webhookCharts(figures.webhooks)),
    ...(figures.start && startCharts(figures.start))
  }
  for (const [name, { svg }] of Object.entries(charts)) {
    fs.writeFileSync(path.join(folder, `performance-${name}.svg`), svg)
  }
  const image = ([name, { text }]) => `![${text}](performance-${name}.svg)\n`
  const chartsOf = (prefix) =>
    Object.entries(charts)
      .filter(([name]) => name.startsWith(prefix))
      .map(image)
  const text = [
    begin,
    "",
    `Measured on ${machines(figures).join("; ")}. ● reaches the aim, ◐ what`,
    "it must, ○ neither; – has not been measured.",
    "",
    ...table(figures),
    "",
    ...chartsOf("chat"),
    ...streamsAtOnce(figures.chat),
    ...chartsOf("retrieve"),
    ...recall(figures.retrieve?.growth),
    ...chartsOf("ingestion"),
    ...chartsOf("webhooks"),
    ...chartsOf("start"),
    ...profiles(),
    end
  ].join("\n")
  write("performance.md", folder, text)
  if (figures.frameworks?.turns !== undefined) {
    write("comparison.md", folder, [begin, "", ...comparison(figures.frameworks), end].join("\n"))
  }
}

if (path.resolve(process.argv[1] ?? "") === import.meta.filename) {
  report(JSON.parse(fs.readFileSync(path.join(import.meta.dirname, "results.json"), "utf8")), process.argv[2])
}
