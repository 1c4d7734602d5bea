/**
 * Labelled collections: in the format of BEIR (`corpus.jsonl`, `queries.jsonl`, `qrels/*.tsv`), or in that of SMART, in
 * which Cranfield is passed on (`cran.all.1400`, `cran.qry`, `cranqrel`).
 */
import * as fs from "node:fs"
import * as path from "node:path"
import * as Schema from "effect/Schema"

export interface Collection {
  readonly documents: ReadonlyArray<{ readonly id: string; readonly title: string; readonly text: string }>
  /** Only queries that have a relevant document. `relevant` maps document ids to gains above 0. */
  readonly queries: ReadonlyArray<{
    readonly id: string
    readonly text: string
    readonly relevant: ReadonlyMap<string, number>
  }>
}

const Id = Schema.Union(
  Schema.String,
  Schema.transform(Schema.Number, Schema.String, { decode: String, encode: Number })
)
const Line = Schema.parseJson(
  Schema.Struct({
    _id: Id,
    title: Schema.optionalWith(Schema.String, { default: () => "", nullable: true }),
    text: Schema.String
  })
)
const decodeLine = Schema.decodeUnknownSync(Line)

const lines = (file: string): ReadonlyArray<string> =>
  fs
    .readFileSync(file, "utf8")
    .split(/\r?\n/u)
    .filter((line) => line.trim() !== "")

type Judgements = ReadonlyMap<string, ReadonlyMap<string, number>>

const groupByQuery = (
  rows: ReadonlyArray<readonly [query: string, document: string, gain: number]>
): Judgements => {
  const found = new Map<string, Map<string, number>>()
  for (const [query, document, gain] of rows) {
    if (gain <= 0) continue
    const relevant = found.get(query) ?? new Map<string, number>()
    found.set(query, relevant.set(document, gain))
  }
  return found
}

const withJudgements = (
  queries: ReadonlyArray<readonly [id: string, text: string]>,
  judgements: Judgements
) =>
  queries.flatMap(([id, text]) => {
    const relevant = judgements.get(id)
    return relevant === undefined ? [] : [{ id, text, relevant }]
  })

/** The queries judged in `qrels/test.tsv`, or in the first file there. */
const readBeir = (folder: string): Collection => {
  const files = fs.readdirSync(path.join(folder, "qrels")).filter((name) => name.endsWith(".tsv"))
  const judgementFile = files.includes("test.tsv") ? "test.tsv" : (files.toSorted()[0] ?? "test.tsv")
  const rows = lines(path.join(folder, "qrels", judgementFile)).map((line) => line.split("\t"))
  const gains = rows.map(([query = "", document = "", gain = ""]) => [query, document, Number(gain)] as const)
  return {
    documents: lines(path.join(folder, "corpus.jsonl")).map((line) => {
      const { _id: id, text, title } = decodeLine(line)
      return { id, title, text }
    }),
    queries: withJudgements(
      lines(path.join(folder, "queries.jsonl")).map((line) => {
        const { _id: id, text } = decodeLine(line)
        return [id, text] as const
      }),
      groupByQuery(gains.filter(([, , gain]) => Number.isFinite(gain)))
    )
  }
}

/** The records of a SMART file: each field's lines joined. */
const records = (file: string) =>
  fs
    .readFileSync(file, "utf8")
    .split(/^\.I\s+/mu)
    .slice(1)
    .map((record) => {
      const [id = "", ...fields] = record.split(/^\.([A-Z])\s*$/mu)
      const field = (name: string) => {
        const place = fields.indexOf(name)
        return place < 0 ? "" : (fields[place + 1] ?? "").replace(/\s+/gu, " ").trim()
      }
      return { id: id.trim(), field }
    })

/**
 * Judgements refer to a query by its position, not by its number. Codes 1 to 4 are degrees of relevance, and all
 * count as relevant. The text of a document begins with its title, which is not repeated.
 */
const readSmart = (folder: string): Collection => {
  const rows = lines(path.join(folder, "cranqrel")).map((line) => line.trim().split(/\s+/u))
  return {
    documents: records(path.join(folder, "cran.all.1400")).map(({ field, id }) => {
      const title = field("T")
      const text = field("W")
      return { id, title, text: text.startsWith(title) ? text.slice(title.length).trim() : text }
    }),
    queries: withJudgements(
      records(path.join(folder, "cran.qry")).map(
        ({ field }, place) => [String(place + 1), field("W")] as const
      ),
      groupByQuery(
        rows.map(([query = "", document = "", code = ""]) => [query, document, Number(code) >= 1 ? 1 : 0])
      )
    )
  }
}

export const read = (folder: string): Collection =>
  fs.existsSync(path.join(folder, "corpus.jsonl")) ? readBeir(folder) : readSmart(folder)
