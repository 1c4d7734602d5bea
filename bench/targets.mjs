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
const memory = (limits) => (start, engine) => [
  bounded(start?.[engine]?.memory.idleMiB, limits[engine][0], limits[engine][0], {
    show: (value) => `${value} MiB idle`
  }),
  bounded(start?.[engine]?.memory.peakMiB, limits[engine][1], limits[engine][1], {
    show: (value) => `${value} MiB at most`
  })
]
const memoryOf = memory({ server: [200, 350], embedded: [400, 700] })

const count = (show) => ({ show: (value) => `${value} ${show}` })

/** Number, what is measured, bounds in words, and the parts measured for an engine. */
const targets = [
  {
    number: 1,
    measure: "`/v1/chat`, 16 clients: CPU of a turn, to hand-written",
    must: "≤ 1.5 ×",
    aim: "≤ 1.0 ×",
    of: ({ chat }, engine) => [bounded(ratio(chat?.turns, 16, engine, "handwritten", "cpu"), 1.5, 1)]
  },
  {
    number: 2,
    measure: "`/v1/chat/stream`, 16 clients: CPU of a stream, to hand-written and to bare",
    must: "≤ 0.8 ×",
    aim: "≤ 0.5 ×; ≤ 3 ×",
    of: ({ chat }, engine) => [
      bounded(ratio(chat?.streams, 16, engine, "handwritten", "cpu"), 0.8, 0.5),
      bounded(ratio(chat?.streams, 16, engine, "bare", "cpu"), Infinity, 3)
    ]
  },
  ...[1, 64].map((clients) => ({
    number: 3,
    measure: `First token beyond the model's own, ${clients} client${clients === 1 ? "" : "s"}; the whole wait to hand-written and to bare`,
    must: "≤ 20 ms; ≤ 1.0 ×",
    aim: "≤ 10 ms; ≤ 1.0 ×; ≤ 1.15 ×",
    of: ({ chat }, engine) => [
      bounded(addedTo(chat, clients, engine), 20, 10, { show: ms }),
      bounded(ratio(chat?.paced, clients, engine, "handwritten", "first"), 1, 1),
      bounded(ratio(chat?.paced, clients, engine, "bare", "first"), Infinity, 1.15)
    ]
  })),
  {
    number: 4,
    measure:
      "Streams at 20 ms a token, 64 clients: streams/s to bare, CPU to hand-written; errors of 500 and 1,000 at once",
    must: "≥ 0.90 ×; ≤ 0.9 ×; 0",
    aim: "≥ 0.97 ×; ≤ 0.6 ×; 0",
    of: ({ chat }, engine) => [
      bounded(ratio(chat?.paced, 64, engine, "bare", "perSecond"), 0.9, 0.97, { up: true }),
      bounded(ratio(chat?.paced, 64, engine, "handwritten", "cpu"), 0.9, 0.6),
      bounded(
        chat?.atOnce.filter(({ target }) => target === engine).reduce((sum, { errors }) => sum + errors, 0),
        0,
        0,
        count("errors")
      )
    ]
  },
  {
    number: 5,
    measure: "`/v1/retrieve`, 5,000 chunks: p50 alone to bare; requests/s of 16 clients to hand-written",
    must: "≤ 1.5 ×; ≥ 1.0 ×",
    aim: "≤ 1.0 ×; ≥ 1.5 ×",
    of: ({ retrieve }, engine) => [
      bounded(at(retrieve?.sideBySide, 1)?.ratios.p50[engine]?.bare, 1.5, 1),
      bounded(at(retrieve?.sideBySide, 16)?.ratios.perSecond[engine]?.handwritten, 1, 1.5, { up: true })
    ]
  },
  {
    number: 6,
    measure: "Ingestion, documents/s from accepted to `READY`, to hand-written",
    must: "≥ 0.8 ×",
    aim: "≥ 1.5 ×",
    of: ({ ingestion }, engine) => [bounded(ingestion?.[engine]?.ratios?.toReady, 0.8, 1.5, { up: true })]
  },
  {
    number: 7,
    measure: "Resident memory, idle and at most (PostgreSQL / embedded)",
    must: "≤ 200 / 400; ≤ 350 / 700 MiB",
    aim: "less",
    of: ({ start }, engine) => memoryOf(start, engine)
  },
  {
    number: 8,
    measure: "Start on existing data to the first 200, CPU seconds (PostgreSQL / embedded)",
    must: "≤ 1.0 / 2.0",
    aim: "≤ 0.6 / 1.6",
    of: ({ start }, engine) => [
      bounded(
        start?.[engine]?.cpuSeconds,
        engine === "server" ? 1 : 2,
        engine === "server" ? 0.6 : 1.6,
        count("s")
      )
    ]
  },
  {
    number: 9,
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
  ...[
    [64, "more than it can take at once"],
    [16, "each of which waits for a commit"]
  ].map(([clients, why]) => ({
    number: 11,
    measure: `Webhooks accepted, requests/s of ${clients} clients (${why}), to a bare server that checks the HMAC`,
    must: "≥ 0.3 ×",
    aim: "≥ 0.5 ×",
    of: ({ webhooks }, engine) => {
      const row = webhooks?.accepted.find((each) => each.engine === engine && each.clients === clients)
      return [bounded(row?.ratio, 0.3, 0.5, { up: true })]
    }
  })),
  {
    number: 12,
    measure:
      "Searching an agent of 1,000 chunks while others grow from 5,000 (embedded to 100,000, PostgreSQL to 1,000,000); last page to first",
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
  targets.map(({ aim, measure, must, number, of }) => ({
    number,
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
