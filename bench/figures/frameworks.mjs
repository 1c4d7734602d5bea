/**
 * Turns and streams of services with frameworks for agents, beside the hand-written peer and Spoke, in one alternating
 * run. The frameworks are installed in a folder of their own: `npm run bench -- --only frameworks --peers FOLDER`, after
 * `npm install @langchain/core @langchain/openai @mastra/core` there.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { alternate, load } from "../load.mjs"
import { root, startScript } from "../machine.mjs"
import { call } from "../spoke.mjs"
import { turnTargets } from "./chat.mjs"

const storage = ["@hono/node-server", "hono", "pg"]

/** By service, the packages that its code imports; the first one is named with its version. */
const importsOf = {
  handwritten: ["ai", "@ai-sdk/openai", ...storage],
  langchain: ["@langchain/core", "@langchain/openai", ...storage],
  mastra: ["@mastra/core", "ai", "@ai-sdk/openai", ...storage]
}

const manifestOf = (folder) => JSON.parse(fs.readFileSync(path.join(folder, "package.json"), "utf8"))

/** The folder of a package, as a module in `from` finds it. */
const findPackage = (name, from) => {
  for (let folder = from; ; folder = path.dirname(folder)) {
    const found = path.join(folder, "node_modules", name)
    if (fs.existsSync(path.join(found, "package.json"))) return found
    if (folder === path.dirname(folder)) return undefined
  }
}

const bytesOf = (folder) =>
  fs
    .readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => name !== "node_modules")
    .reduce((sum, entry) => {
      const file = path.join(folder, entry.name)
      return sum + (entry.isDirectory() ? bytesOf(file) : entry.isFile() ? fs.statSync(file).size : 0)
    }, 0)

/** How many packages are installed for these, those that they need included, and their size. */
const installedSize = (names, folders) => {
  const seen = new Set()
  const pending = names.map((name) => folders.map((folder) => findPackage(name, folder)).find(Boolean))
  for (let folder = pending.pop(); folder !== undefined; folder = pending.pop()) {
    if (seen.has(folder)) continue
    seen.add(folder)
    const { dependencies = {} } = manifestOf(folder)
    pending.push(
      ...Object.keys(dependencies)
        .map((name) => findPackage(name, folder))
        .filter(Boolean)
    )
  }
  const bytes = [...seen].reduce((sum, folder) => sum + bytesOf(folder), 0)
  return { packages: seen.size, megabytes: Math.round(bytes / 1e6) }
}

/** Lines of code of the peers themselves. */
const linesOf = (names) =>
  names.reduce((sum, name) => {
    const text = fs.readFileSync(path.join(root, "bench/peers", `${name}.mjs`), "utf8")
    return sum + text.split("\n").filter((line) => /^\s*[^\s/*]/.test(line)).length
  }, 0)

const services = (folder) => {
  const peerServices = Object.fromEntries(
    Object.entries(importsOf).map(([service, names]) => {
      const { name, version } = manifestOf(findPackage(names[0], service === "handwritten" ? root : folder))
      const files = service === "handwritten" ? [service] : [service, "framework"]
      const lines = linesOf([...files, "knowledge"])
      return [service, { version: `${name} ${version}`, lines, ...installedSize(names, [folder, root]) }]
    })
  )
  const { dependencies, name, version } = manifestOf(root)
  return {
    ...peerServices,
    spoke: { version: `${name} ${version}`, ...installedSize(Object.keys(dependencies), [root]) }
  }
}

const clients = 16

export const frameworks = async (world) => {
  const { passages, peerFolder, progress, quick, rounds, seconds } = world
  const { embedded, model, peers, postgres, server } = await world.services(passages)
  if (peers === undefined) return {}
  const variables = { MODEL: model.url, DATABASE_URL: peers.databaseUrl, PACKAGES: path.resolve(peerFolder) }
  const started = await Promise.all(
    ["langchain", "mastra"].map(async (name) => [name, await startScript(`peers/${name}.mjs`, [], variables)])
  )
  const all = { handwritten: peers.handwritten, ...Object.fromEntries(started) }
  await call(`${model.url}/pace`, { method: "POST", body: { first: 0, gap: 0, tokens: 50 } })
  const out = { clients, services: services(path.resolve(peerFolder)) }
  for (const stream of [false, true]) {
    const targets = turnTargets({ embedded, peers: all, server }, passages, stream)
    for (const target of Object.values(targets)) await load(target, { clients: 8, each: quick ? 2 : 400 })
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
