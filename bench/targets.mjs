/** The targets of Spoke, and the recorded results for them. */

const engines = ["server", "embedded"]

const at = (rows, clients) => rows?.find((row) => row.clients === clients)

const times = (value) => `${value} ×`
const ms = (value) => `${value} ms`

/** A measured value and its two bounds; `up`: more is better. */
const bounded = (value, must, aim, { show = times, up = false } = {}) => {
  if (typeof value !== "number" || Number.isNaN(value)) return undefined
  const reaches = (bound) => (up ? value >= bound : value <= bound)
  return { text: show(value), must: reaches(must), aim: reaches(aim) }
}

const addedTo = (chat, clients, engine) => at(chat?.paced, clients)?.addedToFirstTokenMs[engine]
const ratio = (rows, clients, engine, peer, field) => at(rows, clients)?.ratios[engine]?.[peer]?.[field]
const count = (show) => ({ show: (value) => `${value} ${show}` })

const atOnce = (chat, target) => chat?.atOnce.find((row) => row.clients === 1_000 && row.target === target)

const largest = (retrieve, engine) => retrieve?.growth[engine]?.find(({ chunks }) => chunks === 1_000_000)

/** What is measured, its bounds in words, and the parts measured for an engine. */
const targets = [
  {
    measure: "Complete turn, 16 clients: CPU, to hand-written",
    must: "≤ 1.3 ×",
    aim: "≤ 1.0 ×",
    of: ({ chat }, engine) => [bounded(ratio(chat?.turns, 16, engine, "handwritten", "cpu"), 1.3, 1)]
  },
  {
    measure: "Streamed turn, 16 clients: CPU, to hand-written and to bare",
    must: "≤ 0.5 ×",
    aim: "≤ 0.35 ×; ≤ 2 ×",
    of: ({ chat }, engine) => [
      bounded(ratio(chat?.streams, 16, engine, "handwritten", "cpu"), 0.5, 0.35),
      bounded(ratio(chat?.streams, 16, engine, "bare", "cpu"), Infinity, 2)
    ]
  },
  ...[1, 64].map((clients) => ({
    measure: `First token beyond the model's, ${clients} client${clients === 1 ? "" : "s"}`,
    must: "≤ 12 ms",
    aim: "≤ 8 ms",
    of: ({ chat }, engine) => [bounded(addedTo(chat, clients, engine), 12, 8, { show: ms })]
  })),
  {
    measure: "1,000 paced streams: errors; median first token, to bare",
    must: "0; ≤ 1.3 ×",
    aim: "0; ≤ 1.1 ×",
    of: ({ chat }, engine) => {
      const row = atOnce(chat, engine)
      return [
        bounded(row?.errors, 0, 0, count("errors")),
        bounded(row && Number((row.first / atOnce(chat, "bare").first).toPrecision(3)), 1.3, 1.1)
      ]
    }
  },
  {
    measure: "Search of 5,000 chunks: p50 of 1 client, to bare; requests/s of 16 clients, to hand-written",
    must: "≤ 0.8 ×; ≥ 1.3 ×",
    aim: "≤ 0.5 ×; ≥ 2 ×",
    of: ({ retrieve }, engine) => [
      bounded(at(retrieve?.sideBySide, 1)?.ratios.p50[engine]?.bare, 0.8, 0.5),
      bounded(at(retrieve?.sideBySide, 16)?.ratios.perSecond[engine]?.handwritten, 1.3, 2, { up: true })
    ]
  },
  {
    measure: "Search of 1,000,000 chunks: share of the ten nearest that is found; p50",
    must: "≥ 0.97; ≤ 80 ms",
    aim: "≥ 0.99; ≤ 40 ms",
    of: ({ retrieve }, engine) => [
      bounded(largest(retrieve, engine)?.recall?.nearestTen, 0.97, 0.99, { show: String, up: true }),
      bounded(largest(retrieve, engine)?.largeMs, 80, 40, { show: ms })
    ]
  },
  {
    measure: "Ingestion, documents/s from accepted to `READY`, to hand-written",
    must: "≥ 0.9 ×",
    aim: "≥ 1.5 ×",
    of: ({ ingestion }, engine) => [bounded(ingestion?.[engine]?.ratios?.toReady, 0.9, 1.5, { up: true })]
  },
  ...[16, 64].map((clients) => ({
    measure: `Webhooks accepted, requests/s of ${clients} clients, to a bare server that checks the HMAC`,
    must: "≥ 0.3 ×",
    aim: "≥ 0.5 ×",
    of: ({ webhooks }, engine) => {
      const row = webhooks?.accepted.find((each) => each.engine === engine && each.clients === clients)
      return [bounded(row?.ratio, 0.3, 0.5, { up: true })]
    }
  })),
  {
    measure: "Resident memory, idle (PostgreSQL / embedded)",
    must: "≤ 170 / 400 MiB",
    aim: "≤ 130 / 250 MiB",
    of: ({ start }, engine) => [
      bounded(
        start?.[engine]?.memory.idleMiB,
        engine === "server" ? 170 : 400,
        engine === "server" ? 130 : 250,
        count("MiB")
      )
    ]
  },
  {
    measure: "Start on existing data to the first 200, CPU seconds (PostgreSQL / embedded)",
    must: "≤ 1.0 / 1.7",
    aim: "≤ 0.6 / 1.2",
    of: ({ start }, engine) => [
      bounded(
        start?.[engine]?.cpuSeconds,
        engine === "server" ? 1 : 1.7,
        engine === "server" ? 0.6 : 1.2,
        count("s")
      )
    ]
  },
  {
    measure:
      "A turn with row level security and a webhook, 16 clients: CPU with the database's, to one without (versions and grounding are in both)",
    must: "≤ 1.15 ×",
    aim: "≤ 1.05 ×",
    of: ({ features }, engine) => [
      bounded(engine === "server" ? at(features?.turns, 16)?.ratios.both.allCpu : undefined, 1.15, 1.05)
    ]
  },
  {
    measure: "Errors of turns and streams at 64 and 256 clients",
    must: "0",
    aim: "0",
    of: ({ chat }, engine) => [
      bounded(
        chat &&
          [chat.turns, chat.streams]
            .flatMap((rows) => [64, 256].map((clients) => at(rows, clients)?.[engine]?.errors ?? NaN))
            .reduce((sum, errors) => sum + errors, 0),
        0,
        0,
        count("errors")
      )
    ]
  },
  {
    measure:
      "Search of an agent of 1,000 chunks while others grow from 5,000 (embedded to 100,000, PostgreSQL to 1,000,000); last page to first",
    must: "≤ 1.2 ×; ≤ 1.5 ×",
    aim: "flat",
    of: ({ pages, retrieve }, engine) => [
      bounded(retrieve?.growth[engine]?.at(-1).smallAgainstFirst, 1.2, 1.1),
      bounded(
        pages?.[engine] && Math.max(pages[engine].messages.ratio, pages[engine].conversations.ratio),
        1.5,
        1.1
      )
    ]
  }
]

/** Rows of the table: what was measured, and whether all of it reaches `aim`, `must` or neither. */
export const measuredTargets = (figures) =>
  targets.map(({ aim, measure, must, of }, place) => ({
    number: place + 1,
    measure,
    must,
    aim,
    ...Object.fromEntries(
      engines.map((engine) => {
        const parts = of(figures, engine)
        const all = (bound) => parts.every((part) => part?.[bound])
        const text = parts.map((part) => part?.text ?? "–").join(", ")
        if (parts.includes(undefined)) return [engine, { text }]
        return [engine, { text, reached: all("aim") ? "aim" : all("must") ? "must" : "missed" }]
      })
    )
  }))
