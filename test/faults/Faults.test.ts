/**
 * Random operations of several clients against real servers, while processes are killed, connections dropped, disks filled,
 * clocks wrong, providers failing and callers hostile; afterwards the oracle holds what was answered against what is there. The seed decides
 * who does what and which faults there are; `SPOKE_FAULT_SEED=n npm run test:faults` does the same again, as far as timing
 * allows. With all other tests a few short runs take part, always with the same seeds; `npm run test:faults` makes new ones,
 * `SPOKE_FAULT_RUNS` and `SPOKE_FAULT_SECONDS` more and longer ones, `SPOKE_FAULT_ONLY` such with one kind of fault.
 */
import { setTimeout as delay } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import { emptyHistory, type History } from "./History.ts"
import { observeOnline, observeStored, quiet } from "./Observe.ts"
import { noDisk } from "./Disk.ts"
import { clientOf } from "./Operations.ts"
import { judge } from "./Oracle.ts"
import { randomOf } from "./Random.ts"
import { fullDatabase, noFleet, openWorld, type Topology } from "./World.ts"

const given = process.env["SPOKE_FAULT_SEED"]
/** Nothing but this fault. */
const only = process.env["SPOKE_FAULT_ONLY"]
const alone = process.env["SPOKE_FAULT_ALONE"] === "1"
const runs = Number(process.env["SPOKE_FAULT_RUNS"] ?? (alone ? 10 : 2))
const seconds = Number(process.env["SPOKE_FAULT_SECONDS"] ?? (alone ? 20 : 4))
const clients = 4
/** Milliseconds: leases run out, retries come back. */
const stallTimeoutMs = 120_000

const seeds =
  given !== undefined
    ? [Number(given)]
    : Array.from({ length: runs }, (_, place) => (alone ? Math.floor(Date.now() / 1_000) + place : place + 2))

/** Odd seeds: one process on its embedded database. Even ones: two and a worker, on PostgreSQL and Redis. */
const topologyOf = (seed: number): Topology => (seed % 2 === 0 ? "fleet" : "embedded")

const begun = Date.now()
const tell = (text: string) => {
  const output = alone ? process.stderr : process.stdout
  output.write(`${((Date.now() - begun) / 1_000).toFixed(1)} s: ${text}\n`)
}

/** How many were answered how. */
const answersOf = ({ asked }: History) => {
  const counts = new Map<string, number>()
  for (const { code, status } of asked) {
    const said = status === 0 ? "unanswered" : (code ?? "good")
    counts.set(said, (counts.get(said) ?? 0) + 1)
  }
  return [...counts].map(([said, count]) => `${count} ${said}`).join(", ")
}

const play = async (seed: number, nothingBut = only) => {
  const random = randomOf(seed)
  const world = await openWorld(topologyOf(seed), randomOf(seed + 1_000_000))
  const faults = world.faults.filter(([name]) => nothingBut === undefined || name === nothingBut)
  const history = emptyHistory()
  const inflicted: Array<string> = []
  let over = false
  try {
    const everyone = Array.from({ length: clients }, (_, place) =>
      clientOf(world, history, randomOf(seed * 31 + place), { name: `${seed}-${place}`, place })
    )
    const working = everyone.map(async ({ step }) => {
      while (!over) {
        await delay((await step()) ? 20 : 250)
      }
    })
    const end = Date.now() + seconds * 1_000
    await delay(1_000)
    while (Date.now() < end) {
      const [name, inflict] = random.pick(faults)
      inflicted.push(name)
      tell(name)
      await inflict()
      await delay(300 + random.below(1_200))
    }
    over = true
    await world.heal()
    tell("healed")
    await Promise.all(working)
    tell(`the clients are done, with ${history.asked.length} requests`)
    for (const { settle } of everyone) await settle()
    tell("everything was sent again")
    await quiet(world, stallTimeoutMs)
    tell("quiet")
    const online = await observeOnline(world, history)
    tell("walked")
    const output = await world.stopProcesses()
    tell("stopped")
    const found = { ...(await observeStored(world)), ...online }
    const broken = [...judge(history, found), ...world.refused]
    process.stdout.write(
      `seed ${seed}, ${world.topology}: ${history.asked.length} requests (${answersOf(history)}), ` +
        `${found.messages.length} messages, ` +
        `faults: ${inflicted.join(", ")}; ${broken.length} promises broken\n`
    )
    const unanswered = history.asked.filter(({ status }) => status === 0).length
    return { broken, done: history.asked.length - unanswered, faults: inflicted.length, output }
  } finally {
    over = true
    await world.close()
  }
}

const check = async (seed: number, nothingBut?: string) => {
  const { broken, done, faults, output } = await play(seed, nothingBut)
  if (broken.length > 0) {
    const also = nothingBut === undefined ? "" : `SPOKE_FAULT_ONLY="${nothingBut}" `
    process.stdout.write(
      `SPOKE_FAULT_SEED=${seed} ${also}npm run test:faults\n${broken.join("\n")}\n${output.slice(-20_000)}\n`
    )
  }
  expect(broken).toEqual([])
  expect(done).toBeGreaterThan(10)
  expect(faults).toBeGreaterThan(0)
}

/** Why such a world cannot be had here; in CI it must. */
const lacking = (seed: number) =>
  topologyOf(seed) === "fleet" && process.env["CI"] !== "true" ? noFleet : null

const told = (why: string | null) => (why === null ? "" : `: ${why}`)

describe("A service whose processes, databases and providers fail", () => {
  for (const seed of seeds) {
    const missing = lacking(seed)
    it.skipIf(missing !== null)(
      `keeps what it promised (seed ${seed}, ${topologyOf(seed)}${told(missing)})`,
      () => check(seed),
      300_000 + seconds * 2_000
    )
  }

  // One of the random faults where disks may be mounted, and always asked for here.
  for (const seed of given === undefined ? [4, 5] : []) {
    const missing = lacking(seed) ?? noDisk
    it.skipIf(missing !== null)(
      `keeps what it promised while the disk of its database is full (seed ${seed}, ${topologyOf(seed)}${told(missing)})`,
      () => check(seed, fullDatabase),
      300_000 + seconds * 2_000
    )
  }
})
