/**
 * Turns and streams of services with frameworks for agents, beside the hand-written peer and Spoke, in one alternating
 * run. The frameworks are installed in a folder of their own: `npm run bench -- --only frameworks --peers FOLDER`, after
 * `npm install @langchain/core @langchain/openai @mastra/core` there.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { alternate, load } from "../load.mjs"
import { startScript } from "../machine.mjs"
import { call } from "../spoke.mjs"
import { turnTargets } from "./chat.mjs"

/** By peer, the package whose version is recorded. */
const packages = { langchain: "@langchain/core", mastra: "@mastra/core" }

const versionOf = (folder, name) =>
  JSON.parse(fs.readFileSync(path.join(folder, "node_modules", name, "package.json"), "utf8")).version

const clients = 16

export const frameworks = async ({ passages, peerFolder, progress, quick, rounds, seconds, services }) => {
  const { embedded, model, peers, postgres, server } = await services(passages)
  if (peers === undefined) return { versions: {} }
  const variables = { MODEL: model.url, DATABASE_URL: peers.databaseUrl, PACKAGES: path.resolve(peerFolder) }
  const started = await Promise.all(
    Object.keys(packages).map(async (name) => [name, await startScript(`peers/${name}.mjs`, [], variables)])
  )
  const all = { handwritten: peers.handwritten, ...Object.fromEntries(started) }
  await call(`${model.url}/pace`, { method: "POST", body: { first: 0, gap: 0, tokens: 50 } })
  const out = {
    clients,
    versions: Object.fromEntries(
      Object.entries(packages).map(([peer, name]) => [peer, `${name} ${versionOf(peerFolder, name)}`])
    )
  }
  for (const stream of [false, true]) {
    const targets = turnTargets({ embedded, peers: all, server }, passages, stream)
    for (const target of Object.values(targets)) await load(target, { clients: 8, each: quick ? 2 : 50 })
    const options = { clients, seconds, database: postgres?.pid }
    const { ratio, results } = await alternate(targets, rounds, options, progress)
    const toHandwritten = Object.fromEntries(
      Object.keys(results).map((name) => [name, ratio(name, "handwritten", ({ cpuMs }) => cpuMs)])
    )
    out[stream ? "streams" : "turns"] = { ...results, toHandwritten }
  }
  for (const [, peer] of started) await peer.stop()
  return out
}
