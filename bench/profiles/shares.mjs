/** Reads a CPU profile of the bundle: the share of each part of the program in the time of the main thread. */
import * as fs from "node:fs"
import { SourceMap } from "node:module"
import { fileURLToPath } from "node:url"

/** The part of a source is the first one whose pattern matches its path. */
const parts = [
  ["decoding and encoding", /node_modules\/effect\/.*\/(?:Schema|SchemaAST|ParseResult)\.[jt]s$/],
  ["Effect runtime", /node_modules\/effect\//],
  ["HTTP framework", /node_modules\/(?:@effect\/platform|@effect\/rpc|multipasta|find-my-way-ts)/],
  ["database client", /node_modules\/(?:@effect\/sql|pg|ioredis|@electric-sql|postgres)|src\/store\//],
  ["search", /src\/(?:search|capabilities\/(?:VectorSearch|Embedder))|node_modules\/(?:stemmer|snowball)/],
  [
    "reading documents",
    /src\/(?:readers|markdown)|node_modules\/(?:linkedom|htmlparser2|dom|css|entities|marked|unpdf)/
  ],
  ["prompt, reply and turn", /src\/(?:usecases|domain|capabilities)\//],
  ["routes", /src\/(?:http|app|realtime|queue|concurrency|observability)\//],
  ["Node", /^node:/]
]

const maps = new Map()

/** The map of a bundled file; null for files that have none. */
const mapOf = (url) => {
  if (!maps.has(url)) {
    const file = url.startsWith("file:") ? `${fileURLToPath(url)}.map` : ""
    maps.set(url, fs.existsSync(file) ? new SourceMap(JSON.parse(fs.readFileSync(file, "utf8"))) : null)
  }
  return maps.get(url)
}

const sourceOf = ({ columnNumber, lineNumber, url }) =>
  mapOf(url)?.findEntry(lineNumber, columnNumber).originalSource ?? url

const partOf = (frame) => {
  if (frame.functionName === "(garbage collector)") return "garbage collection"
  if (frame.functionName === "(program)") return "native code"
  const source = sourceOf(frame)
  return parts.find(([, pattern]) => pattern.test(source))?.[0] ?? "other"
}

/**
 * Milliseconds by part. Functions of the engine itself, such as `JSON.parse`, count for their caller. Idle time is left
 * out.
 */
export const timesOf = ({ nodes, samples, timeDeltas }) => {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const part = new Map()
  const visit = (node, inherited) => {
    const { functionName, url } = node.callFrame
    const ownPart = url === "" && !functionName.startsWith("(") ? inherited : partOf(node.callFrame)
    part.set(node.id, ownPart)
    for (const child of node.children ?? []) visit(byId.get(child), ownPart)
  }
  visit(nodes[0], "other")
  const times = {}
  for (const [place, id] of samples.entries()) {
    if (byId.get(id).callFrame.functionName === "(idle)") continue
    times[part.get(id)] = (times[part.get(id)] ?? 0) + timeDeltas[place] / 1_000
  }
  return times
}
